"""What a ledger comes to, as one sentence: plain text, made safe by whoever shows it. Pure."""

from collections.abc import Iterable

from pydantic import JsonValue

from sparkdiag.evidence.ledger import FusedSeen, KernelSeen, LedgerSummary, RankLedger

TELLING_OPEN_S = 10.0
"""A call that was open for longer at the end is told."""
_PLATFORM = ("is_cuda", "is_rocm", "is_xpu", "is_cpu", "capability", "device")


def sentence_of(summary: LedgerSummary) -> str:
    """``DCP 2; fused path not tried in 58 of 58 chunks because dcp_world_size = 2; every indexer layer of every chunk
    in _fp8_mqa_logits_torch, head_chunk_size 1``."""
    if summary.nothing_because is not None:
        return f"nothing was recorded of the prefill: {summary.nothing_because}"
    sizes = list(dict.fromkeys(rank.dcp_world_size for rank in summary.ranks if rank.dcp_world_size is not None))
    parts = [f"DCP {sizes[0]}"] if len(sizes) == 1 else []
    if summary.without:
        known = len(summary.ranks)
        parts.append(f"of {known} of {known + len(summary.without)} ranks (no ledger of {', '.join(summary.without)})")
    if len(sizes) > 1:
        parts.append("ranks disagree on the DCP size: " + ", ".join(_sizes(summary.ranks)))
    groups = alike(summary.ranks)
    for group in groups:
        who = "" if len(groups) == 1 else f"{', '.join(rank.rank for rank in group)}: "
        parts.append(who + "; ".join(_clauses(group, expected=summary.expected_chunks)))
    if summary.dropped:
        calls = "1 call has" if summary.dropped == 1 else f"up to {summary.dropped} calls have"
        parts.append(f"{calls} no line, and this tells only of those that have one")
    return "; ".join(parts)


def _sizes(ranks: Iterable[RankLedger]) -> list[str]:
    return [f"{rank.dcp_world_size} on {rank.rank}" for rank in ranks]


def alike(ranks: tuple[RankLedger, ...]) -> list[list[RankLedger]]:
    """Ranks of which the same can be said, the furthest of each group first; how far each came is no difference."""
    groups: dict[object, list[RankLedger]] = {}
    for rank in ranks:
        groups.setdefault(_kind(rank), []).append(rank)
    return [sorted(group, key=lambda rank: -rank.chunks) for group in groups.values()]


def _kind(rank: RankLedger) -> object:
    """What is said of a rank, with a count as what it is of all its chunks."""
    fused, kernels = rank.fused, tuple(sorted(kernel.function for kernel in rank.kernels))

    def of_all(count: int) -> int | str:
        return "all" if count == rank.chunks else count

    ways: tuple[object, ...] = ()
    if fused is not None:
        because = tuple((one.fact, str(one.value), of_all(one.chunks)) for one in fused.not_tried_because)
        said = (fused.accepted, fused.refused, fused.mixed, fused.not_tried, fused.unexplained)
        counts = (*said, fused.unanswered, fused.unknown)
        ways = (*map(of_all, counts), because, fused.not_guards)
    return rank.chunks > 0, rank.counted, ways, rank.whole_in, kernels, rank.elsewhere > 0


def _clauses(group: list[RankLedger], *, expected: int | None) -> Iterable[str]:
    rank = group[0]
    if not rank.chunks:
        yield "no prefill call was recorded"
        return
    others = [f"{other.rank}: {other.chunks}" for other in group[1:] if other.chunks != rank.chunks]
    total = _total(rank, expected=expected) + (f" ({', '.join(others[:4])})" if others else "")
    if rank.fused is not None:
        yield _fused(rank.fused, rank, total=total)
        yield _kernels(rank)
    elif rank.no_fused_because is not None:
        yield f"in {total} nothing is known of the fused path ({rank.no_fused_because})"
        yield _kernels(rank)
    else:
        yield f"{total}: {_kernels(rank)}"
    if rank.capturing:
        yield f"{rank.capturing} calls were made while a CUDA graph was captured, whose replays are not seen"
    for one in group:
        if one.open_function is not None and (one.open_s or 0) >= TELLING_OPEN_S:
            yield f"at the end {one.rank} had been in {one.open_function} for {one.open_s:.0f} s"


