"""The environment as vLLM's bug form asks for it, as plain text; made safe by whoever puts it on a page. Pure.

The form wants the output of vLLM's own ``collect_env.py``, which imports PyTorch and calls a dozen programs. What a run
knows of the same questions stands here under the same headings; the rest is said not to be collected.
"""

from collections.abc import Iterator

from sparkdiag.evidence.run import Host, RunRecord, Software
from sparkdiag.evidence.stored import StoredRun

NOT_COLLECTED = "not collected"
_LABEL = 29
_RULE = "=" * 30
_OURS = "SPARKDIAG_"


def environment_form(stored: StoredRun) -> str:
    """Every section, also where little is known."""
    record = stored.record
    software, host = record.software or Software(), record.host
    sections = [
        ("System Info", _system(software, host)),
        ("PyTorch Info", _torch(software)),
        ("Python Environment", _python(software, record)),
        ("CUDA / GPU Info", _gpus(software, host, stored)),
        ("CPU Info", _cpu(host)),
        ("Versions of relevant libraries", _libraries(software)),
        ("vLLM Info", _vllm(software, record)),
        ("sparkdiag", _sparkdiag(record)),
        ("Environment Variables", _variables(software, record)),
    ]
    return "\n\n".join(
        "\n".join([_RULE, title.center(len(_RULE)).rstrip(), _RULE, *lines]) for title, lines in sections
    )


def _line(label: str, value: object) -> str:
    return f"{label:<{_LABEL}}: {value if value not in (None, '') else NOT_COLLECTED}"


def _yes_no(value: bool | None) -> str | None:
    return {True: "Yes", False: "No", None: None}[value]


def _system(software: Software, host: Host | None) -> Iterator[str]:
    yield _line("OS", software.os)
    yield _line("Kernel and machine", host.platform if host is not None else None)
    for tool in ("GCC", "Clang", "CMake"):
        yield _line(f"{tool} version", None)
    yield _line("Libc version", software.libc)


def _torch(software: Software) -> Iterator[str]:
    built = {"none": "None"}
    yield _line("PyTorch version", software.packages.get("torch"))
    yield _line("Is debug build", _yes_no(software.torch_debug))
    yield _line("CUDA used to build PyTorch", built.get(software.torch_cuda or "", software.torch_cuda))
    yield _line("ROCM used to build PyTorch", built.get(software.torch_rocm or "", software.torch_rocm))


def _python(software: Software, record: RunRecord) -> Iterator[str]:
    kind = record.environment.get("kind")
    yield _line("Python version", software.python)
    yield _line("Environment", f"{kind} ({record.environment.get('spec')})" if kind else None)


def _gpus(software: Software, host: Host | None, stored: StoredRun) -> Iterator[str]:
    gpus = software.gpus or (host.gpus if host is not None else ())
    models = "".join(f"\nGPU {place}: {gpu}" for place, gpu in enumerate(gpus))
    none = f"None ({software.gpu_problem})" if software.gpu_problem else None
    yield _line("Is CUDA available", _cuda_available(stored))
    yield _line("CUDA runtime version", _package(software, "nvidia-cuda-runtime"))
    yield _line("GPU models and configuration", models or none)
    yield _line("Nvidia driver version", software.driver)
    yield _line("CUDA that the driver serves", software.driver_cuda)
    yield _line("cuDNN version", _package(software, "nvidia-cudnn"))


def _cuda_available(stored: StoredRun) -> str:
    """What vLLM's platform said inside the workers; PyTorch itself is not asked."""
    ranks = stored.ledger.ranks if stored.ledger is not None else ()
    told = {rank.platform["is_cuda"] for rank in ranks if isinstance(rank.platform.get("is_cuda"), bool)}
    if len(told) != 1:
        return NOT_COLLECTED
    return "Yes (vLLM's platform in the workers)" if told.pop() else "No (vLLM's platform in the workers)"


def _package(software: Software, begin: str) -> str | None:
    """``9.10.2 (nvidia-cudnn-cu12)``."""
    found = [(name, version) for name, version in software.packages.items() if name.startswith(begin)]
    return ", ".join(f"{version} ({name})" for name, version in found) or None


def _cpu(host: Host | None) -> Iterator[str]:
    yield _line("Model name", host.cpu if host is not None else None)
    yield _line("CPUs that may be used", host.cores if host is not None else None)
    yield _line("Memory", f"{host.memory_gib:g} GiB" if host is not None else None)


def _libraries(software: Software) -> Iterator[str]:
    if not software.packages:
        yield NOT_COLLECTED
    yield from (f"[pip] {name}=={version}" for name, version in software.packages.items())


def _vllm(software: Software, record: RunRecord) -> Iterator[str]:
    version = record.revision.version or record.environment.get("vllm_version")
    commit = software.vllm_commit or record.environment.get("vllm_sha")
    if commit is None and record.environment.get("kind") == "existing":
        commit = record.environment.get("revision_sha")
    archs = software.variables.get("TORCH_CUDA_ARCH_LIST", "Not Set") if record.software is not None else NOT_COLLECTED
    yield _line("vLLM Version", f"{version} (git sha: {commit})" if version and commit else version)
    yield "vLLM Build Flags:"
    yield f"  CUDA Archs: {archs}; others: {NOT_COLLECTED}"
    yield "GPU Topology:"
    yield f"  {NOT_COLLECTED}"


def _sparkdiag(record: RunRecord) -> Iterator[str]:
    yield _line("sparkdiag version", record.sparkdiag_version)
    yield _line("Its Python", record.host.python if record.host is not None else None)
    yield _line("Scenario", record.scenario.get("name"))
    yield _line("Started", record.started_at)


def _variables(software: Software, record: RunRecord) -> Iterator[str]:
    """What the server inherited by allow-list, under what it was given; sparkdiag's own are told with the command."""
    given = {name: value for name, value in record.server_env.items() if not name.startswith(_OURS)}
    both = software.variables | given
    if not both:
        yield NOT_COLLECTED
    yield from (f"{name}={both[name]}" for name in sorted(both))
