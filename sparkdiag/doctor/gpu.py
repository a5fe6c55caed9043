"""The GPUs that CUDA would show to the server against the ranks it is spread over. Pure."""

from collections.abc import Sequence

from sparkdiag.doctor.finding import Finding
from sparkdiag.observing.gpu_facts import GpuFacts, GpuLook

USED_SHARE = 0.1
"""vLLM takes 0.9 of a GPU's memory by default and does not start where that is not free."""
_WHY = "vLLM finds its platform and its GPUs by NVML, one GPU a rank, after a start of minutes"


def uses_nvml(*versions: str | None) -> bool:
    """Whether a build computes on NVIDIA GPUs, from the versions of vLLM and torch, or the name of the distribution."""
    return not any(mark in version for version in versions if version for mark in ("cpu", "rocm", "xpu", "tpu", "hpu"))


def visible(gpus: Sequence[GpuFacts], variable: str | None) -> tuple[str, ...]:
    """One entry a device that CUDA would show under this value of CUDA_VISIBLE_DEVICES.

    Indices or (the beginning of) UUIDs; nothing counts from the first entry on that names no device, and a device named
    twice hides all. https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#env-vars
    """
    if variable is None:
        return tuple(str(gpu.index) for gpu in gpus)
    found: list[str] = []
    for entry in (part.strip() for part in variable.split(",")):
        device = _device(gpus, entry)
        if device is None:
            break
        if device in found:
            return ()
        found.append(device)
    return tuple(found)


def _device(gpus: Sequence[GpuFacts], entry: str) -> str | None:
    if entry.startswith("MIG-") and len(entry) > len("MIG-"):
        return entry
    if entry.startswith("GPU-"):
        matching = [gpu for gpu in gpus if gpu.uuid is not None and gpu.uuid.startswith(entry)]
        return str(matching[0].index) if len(matching) == 1 else None
    if entry.isascii() and entry.isdecimal() and int(entry[:9]) < len(gpus):
        return str(int(entry))
    return None


def judge_gpus(
    look: GpuLook, *, variable: str | None, ranks: int, server_args: Sequence[str], hardware: str
) -> Finding:
    """``variable`` is CUDA_VISIBLE_DEVICES as the server would inherit it; ``hardware`` what the scenario is about."""
    if look.problem is not None or not look.gpus:
        return _none(look)
    shown = visible(look.gpus, variable)
    count = f"{len(shown)} of {len(look.gpus)} GPUs visible" if variable is not None else f"{len(shown)} GPU(s)"
    if len(shown) < ranks:
        return _too_few(count, variable=variable, ranks=ranks, server_args=server_args)
    chosen = [gpu for gpu in look.gpus if str(gpu.index) in shown]
    taken = [gpu for gpu in chosen if _used_share(gpu) > USED_SHARE]
    if taken:
        return Finding(
            name="gpu",
            status="warn",
            seen=f"{count}, but {'; '.join(_memory(gpu) for gpu in taken)}",
            why="vLLM does not start where the share of GPU memory that it asks for is not free",
            next_step="nvidia-smi (end what holds it), or: sparkdiag repro … -- --gpu-memory-utilization 0.5",
        )
    about = f"; the scenario is about {hardware}" if hardware else ""
    return Finding(name="gpu", status="ok", seen=f"{count} for TP {ranks}: {_kinds(chosen)}{about}", why=_WHY)


def _none(look: GpuLook) -> Finding:
    words = f"NVML: {look.problem}" if look.problem else "NVML shows no GPU"
    if look.device_nodes:
        return Finding(
            name="gpu",
            status="fail",
            seen=f"{', '.join(look.device_nodes[:4])} in /dev, but {words}",
            why=_WHY,
            next_step="nvidia-smi; in a container: docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=all …",
        )
    return Finding(
        name="gpu",
        status="fail",
        seen=f"no GPU ({words})",
        why="this environment's vLLM computes on GPUs",
        next_step="run it on the GPU machine; without one: sparkdiag doctor --env lab",
    )


def _too_few(count: str, *, variable: str | None, ranks: int, server_args: Sequence[str]) -> Finding:
    by_ray = any("ray" in argument.lower().split("=") for argument in server_args)
    hidden = f" (CUDA_VISIBLE_DEVICES={variable[:60]!r})" if variable is not None else ""
    steps = ["unset CUDA_VISIBLE_DEVICES"] if variable is not None else []
    steps += ["--tp N (and --dcp) that fit", "over several machines: … -- --distributed-executor-backend ray"]
    return Finding(
        name="gpu",
        status="warn" if by_ray else "fail",
        seen=f"{count}{hidden}, TP {ranks} wants {ranks}" + (": the rest is up to Ray" if by_ray else ""),
        why=_WHY,
        next_step="; or: ".join(steps),
    )


def _used_share(gpu: GpuFacts) -> float:
    if not gpu.memory_total_mib or gpu.memory_used_mib is None:
        return 0.0
    return gpu.memory_used_mib / gpu.memory_total_mib


def _memory(gpu: GpuFacts) -> str:
    used, total = (gpu.memory_used_mib or 0) / 1024, (gpu.memory_total_mib or 0) / 1024
    return f"GPU {gpu.index} has {used:.0f} of {total:.0f} GiB in use"


def _kinds(gpus: Sequence[GpuFacts]) -> str:
    kinds: dict[str, int] = {}
    for gpu in gpus:
        sm = f" (SM{gpu.capability[0]}{gpu.capability[1]})" if gpu.capability else ""
        memory = f", {gpu.memory_total_mib / 1024:.0f} GiB" if gpu.memory_total_mib else ""
        kinds[f"{gpu.name}{sm}{memory}"] = kinds.get(f"{gpu.name}{sm}{memory}", 0) + 1
    return "; ".join(f"{count} x {kind}" for kind, count in kinds.items())
