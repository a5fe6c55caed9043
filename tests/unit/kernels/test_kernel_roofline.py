"""Floors are floors: below what was measured, below what no cache would give, and never rounded up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.evidence.kernels import FIGURES, Gpu
from sparkdiag.kernels.gpus import gpu_named, gpu_of_device, known_gpus
from sparkdiag.kernels.plan import chunk_plan
from sparkdiag.kernels.roofline import Units, floor_ms, peak_tflops, rounded_down, torch_floor
from sparkdiag.kernels.work import Kernel, fallback_kernels, fast_kernel

MEASURED_TORCH = [(1024, 131_072, 138.8), (8192, 112_640, 970.0)]
"""Rows, keys, milliseconds of the fork's torch fallback on one H200."""
MEASURED_FAST = [
    (1024, 131_072, 1.0, 13.7),
    (1024, 131_072, 1.0, 2.18),  # DeepGEMM, the fastest that was seen
    (8192, 112_640, 1.0, 99.5),
    (1024, 131_072, 0.5, 1.09),  # half of every row inside: DeepGEMM takes half
]


def gpu(name: str) -> Gpu:
    found = gpu_named(name)
    assert found is not None
    return found


@pytest.mark.parametrize(("rows", "keys", "measured_ms"), MEASURED_TORCH)
def test_the_fallback_s_floor_is_below_what_an_h200_took(rows: int, keys: int, measured_ms: float) -> None:
    kernels = list(fallback_kernels(chunk_plan(rows=rows, keys=keys, heads=64), head_dim=128))
    floor = torch_floor(kernels, gpu("h200"), units="fp32")
    assert measured_ms / 4 < floor.floor_ms < floor.uncached_ms < measured_ms
    assert f"{measured_ms / floor.uncached_ms:.2g}" == "1.7"  # as the terminal says
    assert torch_floor(kernels, gpu("h200"), units="tf32").floor_ms < floor.floor_ms


@pytest.mark.parametrize(("rows", "keys", "inside", "measured_ms"), MEASURED_FAST)
def test_the_fast_path_s_floor_is_below_what_an_h200_took(
    rows: int, keys: int, inside: float, measured_ms: float
) -> None:
    kernel = fast_kernel(rows=rows, keys=keys, heads=64, head_dim=128, seen=int(rows * keys * inside))
    assert measured_ms / 20 < floor_ms(kernel, gpu("h200"), units="fp8") <= measured_ms


kernels = st.builds(
    Kernel,
    name=st.just("any"),
    count=st.integers(1, 100),
    read=st.integers(0, 1 << 40),
    written=st.integers(0, 1 << 40),
    matmul_flops=st.integers(0, 1 << 50),
)


@given(kernels, st.sampled_from(known_gpus()), st.sampled_from(["fp32", "tf32", "fp8"]))
def test_a_kernel_is_never_faster_than_its_parts(kernel: Kernel, one: Gpu, units: Units) -> None:
    least_ms = floor_ms(kernel, one, units=units)
    passing = max(kernel.read - one.cache_mib.value * 2**20, 0) + max(kernel.written - one.cache_mib.value * 2**20, 0)
    compute_ms = kernel.count * kernel.matmul_flops / (peak_tflops(one, units) * 1e9)
    memory_ms = kernel.count * passing / (one.memory_gb_s.value * 1e6)
    assert least_ms == pytest.approx(max(compute_ms, memory_ms))
    assert least_ms <= floor_ms(kernel, one, units=units, cached=False)


@given(st.floats(1e-9, 1e12), st.integers(1, 6))
def test_rounding_never_raises_a_floor(number: float, digits: int) -> None:
    rounded = rounded_down(number, digits=digits)
    assert number * (1 - 10 ** (1 - digits)) <= rounded <= number
    assert float(f"{rounded:.{digits - 1}e}") == rounded


def test_no_time_rounds_to_none() -> None:
    assert rounded_down(0, digits=2) == 0


def test_every_gpu_has_figures_that_fit_together() -> None:
    assert [one.name for one in known_gpus()] == ["gb10", "rtx-pro-6000", "h100", "h200", "b200"]
    for one in known_gpus():
        assert one.fp32_tflops.value < one.tf32_tflops.value < one.fp8_tflops.value
        assert 3.9 < one.fp8_tflops.value / one.tf32_tflops.value < 4.1  # dense both: an eighth would be sparse
        assert set(one.unconfirmed) <= set(FIGURES)


@pytest.mark.parametrize(
    ("device", "name"),
    [("NVIDIA H200", "h200"), ("NVIDIA GB10", "gb10"), ("NVIDIA H200 NVL", None), ("NVIDIA H100 PCIe", None)],
)
def test_a_device_is_known_by_its_whole_name(device: str, name: str | None) -> None:
    found = gpu_of_device(device)
    assert (found.name if found is not None else None) == name
