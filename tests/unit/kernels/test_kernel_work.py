"""Bytes, FLOPs and launches against a run of the fallback on tensors that only know their shape."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.kernels.plan import chunk_plan
from sparkdiag.kernels.work import fallback_kernels, fast_kernel

F32, FP8 = 4, 1


class Device:
    """Counts each kernel with the bytes that it reads and writes."""

    def __init__(self) -> None:
        self.kernels: Counter[tuple[int, int, int]] = Counter()

    def launch(self, *, read: int, written: int, flops: int = 0) -> None:
        self.kernels[read, written, flops] += 1


def contiguous(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """As torch decides it: strides are those of the packed layout, sizes of 1 aside."""
    packed = 1
    for size, stride in reversed(list(zip(shape, strides, strict=True))):
        if size != 1 and stride != packed:
            return False
        packed *= size
    return True


def run_fallback(*, rows: int, keys: int, heads: int, dim: int, budget: int) -> Device:
    """The fallback's statements one by one, as the incident's code has them with ``clean_logits=False``."""
    device = Device()
    device.launch(read=keys * dim * FP8, written=keys * dim * F32)  # k_values.to(float32)
    device.launch(read=keys * dim * F32 + keys * F32, written=keys * dim * F32)  # .mul_(k_scales)
    if not contiguous((dim, keys), (1, dim)):
        device.launch(read=keys * dim * F32, written=keys * dim * F32)  # .transpose(0, 1).contiguous()
    device.launch(read=0, written=rows * keys * F32)  # torch.zeros
    head_chunk = max(1, min(8, heads, budget // (rows * keys * F32)))
    for head_start in range(0, heads, head_chunk):
        group = min(head_start + head_chunk, heads) - head_start
        device.launch(read=rows * group * dim * FP8, written=rows * group * dim * F32)  # q[:, a:b].to(float32)
        if not contiguous((group, rows, dim), (dim, group * dim, 1)):
            device.launch(read=rows * group * dim * F32, written=rows * group * dim * F32)
        k_chunk = max(1, min(keys, budget // (rows * group * F32)))
        for k_start in range(0, keys, k_chunk):
            run_pass(device, rows=rows, group=group, width=min(k_start + k_chunk, keys) - k_start, dim=dim)
    return device


def run_pass(device: Device, *, rows: int, group: int, width: int, dim: int) -> None:
    scores, logits = group * rows * width * F32, rows * width * F32
    flops = sum(2 * dim for _ in range(group * rows * width))  # a product and a sum for each value of a score
    device.launch(read=group * rows * dim * F32 + dim * width * F32, written=scores, flops=flops)
    device.launch(read=scores, written=scores)  # relu_
    device.launch(read=scores + group * rows * F32, written=scores)  # mul_(head_weights)
    if group > 1:
        device.launch(read=scores, written=logits)  # sum(dim=0)
    device.launch(read=2 * logits, written=logits)  # logits[:, a:b].add_


@given(st.integers(1, 24), st.integers(1, 24), st.integers(1, 20), st.integers(1, 6), st.integers(1, 8192))
def test_the_kernels_are_those_that_the_fallback_launches(
    rows: int, keys: int, heads: int, dim: int, budget: int
) -> None:
    plan = chunk_plan(rows=rows, keys=keys, heads=heads, budget_bytes=budget)
    counted: Counter[tuple[int, int, int]] = Counter()
    for kernel in fallback_kernels(plan, head_dim=dim):
        counted[kernel.read, kernel.written, kernel.matmul_flops] += kernel.count
    assert counted == run_fallback(rows=rows, keys=keys, heads=heads, dim=dim, budget=budget).kernels


@given(st.integers(1, 300), st.integers(1, 300), st.integers(1, 70), st.integers(1, 128), st.integers(1, 1 << 16))
def test_every_score_is_multiplied_once(rows: int, keys: int, heads: int, dim: int, budget: int) -> None:
    plan = chunk_plan(rows=rows, keys=keys, heads=heads, budget_bytes=budget)
    kernels = list(fallback_kernels(plan, head_dim=dim))
    assert sum(kernel.count * kernel.matmul_flops for kernel in kernels) == 2 * rows * keys * heads * dim
    assert sum(kernel.count for kernel in kernels if kernel.matmul_flops) == plan.matmuls


def test_the_fast_path_skips_what_the_mask_throws_away() -> None:
    whole = fast_kernel(rows=1024, keys=131_072, heads=64, head_dim=128, seen=1024 * 131_072)
    half = fast_kernel(rows=1024, keys=131_072, heads=64, head_dim=128, seen=512 * 131_072)
    assert whole.matmul_flops == 2 * 1024 * 131_072 * 64 * 128 == 2 * half.matmul_flops
    assert whole.written == 4 * 1024 * 131_072 == 2 * half.written
    assert whole.read == half.read == 1024 * 64 * 128 + 131_072 * 128 + 4 * 131_072 + 4 * 1024 * 64 + 8 * 1024
