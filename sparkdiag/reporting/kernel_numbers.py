"""The kernels of a run in numbers: what the plan says of its prompt, beside what the ledger measured. Pure.

Nothing is assumed: a number that neither the scenario nor the ledger tells is said not to be known.
"""

from collections.abc import Iterator, Sequence

from sparkdiag.evidence.kernels import Asked, Cut, Gpu, KernelPlan
from sparkdiag.evidence.ledger import KernelSeen, RankLedger
from sparkdiag.evidence.stored import StoredRun
from sparkdiag.kernels.gpus import gpu_of_device
from sparkdiag.kernels.planned import planned
from sparkdiag.kernels.prompt import DEFAULT_MAX_LOGITS_MIB
from sparkdiag.reporting.kernel_plan_numbers import binary_size, decimal_size, least_time
from sparkdiag.reporting.phrases import scenario_of, seconds
from sparkdiag.reporting.safe_text import code, prose, table
from sparkdiag.scenario.model import Scenario

MOST_CHUNKS = 20_000
"""A prompt of more chunks is not planned for a page."""
_MOST_KERNELS = 24
_UNKNOWN = "not known"

Seen = tuple[RankLedger, KernelSeen]


def kernel_numbers(stored: StoredRun, most_kernels: int = _MOST_KERNELS) -> str:
    """Tables of the plan and of what was measured; empty for a run without a chunk plan and without a ledger."""
    scenario = scenario_of(stored)
    seen = [
        (rank, kernel) for rank in (stored.ledger.ranks if stored.ledger is not None else ()) for kernel in rank.kernels
    ]
    asked = _asked(stored, scenario, seen) if scenario is not None else "the scenario cannot be read"
    if isinstance(asked, str):
        return "\n\n".join([f"No chunk plan: {prose(asked)}.", *_measured(seen, most_kernels)]) if seen else ""
    gpu = _gpu(stored)
    limits = (None,) if scenario is not None and scenario.lab else (None, DEFAULT_MAX_LOGITS_MIB)
    plan = planned(asked, limits_mib=limits, gpus=(gpu,) if gpu is not None else ())
    stalls = {signature.function for signature in scenario.signatures} if scenario is not None else set()
    fallback = next((one for one in seen if one[1].function in stalls), None)
    blocks = [
        f"{_lead(asked)} Planned is what the torch fallback makes of the whole prompt; the ledger tells of what ran.",
        _plan_table(plan, fallback),
        *_measured(seen, most_kernels),
        _floors(stored, plan, gpu),
    ]
    return "\n\n".join(filter(None, blocks))


