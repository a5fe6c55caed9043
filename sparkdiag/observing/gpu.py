"""GPU readings by NVML, where there is one. Recorded, never decisive, never fatal."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psutil
import pynvml

from sparkdiag.evidence.base import Value
from sparkdiag.evidence.timeline import GpuPoint
from sparkdiag.harmless.excerpt import excerpt

MOST_GPUS = 64


class GpuMemory(Value):
    """How much of one GPU's memory is in use, in MiB."""

    index: int
    used_mib: float
    others_mib: float = 0.0
    """By processes that live at this moment, as far as NVML tells."""


class GpuReader:
    """Reads every GPU that NVML shows; none where NVML is absent or refuses."""

    def __init__(self, *, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._handles: tuple[Any, ...] = ()
        self._open = False
        try:
            pynvml.nvmlInit()
            self._open = True
            count = min(pynvml.nvmlDeviceGetCount(), MOST_GPUS)
            self._handles = tuple(pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(count))
        except (pynvml.NVMLError, OSError):
            self.close()

    @property
    def present(self) -> bool:
        """Whether there is a GPU to read."""
        return bool(self._handles)

    def names(self) -> tuple[str, ...]:
        """One name a GPU."""
        return tuple(_name(handle) for handle in self._handles)

    def read(self) -> tuple[GpuPoint, ...]:
        """One reading a GPU; None for what it does not tell (an integrated GPU has no memory count)."""
        return tuple(_reading(handle, index=index, t_s=self._clock()) for index, handle in enumerate(self._handles))

    def memory(self) -> tuple[GpuMemory, ...]:
        """Memory in use of each GPU that tells it (an integrated one does not)."""
        found = (_memory(handle, index=index) for index, handle in enumerate(self._handles))
        return tuple(memory for memory in found if memory is not None)

    def close(self) -> None:
        """Let NVML go; reading afterwards gives nothing."""
        self._handles = ()
        if self._open:
            self._open = False
            with suppress(pynvml.NVMLError):
                pynvml.nvmlShutdown()


def gpu_names() -> tuple[str, ...]:
    """The names of this machine's GPUs; empty where NVML sees none."""
    reader = GpuReader(clock=lambda: 0.0)
    try:
        return reader.names()
    finally:
        reader.close()


def gpu_memory() -> tuple[GpuMemory, ...]:
    """``GpuReader.memory`` at this moment; empty where NVML sees no GPU."""
    reader = GpuReader(clock=lambda: 0.0)
    try:
        return reader.memory()
    finally:
        reader.close()


def _memory(handle: Any, *, index: int) -> GpuMemory | None:
    used_mib = _ask(lambda: pynvml.nvmlDeviceGetMemoryInfo(handle).used / 2**20)
    if used_mib is None:
        return None
    try:
        processes = pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
    except pynvml.NVMLError:
        processes = []
    living = [process.usedGpuMemory or 0 for process in processes if psutil.pid_exists(process.pid)]
    return GpuMemory(index=index, used_mib=used_mib, others_mib=sum(living) / 2**20)


def _reading(handle: Any, *, index: int, t_s: float) -> GpuPoint:
    return GpuPoint(
        t_s=t_s,
        index=index,
        utilisation_percent=_ask(lambda: pynvml.nvmlDeviceGetUtilizationRates(handle).gpu),
        power_w=_ask(lambda: pynvml.nvmlDeviceGetPowerUsage(handle) / 1000),
        memory_used_mib=_ask(lambda: pynvml.nvmlDeviceGetMemoryInfo(handle).used / 2**20),
    )


def _ask(question: Callable[[], Any]) -> float | None:
    try:
        return float(question())
    except (pynvml.NVMLError, ValueError, TypeError):
        return None


def _name(handle: Any) -> str:
    try:
        name = pynvml.nvmlDeviceGetName(handle)
    except pynvml.NVMLError:
        return "GPU of unknown name"
    return excerpt(name if isinstance(name, str) else bytes(name).decode("utf-8", "replace"), limit=100)
