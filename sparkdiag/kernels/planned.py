"""From what is asked to the whole answer of ``sparkdiag kernel plan``. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from sparkdiag.evidence.kernels import Asked, Collapse, Cut, Floor, Gpu, KernelPlan, PlannedChunk
from sparkdiag.kernels.plan import ChunkPlan, chunk_plan, most_keys_of_two_heads
from sparkdiag.kernels.prompt import Chunk, prompt_chunks, split_rows
from sparkdiag.kernels.roofline import MIB, MS_DIGITS, floor_ms, rounded_down, torch_floor
from sparkdiag.kernels.work import Kernel, fallback_kernels, fast_kernel


@dataclass(frozen=True, slots=True)
class _Call:
    """Calls of one chunk that are alike."""

    count: int
    plan: ChunkPlan


def planned(asked: Asked, *, limits_mib: Sequence[int | None], gpus: Sequence[Gpu] = ()) -> KernelPlan:
    """The plan of a call or of a prompt's chunks.

    ``limits_mib``: vLLM's limits on a chunk's logits to reckon with, each a cut; None: rows are not split.
    """
    chunks = chunks_of(asked)
    fast = _together(
        fast_kernel(rows=chunk.rows, keys=chunk.keys, heads=asked.heads, head_dim=asked.head_dim, seen=chunk.seen)
        for chunk in chunks
    )
    fast = tuple(_times(kernel, asked.layers) for kernel in fast)
    cuts = tuple(_cut(asked, chunks, limit, fast=fast, gpus=gpus) for limit in limits_mib)
    first = cuts[0]
    return KernelPlan(
        head_chunk_size=first.head_chunk_size,
        k_chunk_size=first.k_chunk_size,
        matmuls=largest(first.chunks).matmuls,
        asked=asked,
        collapse=_collapse(asked, first),
        fast_flops=sum(kernel.count * kernel.matmul_flops for kernel in fast),
        fast_bytes=sum(kernel.count * (kernel.read + kernel.written) for kernel in fast),
        cuts=cuts,
        gpus=tuple(gpus),
    )


def chunks_of(asked: Asked) -> tuple[Chunk, ...]:
    """The prompt's chunks; a call alone is one."""
    if asked.prompt_tokens is None:
        seen = asked.rows * (asked.keys if asked.window_keys is None else asked.window_keys)
        return (Chunk(1, asked.rows, asked.keys, asked.keys, seen),)
    return prompt_chunks(
        prompt_tokens=asked.prompt_tokens,
        chunk_tokens=asked.chunk_tokens or asked.prompt_tokens,
        compress_ratio=asked.compress_ratio or 1,
        dcp=asked.dcp or 1,
    )


def _cut(
    asked: Asked, chunks: Sequence[Chunk], limit_mib: int | None, *, fast: Sequence[Kernel], gpus: Sequence[Gpu]
) -> Cut:
    calls = [_calls(asked, chunk, limit_mib) for chunk in chunks]
    kernels = _together(
        _times(kernel, call.count * asked.layers)
        for call in (call for own in calls for call in own)
        for kernel in fallback_kernels(call.plan, head_dim=asked.head_dim)
    )
    shown = tuple(_planned_chunk(chunk, own) for chunk, own in zip(chunks, calls, strict=True))
    most = largest(shown)
    return Cut(
        max_logits_mib=limit_mib,
        calls=asked.layers * sum(one.calls for one in shown),
        rows=max(own[0].plan.rows for own in calls),
        head_chunk_size=most.head_chunk_size,
        k_chunk_size=most.k_chunk_size,
        matmuls=asked.layers * sum(one.matmuls for one in shown),
        launches=sum(kernel.count for kernel in kernels),
        matmul_flops=sum(kernel.count * kernel.matmul_flops for kernel in kernels),
        bytes_moved=sum(kernel.count * (kernel.read + kernel.written) for kernel in kernels),
        chunks=shown,
        floors=tuple(_floor(asked, kernels, fast, gpu) for gpu in gpus),
    )


def largest(chunks: Sequence[PlannedChunk]) -> PlannedChunk:
    """The chunk with most scores: the last but for a short end."""
    return max(chunks, key=lambda chunk: chunk.rows * chunk.keys)


def _calls(asked: Asked, chunk: Chunk, limit_mib: int | None) -> tuple[_Call, ...]:
    """The largest first."""
    limit = None if limit_mib is None else limit_mib * MIB
    return tuple(
        _Call(count, chunk_plan(rows=rows, keys=chunk.keys, heads=asked.heads, budget_bytes=asked.budget_bytes))
        for count, rows in split_rows(chunk.rows, chunk.all_keys, max_logits_bytes=limit)
    )


def _planned_chunk(chunk: Chunk, calls: Sequence[_Call]) -> PlannedChunk:
    return PlannedChunk(
        chunk=chunk.number,
        rows=chunk.rows,
        keys=chunk.keys,
        calls=sum(call.count for call in calls),
        head_chunk_size=calls[0].plan.head_chunk_size,
        k_chunk_size=calls[0].plan.k_chunk_size,
        matmuls=sum(call.count * call.plan.matmuls for call in calls),
    )


def _floor(asked: Asked, kernels: Sequence[Kernel], fast: Sequence[Kernel], gpu: Gpu) -> Floor:
    fast_ms = sum(floor_ms(kernel, gpu, units="fp8") for kernel in fast)
    products_ms = sum(floor_ms(replace(kernel, read=0, written=0), gpu, units="fp8") for kernel in fast)
    return Floor(
        gpu=gpu.name,
        torch=torch_floor(kernels, gpu, units=asked.matmul),
        fast_ms=rounded_down(fast_ms, digits=MS_DIGITS),
        fast_bound="compute" if products_ms >= fast_ms / 2 else "memory",
    )


def _collapse(asked: Asked, cut: Cut) -> Collapse:
    beyond = most_keys_of_two_heads(rows=asked.rows, budget_bytes=asked.budget_bytes)
    found = [chunk.chunk for chunk in cut.chunks if chunk.head_chunk_size == 1]
    if asked.prompt_tokens is None or asked.chunk_tokens is None or not found:
        return Collapse(rows=asked.rows, beyond_keys=beyond)
    return Collapse(
        rows=asked.rows,
        beyond_keys=beyond,
        chunks=len(found),
        first_chunk=found[0],
        tokens=min(found[0] * asked.chunk_tokens, asked.prompt_tokens),
    )


def _times(kernel: Kernel, times: int) -> Kernel:
    return replace(kernel, count=kernel.count * times)


def _together(kernels: Iterable[Kernel]) -> tuple[Kernel, ...]:
    """Kernels that are alike as one value."""
    counts: Counter[Kernel] = Counter()
    for kernel in kernels:
        counts[replace(kernel, count=1)] += kernel.count
    return tuple(replace(kernel, count=count) for kernel, count in counts.items())
