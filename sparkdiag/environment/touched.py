"""What changed between a base environment's commit and a revision, and what that asks of an environment. Pure."""

import re
from collections.abc import Iterable

from sparkdiag.environment.overlay_files import counted
from sparkdiag.evidence.base import Value

COMPILED = re.compile(
    r"(csrc|cmake|rust)/.*|CMakeLists\.txt|build_rust\.sh|tools/build_rust\.py|rust-toolchain\.toml|\.gitmodules"
    r"|.*\.(proto|pyx)"
)
"""What vLLM's extensions are compiled from (its CMakeLists.txt and setup.py)."""
SETUP = "setup.py"
GPU_ONLY = re.compile(r"csrc/.*\.(cu|cuh|hip)|csrc/rocm/.*")
"""Never compiled into the CPU extensions (cmake/cpu_extension.cmake lists theirs)."""
REQUIREMENTS = re.compile(r"requirements/.*\.(txt|in)|requirements[\w.-]*\.txt|pyproject\.toml")
_LITERAL = re.compile(
    r"""\s*(\#.*|[\])},]*|["'][\w.-]+["']\s*:\s*\[[^()]*|["'][\w./*\[\], -]+([<>=!~]=?[^"'()]*)?["'][\]),]*)\s*"""
)


class Touched(Value):
    """The paths that count, sorted out."""

    compiled: tuple[str, ...] = ()
    gpu_only: tuple[str, ...] = ()
    """Sources of GPU kernels, where the base is a CPU build: not among ``compiled``."""
    requirements: tuple[str, ...] = ()
    python: int = 0
    """Files of the vllm package."""
    other: int = 0
    """Documents, tests, continuous integration: nothing that a server imports."""

    @property
    def because(self) -> str:
        """One line."""
        if self.compiled:
            number = "1 source" if len(self.compiled) == 1 else f"{len(self.compiled)} sources"
            return f"{number} of compiled parts changed since the base: {counted(self.compiled)}"
        number = {0: "no file", 1: "1 file"}.get(self.python, f"{self.python} files")
        told = [f"{number} of vllm's Python package changed since the base"]
        told += [f"kernels of GPUs too ({counted(self.gpu_only)}), which a CPU build has not"] if self.gpu_only else []
        told += [f"requirements too ({counted(self.requirements)})"] if self.requirements else []
        return ", ".join(told)


def sort_out(paths: Iterable[str], *, cpu_base: bool, setup_lines: Iterable[str] | None = None) -> Touched:
    """``setup_lines``: the changed lines of ``setup.py``; None where they are not known: it then counts as compiled."""
    compiled: list[str] = []
    gpu_only: list[str] = []
    requirements: list[str] = []
    python = other = 0
    for path in paths:
        if cpu_base and GPU_ONLY.fullmatch(path):
            gpu_only.append(path)
        elif COMPILED.fullmatch(path):
            compiled.append(path)
        elif path == SETUP:
            (requirements if setup_lines is not None and only_literals(setup_lines) else compiled).append(path)
        elif REQUIREMENTS.fullmatch(path):
            requirements.append(path)
        elif path.startswith("vllm/"):
            python += 1
        else:
            other += 1
    return Touched(
        compiled=tuple(compiled),
        gpu_only=tuple(gpu_only),
        requirements=tuple(requirements),
        python=python,
        other=other,
    )


def only_literals(lines: Iterable[str]) -> bool:
    """Whether changed lines of ``setup.py`` are names of requirements, files or extras alone, and no instruction."""
    return all(_LITERAL.fullmatch(line) for line in lines)
