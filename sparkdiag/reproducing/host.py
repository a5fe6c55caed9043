"""The machine a run happens on, as far as a report needs it."""

import os
import platform
from pathlib import Path

import psutil

from sparkdiag import __version__
from sparkdiag.evidence.run import Host


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.machine()
    for line in lines:
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()[:120]
    return platform.machine()


def usable_cores() -> int:
    """Cores this process may run on (a container's cpuset counts, its quota does not)."""
    return len(os.sched_getaffinity(0))


def describe_host(gpus: tuple[str, ...]) -> Host:
    """Facts of this machine; no host name, no user name."""
    return Host(
        platform=f"{platform.system()} {platform.release()} {platform.machine()}",
        cpu=_cpu_model(),
        cores=usable_cores(),
        memory_gib=round(psutil.virtual_memory().total / 2**30, 1),
        gpus=gpus,
        python=platform.python_version(),
        sparkdiag=__version__,
    )
