"""How busy the machine is: a benchmark on a busy one measures its neighbours."""

import os
import time
from pathlib import Path

from sparkdiag.errors import BusyError
from sparkdiag.evidence.base import Value
from sparkdiag.reproducing.host import usable_cores
from sparkdiag.serving.priority import busy_share

BUSY_SHARE = 0.15
"""Of the machine's CPU time; above it nothing is measured unless asked for."""
LOOK_S = 2.0


class Load(Value):
    """The machine at one moment, while the benchmark itself did nothing."""

    cores: int
    busy_share: float
    """Of the CPU time of ``LOOK_S`` seconds."""
    load_average: float
    """Of the last minute, see proc_loadavg(5)."""

    @property
    def line(self) -> str:
        return f"{self.cores} cores, {self.busy_share:.0%} busy, load average {self.load_average:.2f}"

    @property
    def busy(self) -> bool:
        return self.busy_share > BUSY_SHARE


def look(*, look_s: float = LOOK_S) -> Load:
    """Takes ``look_s`` seconds."""
    before = _cpu_times()
    time.sleep(look_s)
    return Load(cores=usable_cores(), busy_share=busy_share(before, _cpu_times()), load_average=os.getloadavg()[0])


def quiet(*, anyway: bool) -> Load:
    """The machine's load; raises ``BusyError`` for a busy one, unless ``anyway``."""
    load = look()
    if load.busy and not anyway:
        raise BusyError(
            f"this machine is busy ({load.line}): a ratio measured now would say little",
            remedy="wait until it is quiet, or add --anyway",
        )
    return load


def _cpu_times() -> str:
    return Path("/proc/stat").read_text(encoding="ascii")