def _total(rank: RankLedger, *, expected: int | None) -> str:
    """``7 chunks begun (of 64)``."""
    count = rank.chunks
    if rank.counted == "calls":
        return f"{count} calls (no layer was named, so that chunks cannot be told)"
    word = "chunk" if count == 1 else "chunks"
    if expected is None or count == expected:
        return f"{count} {word}"
    if count < expected:
        return f"{count} {word} begun (of {expected})"
    return f"{count} {word}, where the prompt alone is {expected}"


def _fused(fused: FusedSeen, rank: RankLedger, *, total: str) -> str:
    tried = fused.accepted + fused.refused + fused.mixed + fused.unanswered
    if fused.unknown and not tried and not fused.not_tried:
        return f"whether the fused path was tried is not known in {total}: lines are missing"
    if not tried:
        return f"fused path not tried in {fused.not_tried} of {total}{_because(fused)}{_unknown(fused)}"
    parts = []
    if fused.accepted == rank.chunks:
        return f"fused path accepted in {fused.accepted} of {total}" + _not_guards(fused)
    if fused.accepted:
        parts.append(f"accepted in {fused.accepted}")
    if fused.refused:
        parts.append(f"returned False in {fused.refused}{_platform(rank.platform)}")
    if fused.mixed:
        parts.append(f"went both ways within {fused.mixed}")
    if fused.unanswered:
        parts.append(f"gave no answer in {fused.unanswered}")
    if fused.not_tried:
        parts.append(f"not tried in {fused.not_tried}{_because(fused)}")
    return f"fused path tried in {tried} of {total}: " + ", ".join(parts) + _unknown(fused) + _not_guards(fused)


def _unknown(fused: FusedSeen) -> str:
    return f", in {fused.unknown} it is not known whether it was tried: lines are missing" if fused.unknown else ""


def _because(fused: FusedSeen) -> str:
    said = [
        f"{one.fact} = {_value(one.value)}" + (f" in {one.chunks}" if one.chunks != fused.not_tried else "")
        for one in fused.not_tried_because
    ]
    because = f" because {' and '.join(said)}" if said else ""
    if not fused.unexplained:
        return because
    where = "" if fused.unexplained == fused.not_tried else f" in {fused.unexplained}"
    return f"{because}{' and' if said else ''}{where} for a reason that is not known: no guard that is known said no"


def _not_guards(fused: FusedSeen) -> str:
    if not fused.not_guards:
        return ""
    return f" (it was tried although {' and '.join(fused.not_guards)} would have said no: no guard of this revision)"


def _platform(platform: dict[str, JsonValue]) -> str:
    told = [f"{name} {_value(platform[name])}" for name in _PLATFORM if platform.get(name) not in (None, False)]
    return f" (platform: {', '.join(told)})" if told else ""


def _value(value: JsonValue) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _kernels(rank: RankLedger) -> str:
    if not rank.kernels:
        return "no known kernel was recorded"
    if rank.whole_in is not None and rank.counted == "chunks":
        if rank.fused is not None and rank.whole_in == rank.fused.function:
            return f"{_layers(rank.layers)} of every chunk"
        return f"every indexer layer of every chunk in {_kernel(rank.kernels[0])}"
    said = ", ".join(f"{_kernel(one)} in {one.calls} calls" for one in rank.kernels)
    return said + (f", and {rank.elsewhere} layers of chunks in no known kernel" if rank.elsewhere else "")


def _layers(count: int) -> str:
    return "every indexer layer" if count != 1 else "the indexer layer"


def _kernel(kernel: KernelSeen) -> str:
    least, most = kernel.head_chunk_size, kernel.head_chunk_size_most
    seen = ", ".join(map(str, kernel.head_chunk_seen))
    if least is None:
        return f"{kernel.function}, head_chunk_size {seen} on the stacks" if seen else kernel.function
    planned = f"{least}" if most in (None, least) else f"{most} down to {least}"
    if not seen:
        return f"{kernel.function}, head_chunk_size {planned} by the plan"
    differs = "" if seen == planned else f" on the stacks, {planned} by the plan"
    return f"{kernel.function}, head_chunk_size {seen}{differs}"
