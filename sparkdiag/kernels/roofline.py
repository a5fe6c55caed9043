"""The least time that kernels can take on a GPU: a floor, by its datasheet's peaks. Pure.

A kernel takes at least as long as its matmul at the peak of the units that run it, and as its memory traffic at the
peak of the memory; kernels of one stream follow each other, so their floors add up
(S. Williams et al., "Roofline", https://doi.org/10.1145/1498765.1498785).
"""

from collections.abc import Iterable
from decimal import ROUND_DOWN, Decimal
from typing import Literal

from sparkdiag.evidence.kernels import Gpu, TorchFloor
from sparkdiag.kernels.work import Kernel

MIB = 1 << 20
GIGA = 10**9
TERA = 10**12
MS = 1000
MS_DIGITS = 3
"""Significant digits of a floor: no figure of a GPU is known to more."""

Units = Literal["fp32", "tf32", "fp8"]


def floor_ms(kernel: Kernel, gpu: Gpu, *, units: Units, cached: bool = True) -> float:
    """The floor of all ``kernel.count`` of them in milliseconds.

    ``cached``: at best the cache holds at the kernel's start as much as it can of what is read, and at its end as much
    as it can of what was written; only the rest has to pass the memory. Otherwise all bytes pass it: no floor then.
    """
    cache = gpu.cache_mib.value * MIB if cached else 0
    passing = max(kernel.read - cache, 0) + max(kernel.written - cache, 0)
    compute_s = kernel.matmul_flops / (peak_tflops(gpu, units) * TERA)
    memory_s = passing / (gpu.memory_gb_s.value * GIGA)
    return kernel.count * max(compute_s, memory_s) * MS


def peak_tflops(gpu: Gpu, units: Units) -> float:
    """Dense peak of the CUDA cores (fp32) or the tensor cores (tf32, fp8)."""
    return {"fp32": gpu.fp32_tflops, "tf32": gpu.tf32_tflops, "fp8": gpu.fp8_tflops}[units].value


def torch_floor(kernels: Iterable[Kernel], gpu: Gpu, *, units: Units) -> TorchFloor:
    """The floor of the fallback's kernels, by what they are."""
    matmuls_ms = others_ms = uncached_ms = 0.0
    for kernel in kernels:
        least_ms = floor_ms(kernel, gpu, units=units)
        uncached_ms += floor_ms(kernel, gpu, units=units, cached=False)
        if kernel.matmul_flops:
            matmuls_ms += least_ms
        else:
            others_ms += least_ms
    return TorchFloor(
        matmuls_ms=rounded_down(matmuls_ms, digits=MS_DIGITS),
        others_ms=rounded_down(others_ms, digits=MS_DIGITS),
        floor_ms=rounded_down(matmuls_ms + others_ms, digits=MS_DIGITS),
        uncached_ms=rounded_down(uncached_ms, digits=MS_DIGITS),
    )


def rounded_down(number: float, *, digits: int) -> float:
    """So many significant digits, never more than ``number``: a floor that is rounded up is none."""
    if number <= 0:
        return 0.0
    exact = Decimal(number)
    return float(exact.quantize(Decimal(1).scaleb(exact.adjusted() - digits + 1), rounding=ROUND_DOWN))
