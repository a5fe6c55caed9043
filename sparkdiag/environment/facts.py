"""What the machine offers for building an environment: Python, platform, uv, package sources."""

import os
import platform
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from sparkdiag.environment.sources import PackageSources, read_sources
from sparkdiag.errors import EnvironmentFault
from sparkdiag.evidence.base import Value

PYTHON_FIRST, PYTHON_LAST = (3, 10), (3, 13)
"""vLLM's range (its requires-python, ``>=3.10,<3.14`` in 0.32.0)."""
FIND_TIMEOUT_S = 30


class HostFacts(Value):
    """Frozen facts, so that planning is pure."""

    python: str
    """Interpreter the environment is made from."""
    python_version: tuple[int, int]
    system: str
    """``linux``."""
    machine: str
    """``x86_64``."""
    uv: str
    sources: PackageSources = PackageSources()

    @property
    def python_tag(self) -> str:
        return f"cp{self.python_version[0]}{self.python_version[1]}"

    @property
    def platform(self) -> str:
        return f"{self.system}-{self.machine}"


def in_vllm_range(version: tuple[int, int]) -> bool:
    """Whether vLLM has wheels for this Python. Pure."""
    return PYTHON_FIRST <= version <= PYTHON_LAST


def find_uv() -> str:
    """uv's executable: the one sparkdiag depends on, else one on PATH."""
    try:
        from uv import find_uv_bin  # an existing environment needs no uv

        return str(find_uv_bin())
    except (ImportError, FileNotFoundError):
        found = shutil.which("uv")
    if found is None:
        raise EnvironmentFault("uv's executable is missing", remedy="python -m pip install uv")
    return found


def gather_facts() -> HostFacts:
    """Look at the machine; raises ``EnvironmentFault`` where nothing here can host vLLM's CPU build."""
    system, machine = platform.system().lower(), platform.machine().lower()
    if system != "linux":
        raise EnvironmentFault(
            f"vLLM's CPU wheel exists for Linux only, this is {platform.system()}",
            remedy="sparkdiag repro --env existing:/path/to/python",
        )
    executable = find_uv()
    python, version = _choose_python(executable)
    sources = read_sources(os.environ, home=Path.home(), prefix=Path(sys.prefix))
    return HostFacts(
        python=python, python_version=version, system=system, machine=machine, uv=executable, sources=sources
    )


def _choose_python(uv_executable: str) -> tuple[str, tuple[int, int]]:
    own = (sys.version_info.major, sys.version_info.minor)
    free_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    if in_vllm_range(own) and sys.implementation.name == "cpython" and not free_threaded:
        return sys.executable, own
    wanted = f">={PYTHON_FIRST[0]}.{PYTHON_FIRST[1]},<{PYTHON_LAST[0]}.{PYTHON_LAST[1] + 1}"
    found = find_python(uv_executable, wanted=wanted)
    if found is None:
        raise EnvironmentFault(
            f"vLLM needs CPython 3.10 to 3.13; sparkdiag runs on {own[0]}.{own[1]} and no other was found",
            remedy="install python3.11, then: sparkdiag env build",
        )
    return found


def find_python(uv_executable: str, *, wanted: str) -> tuple[str, tuple[int, int]] | None:
    """Ask uv for an installed CPython in the range; never downloads one."""
    env = {**os.environ, "UV_PYTHON_DOWNLOADS": "never"}
    code = "import sys; print(*sys.version_info[:2])"
    try:
        found = subprocess.run(
            [uv_executable, "python", "find", "--no-project", "--system", f"cpython{wanted}"],
            capture_output=True, text=True, timeout=FIND_TIMEOUT_S, env=env, check=False,
        )  # fmt: skip
        path = found.stdout.strip()
        if found.returncode != 0 or not path:
            return None
        asked = subprocess.run(
            [path, "-I", "-c", code], capture_output=True, text=True, timeout=FIND_TIMEOUT_S, check=True
        )
        major, minor = asked.stdout.split()
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    return path, (int(major), int(minor))
