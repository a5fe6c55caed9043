"""What a call makes the device do: its kernels, each with its FLOPs and the bytes it reads and writes. Pure.

Counted from the incident's code (``_fp8_mqa_logits_torch`` with ``clean_logits=False``, as prefill calls it): values in
FP8, key scales, weights and scores in fp32. One value stands for all kernels of a call that are alike.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from sparkdiag.kernels.plan import ChunkPlan

F32 = 4
FP8 = 1
INT32 = 4


@dataclass(frozen=True, slots=True)
class Kernel:
    """``count`` kernels that are alike."""

    name: str
    count: int
    read: int
    """Distinct bytes that one of them reads, wherever they lie; what it updates in place counts here and below."""
    written: int
    matmul_flops: int = 0
    """Multiplications and additions of a matmul; elementwise arithmetic is not counted."""


def fallback_kernels(plan: ChunkPlan, *, head_dim: int) -> Iterator[Kernel]:
    """The kernels of one call of the torch fallback, in no order of time."""
    rows, keys = plan.rows, plan.keys
    values = keys * head_dim
    yield Kernel("keys to fp32", 1, values * FP8, values * F32)
    yield Kernel("keys scaled", 1, values * F32 + keys * F32, values * F32)
    if keys > 1 and head_dim > 1:  # else torch finds the transpose contiguous as it is, and copies nothing
        yield Kernel("keys transposed", 1, values * F32, values * F32)
    yield Kernel("logits zeroed", 1, 0, rows * keys * F32)
    for groups, heads in _pieces(plan.heads, plan.head_chunk_size):
        queries = rows * heads * head_dim
        yield Kernel("queries to fp32", groups, queries * FP8, queries * F32)
        if heads > 1 and rows > 1:
            yield Kernel("queries transposed", groups, queries * F32, queries * F32)
        for slices, width in _pieces(keys, plan.k_chunk_size):
            yield from _pass(groups * slices, rows=rows, heads=heads, keys=width, head_dim=head_dim)


def _pass(count: int, *, rows: int, heads: int, keys: int, head_dim: int) -> Iterator[Kernel]:
    """One pass: scores of some heads and keys, rectified, weighted, summed over the heads and added to the logits."""
    scores, logits, weights = heads * rows * keys * F32, rows * keys * F32, heads * rows * F32
    operands = (heads * rows + keys) * head_dim * F32
    yield Kernel("matmul", count, operands, scores, 2 * heads * rows * keys * head_dim)
    yield Kernel("relu", count, scores, scores)
    yield Kernel("weighted", count, scores + weights, scores)
    if heads > 1:
        yield Kernel("summed over heads", count, scores, logits)
    yield Kernel("added to logits", count, 2 * logits, logits)


def fast_kernel(*, rows: int, keys: int, heads: int, head_dim: int, seen: int) -> Kernel:
    """What no kernel that answers the same question can do less of: the products inside the windows, its operands
    read once, a logit written for each of the ``seen`` (row, key) pairs inside the windows."""
    operands = (rows * heads + keys) * head_dim * FP8 + keys * F32 + rows * heads * F32 + 2 * rows * INT32
    return Kernel("fast path", 1, operands, seen * F32, 2 * heads * seen * head_dim)


def _pieces(whole: int, step: int) -> tuple[tuple[int, int], ...]:
    """``(count, size)`` of the pieces of a range: those of ``step``, and what is left."""
    count, rest = divmod(whole, step)
    return tuple(pair for pair in ((count, step), (1, rest)) if pair[0] and pair[1])