def _asked(stored: StoredRun, scenario: Scenario, seen: Sequence[Seen]) -> Asked | str:
    """What the plan is made for, else why there is none."""
    sent, work = stored.observation.client.sent, scenario.work
    heads = work.heads or next((kernel.heads for _, kernel in seen if kernel.heads is not None), None)
    tokens = sent.tokens if sent is not None else None
    if tokens is None:
        return "no prompt was sent"
    if work.budget_bytes is None or heads is None:
        missing = "work.budget_bytes" if work.budget_bytes is None else "work.heads"
        return f"the scenario does not say {missing}"
    chunk, ratio = scenario.server.chunk_tokens, work.compress_ratio
    dcp = stored.record.dcp.size if stored.record.dcp is not None else None
    dcp = dcp or scenario.server.dcp
    if tokens < ratio or -(-tokens // chunk) > MOST_CHUNKS:
        return f"a prompt of {tokens} tokens in chunks of {chunk} is not planned"
    layers = work.layers or max((rank.layers for rank, _ in seen), default=0) or 1
    return Asked(
        rows=min(chunk, tokens),
        keys=-(-(tokens // ratio) // dcp),
        heads=heads,
        head_dim=scenario.route.head_dim,
        budget_bytes=work.budget_bytes,
        matmul="fp32",
        prompt_tokens=tokens,
        chunk_tokens=chunk,
        compress_ratio=ratio,
        dcp=dcp,
        layers=layers,
        scenario=scenario.name,
    )


def _gpu(stored: StoredRun) -> Gpu | None:
    names = set(stored.record.host.gpus) if stored.record.host is not None else set()
    return gpu_of_device(names.pop()) if len(names) == 1 else None


def _lead(asked: Asked) -> str:
    layers = "one layer" if asked.layers == 1 else f"{asked.layers:,} layers"
    return (
        f"{asked.prompt_tokens or 0:,} tokens in chunks of {asked.chunk_tokens or 0:,}, {asked.compress_ratio} "
        f"token{'' if asked.compress_ratio == 1 else 's'} a key, "
        f"DCP {asked.dcp}: {asked.keys:,} keys on a rank at the end, {asked.heads} heads of "
        f"{asked.head_dim}, {layers}; at most {binary_size(asked.budget_bytes)} of fp32 scores a pass."
    )


def _plan_table(plan: KernelPlan, fallback: Seen | None) -> str:
    cuts = (plan.cuts[0], *(cut for cut in plan.cuts[1:] if cut.calls != plan.cuts[0].calls))
    head = ("", *(f"planned, {_cut_name(cut)}" for cut in cuts), _seen_name(fallback))
    shown = dict(_seen_rows(fallback[1])) if fallback is not None else {}
    rows = [(name, *cells, shown.get(name, "–")) for name, cells in _planned_rows(cuts)]
    return table(head, rows)


def _cut_name(cut: Cut) -> str:
    return "rows not split" if cut.max_logits_mib is None else f"rows split at {cut.max_logits_mib:,} MiB"


def _seen_name(fallback: Seen | None) -> str:
    if fallback is None:
        return "the fallback was not recorded"
    rank, kernel = fallback
    return f"recorded: {code(kernel.function, at_most=80)} on {code(rank.rank, at_most=60)}"


def _planned_rows(cuts: Sequence[Cut]) -> Iterator[tuple[str, list[str]]]:
    yield "chunks", [f"{len(cut.chunks):,}" for cut in cuts]
    yield "calls", [f"{cut.calls:,}" for cut in cuts]
    yield "most rows of a call", [f"{cut.rows:,}" for cut in cuts]
    yield "most keys of a call", [f"{max(chunk.keys for chunk in cut.chunks):,}" for cut in cuts]
    yield "heads a pass, largest call", [f"{cut.head_chunk_size:,}" for cut in cuts]
    yield "keys a pass, largest call", [f"{cut.k_chunk_size:,}" for cut in cuts]
    yield "matmuls", [f"{cut.matmuls:,}" for cut in cuts]
    yield "kernels launched", [f"{cut.launches:,}" for cut in cuts]
    yield "FLOPs of the matmuls", [decimal_size(cut.matmul_flops, "FLOP") for cut in cuts]
    yield "bytes read and written", [decimal_size(cut.bytes_moved, "B") for cut in cuts]


def _seen_rows(kernel: KernelSeen) -> Iterator[tuple[str, str]]:
    yield "chunks", f"{kernel.chunks:,}"
    yield "calls", f"{kernel.calls:,}"
    yield "most rows of a call", f"{kernel.rows_max:,}" if kernel.rows_max is not None else _UNKNOWN
    yield "most keys of a call", f"{kernel.keys_max:,}" if kernel.keys_max is not None else _UNKNOWN
    heads = " and ".join(map(str, kernel.head_chunk_seen))
    yield "heads a pass, largest call", f"{heads} on the stacks" if heads else _UNKNOWN
    if kernel.matmuls is not None:
        yield "matmuls", f"{kernel.matmuls:,}, by the plan of the recorded calls"


def _measured(seen: Sequence[Seen], most: int) -> Iterator[str]:
    """A table of the kernels that the ledger recorded; nothing where there are none."""
    if not seen:
        yield "No kernel was recorded: there is no ledger of this prefill."
        return
    head = ("kernel", "rank", "calls", "mean a call", "all calls", "mean a planned matmul", "what the time is")
    yield table(head, [_row(rank, kernel) for rank, kernel in seen[:most]])
    if len(seen) > most:
        yield f"… and {len(seen) - most} more in the run folder."


def _row(rank: RankLedger, kernel: KernelSeen) -> tuple[str, ...]:
    return (
        code(kernel.function, at_most=80),
        code(rank.rank, at_most=60),
        f"{kernel.calls:,}",
        _time(kernel.took_s / kernel.calls) if kernel.calls else "–",
        _time(kernel.took_s),
        _time(kernel.took_s / kernel.matmuls) if kernel.matmuls else "–",
        "the device was waited for" if kernel.synced else "on the host; the device was not waited for",
    )


def _time(value_s: float) -> str:
    """``118 µs``, ``4.21 ms``, from a second on as everywhere."""
    if value_s >= 1:
        return seconds(value_s)
    return f"{value_s * 1e3:.3g} ms" if value_s >= 1e-3 else f"{value_s * 1e6:.3g} µs"


def _floors(stored: StoredRun, plan: KernelPlan, gpu: Gpu | None) -> str:
    names = stored.record.host.gpus if stored.record.host is not None else ()
    if gpu is None:
        why = "no GPU was found" if not names else f"no peaks of {', '.join(sorted(set(names)))} are known"
        return f"Least times: {_UNKNOWN} ({prose(why)})."
    floor = plan.cuts[0].floors[0]
    note = " (with a figure that could not be confirmed)" if gpu.unconfirmed else ""
    return (
        f"Least times of one rank on one {prose(gpu.title)}{note}, the whole prompt, rows not split: torch fallback "
        f"{_floor(floor.torch.floor_ms)} ({_floor(floor.torch.uncached_ms)} if every byte passed the memory), "
        f"FP8 path {_floor(floor.fast_ms)}; the time to launch kernels is not counted."
    )


def _floor(value_ms: float) -> str:
    return f"{least_time(value_ms)} ms" if value_ms < 10_000 else f"{least_time(value_ms / 1000)} s"
