"""Which GPUs NVML shows, and why it shows none: for ``doctor``; a run reads them by ``observing.gpu``."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pynvml

from sparkdiag.evidence.base import Value
from sparkdiag.harmless.excerpt import excerpt
from sparkdiag.observing.gpu import MOST_GPUS

_DEVICE_NODE = re.compile(r"nvidia[0-9]+")
T = TypeVar("T")


class GpuFacts(Value):
    """One GPU. None for what it does not tell (an integrated GPU has no memory count)."""

    index: int
    name: str
    uuid: str | None = None
    capability: tuple[int, int] | None = None
    """CUDA compute capability: (12, 1) is SM121."""
    memory_total_mib: float | None = None
    memory_used_mib: float | None = None


class GpuLook(Value):
    """What NVML shows to this user."""

    gpus: tuple[GpuFacts, ...] = ()
    driver: str | None = None
    driver_cuda: str | None = None
    """The newest CUDA that the driver serves: ``13.0``."""
    problem: str | None = None
    """NVML's own words where it cannot be used."""
    device_nodes: tuple[str, ...] = ()
    """/dev/nvidia0 and so on: a GPU's, whether NVML works or not."""


def look_at_gpus(dev: Path = Path("/dev")) -> GpuLook:
    """Never raises for what NVML does."""
    nodes = _device_nodes(dev)
    try:
        pynvml.nvmlInit()
    except (pynvml.NVMLError, OSError) as error:
        return GpuLook(problem=excerpt(str(error), limit=200), device_nodes=nodes)
    try:
        count = min(pynvml.nvmlDeviceGetCount(), MOST_GPUS)
        return GpuLook(
            gpus=tuple(_facts(index) for index in range(count)),
            driver=_text(_asked(pynvml.nvmlSystemGetDriverVersion)),
            driver_cuda=_cuda_version(_asked(pynvml.nvmlSystemGetCudaDriverVersion)),
            device_nodes=nodes,
        )
    except (pynvml.NVMLError, OSError) as error:
        return GpuLook(problem=excerpt(str(error), limit=200), device_nodes=nodes)
    finally:
        pynvml.nvmlShutdown()


def _device_nodes(dev: Path) -> tuple[str, ...]:
    try:
        return tuple(sorted(entry.name for entry in dev.iterdir() if _DEVICE_NODE.fullmatch(entry.name)))
    except OSError:
        return ()


def _facts(index: int) -> GpuFacts:
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    memory = _asked(lambda: pynvml.nvmlDeviceGetMemoryInfo(handle))
    capability = _asked(lambda: pynvml.nvmlDeviceGetCudaComputeCapability(handle))
    return GpuFacts(
        index=index,
        name=_text(_asked(lambda: pynvml.nvmlDeviceGetName(handle))) or "GPU of unknown name",
        uuid=_text(_asked(lambda: pynvml.nvmlDeviceGetUUID(handle))),
        capability=(int(capability[0]), int(capability[1])) if capability else None,
        memory_total_mib=memory.total / 2**20 if memory else None,
        memory_used_mib=memory.used / 2**20 if memory else None,
    )


def _cuda_version(number: int | None) -> str | None:
    """NVML writes 13.1 as 13010."""
    return f"{number // 1000}.{number % 1000 // 10}" if number else None


def _asked(question: Callable[[], T]) -> T | None:
    try:
        return question()
    except pynvml.NVMLError:
        return None


def _text(value: Any) -> str | None:
    if value is None:
        return None
    return excerpt(value if isinstance(value, str) else bytes(value).decode("utf-8", "replace"), limit=100)
