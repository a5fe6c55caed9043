"""Time to first token, foreseen by two clocks that know nothing of each other: loop variables and KV cache use."""

from dataclasses import dataclass
from itertools import pairwise

from sparkdiag.evidence.timeline import KvCapacity
from sparkdiag.evidence.verdict import Forecast
from sparkdiag.judging.fit import Remaining, Step, forecast_rest
from sparkdiag.judging.meters import Meters
from sparkdiag.judging.numbers import finite
from sparkdiag.judging.progress import PrefillPlan, WorkPoint


@dataclass(frozen=True, slots=True)
class Moment:
    """When the prompt was sent and until when to look, on the run clock."""

    sent_s: float
    now_s: float

    @property
    def elapsed_s(self) -> float:
        return self.now_s - self.sent_s


def _steps(points: list[WorkPoint]) -> list[Step]:
    return [
        Step(
            seconds=after.at_s - before.at_s,
            chunks=after.chunks - before.chunks,
            weighted=max(0.0, after.weighted - before.weighted),
        )
        for before, after in pairwise(points)
    ]


def _rest(total: tuple[float, float], point: WorkPoint) -> tuple[float, float]:
    return max(0.0, total[0] - point.chunks), max(0.0, total[1] - point.weighted)


def forecast_from_loops(points: list[WorkPoint], plan: PrefillPlan, moment: Moment) -> Forecast | None:
    """From the loop variables' work points (monotone); None while there are too few."""
    if len(points) < 4:
        return None
    total, last = plan.total(), points[-1]
    rest = forecast_rest(_steps(points), total=total, rest=_rest(total, last))
    if rest is None or last.chunks <= points[0].chunks:
        return None
    return _forecast(rest, since_s=last.at_s, moment=moment, done=last.weighted / total[1], source="loop-variables")


def _forecast(
    rest: Remaining, *, since_s: float, moment: Moment, done: float, source: str, spare_s: float = 0.0
) -> Forecast:
    base = since_s - moment.sent_s
    low = max(base + rest.low_s, moment.elapsed_s)
    best = max(base + rest.best_s, low)
    return Forecast(
        low_s=low,
        best_s=best,
        high_s=max(base + rest.high_s + spare_s, best),
        fraction_done=min(1.0, max(0.0, done)),
        source="loop-variables" if source == "loop-variables" else "kv-cache-usage",
    )


@dataclass(frozen=True, slots=True)
class KvPace:
    """KV cache use since the prompt was sent, as prompt tokens that have blocks."""

    rises: tuple[tuple[float, float], ...]
    """(run clock, tokens with blocks) at each reading that was higher than all before."""
    flat_s: float
    """How long the last level has stood."""
    tokens_known: bool


def kv_tokens(capacity: KvCapacity | None, *, dcp: int) -> float | None:
    """Tokens the whole KV cache holds: with DCP a block holds ``block_size * dcp`` tokens of the prompt."""
    if capacity is None:
        return None
    tokens = finite(capacity.num_blocks * capacity.block_size_tokens * max(1, dcp))
    return tokens if tokens and tokens > 0 else None


def kv_pace(meters: Meters, *, cache_tokens: float | None, moment: Moment) -> KvPace | None:
    """Rises of the use above its level when the prompt was sent; None where KV use was never read since."""
    if meters.prefill_read_s is None:
        return None
    risen_s = meters.rises[-1].risen_s if meters.rises else moment.sent_s
    return KvPace(
        rises=tuple([(rise.risen_s, rise.use * (cache_tokens or 1.0)) for rise in meters.rises]),
        flat_s=max(0.0, meters.prefill_read_s - risen_s),
        tokens_known=cache_tokens is not None,
    )


def forecast_from_kv(pace: KvPace, plan: PrefillPlan, moment: Moment) -> Forecast | None:
    """From KV use. Blocks are allotted when a chunk is scheduled, so a rise means that the chunk before it is done
    (or, with a queue of two batches, the one before that: the interval allows for one more). None without the
    cache's capacity, with too few rises, or when more is in use than this prompt needs (somebody else's)."""
    if not pace.tokens_known or len(pace.rises) < 4 or pace.rises[-1][1] > plan.tokens * 1.1 + plan.chunk_tokens:
        return None
    points = _kv_points(pace, plan)
    total, last = plan.total(), points[-1]
    rest = forecast_rest(_steps(points), total=total, rest=_rest(total, last))
    if rest is None or last.chunks <= points[0].chunks:
        return None
    chunk_s = rest.high_s / max(1.0, total[0] - last.chunks)
    last_pace_s = (points[-1].at_s - points[-2].at_s) / max(1.0, last.chunks - points[-2].chunks)
    return _forecast(
        rest,
        since_s=last.at_s,
        moment=moment,
        done=last.weighted / total[1],
        source="kv-cache-usage",
        spare_s=max(2 * chunk_s, last_pace_s),
    )


def _kv_points(pace: KvPace, plan: PrefillPlan) -> list[WorkPoint]:
    points: list[WorkPoint] = []
    before = 0.0
    for at_s, with_blocks in pace.rises:
        tokens = min(with_blocks, float(plan.tokens))
        finished = min(float(plan.tokens), max(before, tokens - plan.chunk_tokens))
        chunks, weighted = plan.features(finished, 0.0)
        points.append(WorkPoint(at_s=at_s, chunks=chunks, weighted=weighted))
        before = tokens
    return points
