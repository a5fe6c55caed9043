"""Between two trials: wait until what the last one used is really free. Pure, but for the waiting at the end.

Ports need no waiting: each run picks one that is free at that moment (``serving.readiness.free_port``), and no scenario
may fix one. A GPU's memory may be given back some time after its process is gone; a server started meanwhile finds too
little of it and fails for a reason that is not its revision's. Where a GPU tells no count (an integrated one, such as
GB10's), its memory is the machine's and goes with the process.
"""

import threading
import time
from collections.abc import Callable, Sequence

from sparkdiag.observing.gpu import GpuMemory, gpu_memory

TOLERANCE_MIB = 256.0
"""Readings of an idle GPU differ by less; a server that is still there holds gigabytes."""
AT_MOST_S = 60.0
PERIOD_S = 1.0
READ_WITHIN_S = 10.0
"""NVML can hang where the driver is wedged."""


def still_held(before: Sequence[GpuMemory], now: Sequence[GpuMemory]) -> dict[int, float]:
    """MiB by GPU that are in use now and were not before, and that no living process accounts for. Pure.

    Whatever a living process uses is somebody else's: all of ours have ended. That is not waited for.
    """
    earlier = {gpu.index: gpu for gpu in before}
    held = {}
    for gpu in now:
        if gpu.index in earlier:
            was = earlier[gpu.index]
            more = (gpu.used_mib - gpu.others_mib) - (was.used_mib - was.others_mib)
            if more > TOLERANCE_MIB:
                held[gpu.index] = more
    return held


def told(held: dict[int, float], *, waited_s: float) -> str:
    """What is said where it was not free in time."""
    gpus = ", ".join(f"GPU {index}: {mib / 1024:.1f} GiB" for index, mib in sorted(held.items()))
    return f"{waited_s:.0f} s after the trial's end its GPU memory is still not free ({gpus}); going on"


def settle(
    before: Sequence[GpuMemory],
    *,
    read: Callable[[], tuple[GpuMemory, ...]],
    wait: Callable[[float], None],
    clock: Callable[[], float],
    at_most_s: float = AT_MOST_S,
) -> str | None:
    """Wait until what was not in use ``before`` the trial is free again; a line where it is not after ``at_most_s``."""
    began_s = clock()
    while held := still_held(before, read()):
        if clock() - began_s >= at_most_s:
            return told(held, waited_s=clock() - began_s)
        wait(PERIOD_S)
    return None


class GpuRoom:
    """Remembers what was in use before a trial, and waits for that to be so again after it."""

    def __init__(self) -> None:
        self._before: tuple[GpuMemory, ...] = ()

    def look(self) -> None:
        """Before a trial."""
        self._before = bounded(gpu_memory)

    def wait(self) -> str | None:
        """After it; bounded in time, and immediate where there was nothing to see."""
        if not self._before:
            return None
        return settle(self._before, read=lambda: bounded(gpu_memory), wait=time.sleep, clock=time.monotonic)


def bounded(read: Callable[[], tuple[GpuMemory, ...]], *, within_s: float = READ_WITHIN_S) -> tuple[GpuMemory, ...]:
    """What ``read`` returns, nothing where it takes too long."""
    found: list[tuple[GpuMemory, ...]] = []
    thread = threading.Thread(target=lambda: found.append(read()), name="gpu-memory", daemon=True)
    thread.start()
    thread.join(within_s)
    return found[0] if found else ()
