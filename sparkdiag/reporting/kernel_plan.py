"""What the terminal shows of ``kernel plan``: the passes, their work, where it collapses, the least times. Pure."""

from collections.abc import Sequence
from itertools import pairwise

from sparkdiag.evidence.kernels import FIGURES, Asked, Collapse, Cut, Gpu, KernelPlan, PlannedChunk
from sparkdiag.harmless.excerpt import one_line
from sparkdiag.reporting.kernel_plan_numbers import binary_size, decimal_size, least_time, time_unit
from sparkdiag.reporting.route_rows import wrapped

_GAP = 2
_INDENT = "  "
_FIGURE_WORDS = {
    "fp32_tflops": "fp32 TFLOP/s",
    "tf32_tflops": "tf32 TFLOP/s",
    "fp8_tflops": "fp8 TFLOP/s",
    "memory_gb_s": "memory GB/s",
    "cache_mib": "cache MiB",
}


def plan_text(found: KernelPlan, *, columns: int | None) -> str:
    """Plain text, nothing in it able to steer a terminal; broken to ``columns`` where they are given."""
    cuts = _differing(found.cuts)
    blocks = [
        _told(_heading(found.asked), columns),
        _chunks(found) if found.asked.prompt_tokens is not None else [],
        _work(found, cuts),
        _told(_collapse(found), columns),
        _unsplit(found, cuts, columns),
        *(_floors(found, cut, several=len(cuts) > 1) for cut in cuts[:1] if found.gpus),
        _notes(found, columns) if found.gpus else [],
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _told(text: str, columns: int | None) -> list[str]:
    return [text] if columns is None else wrapped(text, width=columns, hanging=2)


def _heading(asked: Asked) -> str:
    budget = binary_size(asked.budget_bytes)
    model = f"{_counted(asked.heads, 'head')} of {asked.head_dim:,}, at most {budget} of fp32 scores a pass"
    if asked.prompt_tokens is None:
        window = f", {asked.window_keys:,} of them inside a row's window" if asked.window_keys is not None else ""
        return f"One call of {_counted(asked.rows, 'row')} and {_counted(asked.keys, 'key')}{window}; {model}."
    by = f" (scenario {one_line(asked.scenario, limit=60)})" if asked.scenario else ""
    spread = f", {_counted(asked.keys, 'key')} on a rank at DCP {asked.dcp}" if asked.dcp else ""
    return (
        f"{_counted(asked.prompt_tokens, 'prompt token')}{by} in chunks of {asked.chunk_tokens or 0:,}, "
        f"{_counted(asked.compress_ratio or 1, 'token')} a key{spread}; {model}."
    )


def _differing(cuts: Sequence[Cut]) -> tuple[Cut, ...]:
    """The first cut, and those that come to other calls."""
    return (cuts[0], *(cut for cut in cuts[1:] if cut.calls != cuts[0].calls))


def _chunks(found: KernelPlan) -> list[str]:
    """The chunks at which the plan changes, one layer each."""
    cut = found.cuts[0]
    shown = _turning_points(cut.chunks)
    head = ("chunk", "rows", "keys", "heads a pass", "keys a pass", "matmuls")
    rows = [
        (str(one.chunk), *(f"{n:,}" for n in (one.rows, one.keys, one.head_chunk_size, one.k_chunk_size, one.matmuls)))
        for one in shown
    ]
    matmuls = sum(one.matmuls for one in cut.chunks)
    title = f"Chunks of one layer, {_cut_name(cut)} ({len(shown)} of {len(cut.chunks):,} shown):"
    total = f"{_INDENT}all {_counted(len(cut.chunks), 'chunk')}: {_counted(matmuls, 'matmul')} a layer"
    return [title, *_right_aligned((head, *rows)), total]


def _turning_points(chunks: Sequence[PlannedChunk]) -> tuple[PlannedChunk, ...]:
    """The first and the last three chunks, those at which a pass takes fewer heads, the first that slices its keys."""
    shown = {0, *range(max(len(chunks) - 3, 0), len(chunks))}
    for at, (before, chunk) in enumerate(pairwise(chunks), start=1):
        fewer_heads = chunk.head_chunk_size < before.head_chunk_size
        first_slices = before.k_chunk_size == before.keys and chunk.k_chunk_size < chunk.keys
        if fewer_heads or first_slices:
            shown.add(at)
    return tuple(chunks[at] for at in sorted(shown))


def _work(found: KernelPlan, cuts: Sequence[Cut]) -> list[str]:
    prompt = found.asked.prompt_tokens is not None
    largest = ", largest chunk" if prompt else ""
    lines: tuple[tuple[str, list[str]], ...] = (
        ("", [_cut_name(cut) for cut in cuts]),
        ("calls", [f"{cut.calls:,}" for cut in cuts]),
        ("most rows a call", [f"{cut.rows:,}" for cut in cuts]),
        (f"heads a pass{largest}", [f"{cut.head_chunk_size:,}" for cut in cuts]),
        (f"keys a pass{largest}", [f"{cut.k_chunk_size:,}" for cut in cuts]),
        ("matmuls", [f"{cut.matmuls:,}" for cut in cuts]),
        ("kernels launched", [f"{cut.launches:,}" for cut in cuts]),
        ("FLOPs of the matmuls", [decimal_size(cut.matmul_flops, "FLOP") for cut in cuts]),
        ("bytes read and written", [decimal_size(cut.bytes_moved, "B") for cut in cuts]),
    )
    label = max(len(name) for name, _ in lines)
    width = max(len(cell) for _, cells in lines for cell in cells)
    table = [
        f"{_INDENT}{name:<{label}}" + "".join(f"{'':{_GAP}}{cell:>{width}}" for cell in cells) for name, cells in lines
    ]
    return [f"Torch fallback (the incident's code), {_scope(found.asked)}:", *table]


def _scope(asked: Asked) -> str:
    if asked.prompt_tokens is None:
        return "the call"
    return f"the prompt, {'one layer' if asked.layers == 1 else f'{asked.layers:,} layers'}"


def _collapse(found: KernelPlan) -> str:
    collapse, asked = found.collapse, found.asked
    budget = binary_size(asked.budget_bytes)
    if asked.heads == 1:
        return "There is one head: each pass takes it."
    at = f"{_counted(collapse.rows, 'row')}"
    if collapse.beyond_keys == 0:
        text = f"At {at} a pass takes one head at any number of keys: the scores of two exceed {budget}."
    else:
        keys = _counted(collapse.beyond_keys, "key")
        text = f"At {at} a pass takes one head beyond {keys}: the scores of two heads exceed {budget}."
    return text if asked.prompt_tokens is None else f"{text} {_where(collapse)}"


def _where(collapse: Collapse) -> str:
    if collapse.tokens is None:
        return "No chunk of this prompt comes to that."
    return f"So it does in {_counted(collapse.chunks, 'chunk')}, the first of which ends at token {collapse.tokens:,}."


def _unsplit(found: KernelPlan, cuts: Sequence[Cut], columns: int | None) -> list[str]:
    same = [cut.max_logits_mib for cut in found.cuts[1:] if cut not in cuts]
    return _told(f"vLLM's limit of {same[0]} MiB on a chunk's logits splits no rows here.", columns) if same else []


def _cut_name(cut: Cut) -> str:
    return "rows not split" if cut.max_logits_mib is None else f"rows split at {cut.max_logits_mib:,} MiB"


def _floors(found: KernelPlan, cut: Cut, *, several: bool) -> list[str]:
    asked = found.asked
    names = {gpu.name: f"{gpu.title}{' *' if gpu.unconfirmed else ''}" for gpu in found.gpus}
    unit, ms = time_unit(max(one.torch.uncached_ms for one in cut.floors))
    head = ("", "matmuls", "others", "floor", "uncached", "FP8 floor")
    rows = [head]
    for one in cut.floors:
        torch = (one.torch.matmuls_ms, one.torch.others_ms, one.torch.floor_ms, one.torch.uncached_ms)
        matmuls, others, floor, uncached, fast = (least_time(time_ms / ms) for time_ms in (*torch, one.fast_ms))
        rows.append((names[one.gpu], matmuls, others, floor, uncached, fast))
    left = max(len(name) for name in names.values())
    widths = [max(len(row[place]) for row in rows) for place in range(1, len(head))]
    wide = sum(widths[:4]) + 3 * _GAP
    above = f"{_INDENT}{'':<{left}}{'':{_GAP}}{' torch fallback ':-^{wide}}{'':{_GAP}}{'fast path':>{widths[4]}}"
    table = [
        f"{_INDENT}{row[0]:<{left}}"
        + "".join(f"{'':{_GAP}}{cell:>{width}}" for cell, width in zip(row[1:], widths, strict=True))
        for row in rows
    ]
    split = f", {_cut_name(cut)}" if several else ""
    return [f"Least time in {unit}, {_scope(asked)}{split}; matmuls in {asked.matmul}:", above, *table]


def _notes(found: KernelPlan, columns: int | None) -> list[str]:
    fast = f"{decimal_size(found.fast_flops, 'FLOP')} inside the windows, {decimal_size(found.fast_bytes, 'B')}"
    lines = [
        *_told("floor: less is impossible at these peaks, even where the cache keeps all that it can.", columns),
        *_told("uncached: if every byte passed the memory; no floor. An H200 took 1.7 times as long in fp32.", columns),
        *_told(f"fast path: the same logits by FP8 tensor cores, {fast}.", columns),
        *_told("The time that it takes to launch kernels is not counted.", columns),
    ]
    if len(found.gpus) == 1:
        return [*lines, *_figures(found.gpus[0], columns)]
    if any(gpu.unconfirmed for gpu in found.gpus):
        lines += _told("* has a figure that could not be confirmed; --gpu NAME shows figures and sources.", columns)
    return lines


def _figures(gpu: Gpu, columns: int | None) -> list[str]:
    """Each figure with its source, which is to be copied and so never broken."""
    lines = ["", f"{gpu.title}, dense peaks:"]
    for name in FIGURES:
        figure = getattr(gpu, name)
        lines += [f"{_INDENT}{_FIGURE_WORDS[name]:<12}  {figure.value:>6,g}", f"{_INDENT * 2}{figure.source}"]
        if figure.unconfirmed is not None:
            because = f"{_INDENT * 2}not confirmed: {figure.unconfirmed}"
            lines += [because] if columns is None else wrapped(because, width=columns, hanging=4)
    return lines


def _right_aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return [
        _INDENT + (" " * _GAP).join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows
    ]


def _counted(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
