"""What the server's own counters and the GPUs showed, folded reading by reading."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sparkdiag.evidence.timeline import GpuPoint, MetricPoint
from sparkdiag.judging.numbers import finite

_Counters = tuple[float | None, float | None, float | None]


@dataclass(frozen=True, slots=True)
class KvRise:
    """One reading of KV cache use that was higher than all before."""

    seen_s: float
    risen_s: float
    """Between this reading and the one before."""
    use: float
    """Share of the cache, beyond what was in use when the prompt was sent."""


@dataclass(frozen=True, slots=True)
class Meters:
    """``/metrics`` since the prompt was sent."""

    t_s: float = -math.inf
    """The reading counted last."""
    kv_before: float = 0.0
    """KV use when the prompt was sent: other requests', never this one's."""
    kv_level: float = 0.0
    kv_read_s: tuple[float, ...] = ()
    """The last two readings of KV use."""
    prefill_read_s: float | None = None
    """The last one before the first token."""
    rises: tuple[KvRise, ...] = ()
    """Before the first token."""
    counters: _Counters | None = None
    moved_s: float | None = None
    """When KV use or a counter was last seen to change; None where it never was."""
    most_requests: float = 1.0
    arrived: bool = False
    """The engine was seen to run a request."""
    queued: bool = False
    """By the last reading the engine ran nothing while something waited."""
    health: int | None = None

    @property
    def others(self) -> int:
        """Most requests that ran or queued at once, beyond this one: time spent behind them is no stall."""
        return int(self.most_requests) - 1

    def read_since(self, at_s: float) -> bool:
        """Whether KV use was read at least twice since then."""
        return len(self.kv_read_s) == 2 and self.kv_read_s[0] >= at_s

    def plus(
        self, points: Sequence[MetricPoint], *, sent_s: float, until_s: float, first_token_s: float | None
    ) -> "Meters":
        """With the readings later than the last one counted and not after ``until_s``."""
        meters = self
        for at_s, point in _newer(points, after_s=self.t_s, until_s=until_s):
            use = finite(point.kv_cache_usage)
            if at_s <= sent_s:
                level = meters.kv_before if use is None else use
                meters = replace(meters, t_s=at_s, kv_before=level, kv_level=level)
                continue
            meters = _with_requests(meters, point, at_s)
            if use is not None:
                in_prefill = first_token_s is None or at_s <= first_token_s
                meters = _with_use(meters, use, at_s=at_s, sent_s=sent_s, in_prefill=in_prefill)
        return meters


def _newer(points: Sequence[MetricPoint], *, after_s: float, until_s: float) -> list[tuple[float, MetricPoint]]:
    """Looked for from the end: a long run's old readings are not walked through at every look."""
    found: list[tuple[float, MetricPoint]] = []
    for point in reversed(points):
        at_s = finite(point.t_s)
        if at_s is None or at_s > until_s:
            continue
        if at_s <= after_s:
            break
        found.append((at_s, point))
    return sorted(found, key=lambda pair: pair[0])


def _with_use(meters: Meters, use: float, *, at_s: float, sent_s: float, in_prefill: bool) -> Meters:
    meters = replace(meters, kv_read_s=(*meters.kv_read_s[-1:], at_s))
    if not in_prefill:
        return meters
    before_s = sent_s if meters.prefill_read_s is None else meters.prefill_read_s
    if use <= meters.kv_level + 1e-6:
        return replace(meters, prefill_read_s=at_s)
    rise = KvRise(seen_s=at_s, risen_s=(before_s + at_s) / 2, use=use - meters.kv_before)
    return replace(meters, prefill_read_s=at_s, kv_level=use, rises=(*meters.rises, rise))


def _with_requests(meters: Meters, point: MetricPoint, at_s: float) -> Meters:
    now: _Counters = (point.kv_cache_usage, point.generation_tokens_total, point.iterations_total)
    before = meters.counters or (None, None, None)
    moved = any(a is not None and b is not None and a != b for a, b in zip(before, now, strict=True))
    running, waiting = point.requests_running or 0, point.requests_waiting or 0
    requests = running + waiting
    return replace(
        meters,
        t_s=at_s,
        counters=(
            before[0] if now[0] is None else now[0],
            before[1] if now[1] is None else now[1],
            before[2] if now[2] is None else now[2],
        ),
        moved_s=at_s if moved else meters.moved_s,
        most_requests=requests if meters.most_requests < requests < 1e9 else meters.most_requests,
        arrived=meters.arrived or running >= 1,
        queued=not running and waiting > 0,
        health=meters.health if point.health_status is None else point.health_status,
    )


@dataclass(frozen=True, slots=True)
class Span:
    """Least and most of a quantity."""

    least: float
    most: float

    def plus(self, value: float) -> "Span":
        return Span(least=min(self.least, value), most=max(self.most, value))


@dataclass(frozen=True, slots=True)
class Gpus:
    """GPU readings: recorded, never decisive."""

    t_s: Mapping[int, float] = field(default_factory=dict)
    """By GPU, the reading counted last."""
    use_percent: Span | None = None
    power_w: Span | None = None

    def plus(self, points: Sequence[GpuPoint]) -> "Gpus":
        """With the readings later than the last one counted of the same GPU."""
        last, use, power = dict(self.t_s), self.use_percent, self.power_w
        for point in reversed(points):
            if not point.t_s > self.t_s.get(point.index, -math.inf):
                break
            last[point.index] = max(point.t_s, last.get(point.index, point.t_s))
            use, power = _widened(use, point.utilisation_percent), _widened(power, point.power_w)
        return Gpus(t_s=last, use_percent=use, power_w=power)


def _widened(span: Span | None, value: float | None) -> Span | None:
    number = finite(value)
    if number is None:
        return span
    return Span(number, number) if span is None else span.plus(number)
