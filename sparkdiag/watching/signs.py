"""The first signs of a stall in what a server says of itself: a fold over metric points. Pure; the clock is data.

A sign is no stall. A long healthy prefill moves ``kv_cache_usage`` once a chunk only, one of a cached prompt nothing at
all, and a server that loads answers nobody: a sign leads to a closer look.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from sparkdiag.evidence.diagnosis import Traffic
from sparkdiag.evidence.processes import ProcessInfo
from sparkdiag.evidence.timeline import MetricPoint
from sparkdiag.watching.patience import Patience

SignKind = Literal["nothing-moves", "not-admitted", "no-answer", "process-gone", "no-output"]
Counters = tuple[float | None, ...]
ProcessKey = tuple[int, float]
_OK = 200
_OUTPUT = (0, 3)
"""Of the counters: tokens generated and requests finished."""


@dataclass(frozen=True, slots=True)
class Sign:
    """Something that a healthy server may show too."""

    kind: SignKind
    since_s: float
    """Since when it is so, as far as was seen."""
    text: str


@dataclass(frozen=True, slots=True)
class Seen:
    """What matters of all points so far; as small after hours as at the start."""

    at_s: float | None = None
    """The newest point."""
    counters: Counters | None = None
    """As told last."""
    running: float | None = None
    waiting: float | None = None
    moved_s: float | None = None
    """A counter was seen to move, or watching began (anew)."""
    output_s: float | None = None
    """A token was generated or a request ended, or watching began (anew)."""
    outputs: int = 0
    """How often that was seen."""
    busy_s: float | None = None
    """Requests are in flight since then."""
    starved_s: float | None = None
    """Requests wait since then, and none runs."""
    failing_s: float | None = None
    failures: int = 0
    """Scrapes in a row that got no answer, or one too late."""
    failure: str = ""
    told: bool = False
    """The newest point has counters."""
    answered: bool = False
    """It has answered since it was started, as far as was seen: it does not load any more."""
    movements: int = 0
    """How often a counter was seen to move, or another server in this one's place."""
    restarts: int = 0
    vanished: bool = False
    """No process of the server is left; so far no other has come."""
    processes: frozenset[ProcessKey] = frozenset()
    names: tuple[tuple[ProcessKey, str], ...] = ()
    gone_s: float | None = None
    gone: str = ""

    @property
    def in_flight(self) -> bool:
        """Requests run or wait, by the newest answer."""
        return (self.running or 0.0) > 0 or (self.waiting or 0.0) > 0

    @property
    def still_since_s(self) -> float | None:
        """Since when requests are in flight and nothing moves; None where none is."""
        if self.moved_s is None or self.busy_s is None or not self.in_flight:
            return None
        return max(self.moved_s, self.busy_s)

    @property
    def silent_since_s(self) -> float | None:
        """Since when requests are in flight, and none gets a token or ends; None where none is, or it is not told."""
        told = self.counters is not None and any(self.counters[place] is not None for place in _OUTPUT)
        if not told or self.output_s is None or self.busy_s is None or not self.in_flight:
            return None
        return max(self.output_s, self.busy_s)


def after_point(seen: Seen, point: MetricPoint, patience: Patience) -> Seen:
    """``seen`` with one more scrape."""
    if seen.at_s is not None and not 0 <= point.t_s - seen.at_s <= patience.gap_s:
        # The watcher slept, or its clock was set: of the time between nothing is known.
        seen = _anew(seen, point.t_s)
    counters = _counters(point)
    told = any(counter is not None for counter in (*counters, point.requests_running, point.requests_waiting))
    seen = _failing(replace(seen, at_s=point.t_s, told=told), point, patience)
    return _with_counters(seen, point, counters) if told else seen


def after_tree(seen: Seen, processes: Iterable[ProcessInfo], *, at_s: float) -> Seen:
    """``seen`` with the living processes that matter. Others in their place are another server: all starts anew."""
    found = {(process.pid, process.started_at_s): process.name for process in processes}
    keys, before = frozenset(found), seen.processes
    names = dict(seen.names)
    seen = replace(seen, processes=keys, names=tuple(found.items()))
    if keys == before or not (before or seen.vanished):
        return seen
    missing = before - keys
    if missing and keys & before:
        return replace(seen, gone_s=at_s, gone=", ".join(sorted(f"{names[key]} (pid {key[0]})" for key in missing)))
    return seen if keys & before else _another(seen, at_s)


def looked_at(seen: Seen) -> Seen:
    """A closer look was taken: that somebody is gone is known now, and no new sign."""
    return replace(seen, gone_s=None, gone="")


def sign_of(seen: Seen, patience: Patience) -> Sign | None:
    """The sign that is there now; the one that says most, where there are several."""
    if seen.at_s is None:
        return None
    if seen.gone_s is not None:
        return Sign("process-gone", seen.gone_s, f"{seen.gone} ended while other processes of the server live")
    if seen.failures >= patience.failures_in_a_row and seen.failing_s is not None:
        since_s = min(filter(None, (seen.failing_s, seen.still_since_s)), default=seen.failing_s)
        return Sign("no-answer", since_s, f"{seen.failure} ({seen.failures} times in a row)")
    still_s = seen.still_since_s
    if not seen.told or still_s is None:
        return None
    if seen.at_s - still_s < patience.patience_s:
        return _no_output(seen, patience)
    for_s = f"for {seen.at_s - still_s:.0f} s"
    if seen.starved_s is not None and seen.at_s - seen.starved_s >= patience.patience_s:
        return Sign("not-admitted", still_s, f"{seen.waiting:.0f} requests wait, none runs, nothing moves {for_s}")
    requests = f"{seen.running or 0:.0f} requests running, {seen.waiting or 0:.0f} waiting"
    return Sign("nothing-moves", still_s, f"{requests}, and no counter moved {for_s}")


def _no_output(seen: Seen, patience: Patience) -> Sign | None:
    """Things move, and nobody gets anything: a long prefill, healthy or crawling."""
    silent_s = seen.silent_since_s
    if seen.at_s is None or silent_s is None or seen.at_s - silent_s < patience.patience_s:
        return None
    requests = f"{seen.running or 0:.0f} requests running, {seen.waiting or 0:.0f} waiting"
    return Sign("no-output", silent_s, f"{requests}, and none got a token or ended for {seen.at_s - silent_s:.0f} s")


def traffic_of(seen: Seen) -> Traffic | None:
    """What the judge is told of the requests; None where the server has not told anything."""
    if seen.counters is None or seen.at_s is None or seen.moved_s is None:
        return None
    since_s = seen.still_since_s
    moved = None if since_s is None else seen.at_s <= since_s
    silent_s = seen.silent_since_s
    return Traffic(
        silent_s=None if silent_s is None else seen.at_s - silent_s,
        running=seen.running,
        waiting=seen.waiting,
        moved=moved,
        over_s=None if since_s is None else seen.at_s - since_s,
    )


def _counters(point: MetricPoint) -> Counters:
    # How many run or wait is none of them: requests that arrive change it while the engine hangs.
    return (
        point.generation_tokens_total,
        point.prompt_tokens_total,
        point.iterations_total,
        point.requests_finished_total,
        point.kv_cache_usage,
    )


def _anew(seen: Seen, at_s: float) -> Seen:
    """What is counted from some moment on is counted from ``at_s`` on."""
    return replace(
        seen,
        at_s=at_s,
        moved_s=at_s,
        output_s=at_s,
        busy_s=None,
        starved_s=None,
        failing_s=None,
        failures=0,
        gone_s=None,
        gone="",
    )


def _another(seen: Seen, at_s: float) -> Seen:
    """No process of before is left: the server is gone, or another is there."""
    return replace(
        _anew(seen, at_s),
        answered=False,
        counters=None,
        running=None,
        waiting=None,
        movements=seen.movements + 1,
        outputs=seen.outputs + 1,
        restarts=seen.restarts + bool(seen.processes),
        vanished=not seen.processes,
    )


def _failing(seen: Seen, point: MetricPoint, patience: Patience) -> Seen:
    failure = _failure(point, patience)
    if failure is None:
        return replace(seen, failing_s=None, failures=0, failure="", answered=True)
    return replace(
        seen,
        failing_s=point.t_s if seen.failing_s is None else seen.failing_s,
        failures=seen.failures + 1,
        failure=failure,
    )


def _failure(point: MetricPoint, patience: Patience) -> str | None:
    if point.error is not None:
        return point.error
    if point.health_status not in (None, _OK):
        return f"/health answered {point.health_status}"
    if point.latency_s is not None and point.latency_s > patience.slow_answer_s:
        return f"/metrics took {point.latency_s:.1f} s"
    return None


def _with_counters(seen: Seen, point: MetricPoint, counters: Counters) -> Seen:
    at_s = point.t_s
    restarted = seen.counters is not None and _was_reset(seen.counters, counters)
    moved = seen.counters is None or seen.counters != counters
    gave = seen.counters is None or any(seen.counters[place] != counters[place] for place in _OUTPUT)
    running, waiting = point.requests_running, point.requests_waiting
    busy = (running or 0.0) > 0 or (waiting or 0.0) > 0
    starved = (waiting or 0.0) > 0 and (running or 0.0) == 0 and not moved
    return replace(
        seen,
        counters=counters,
        running=running,
        waiting=waiting,
        moved_s=at_s if moved or seen.moved_s is None else seen.moved_s,
        output_s=at_s if gave or seen.output_s is None else seen.output_s,
        outputs=seen.outputs + gave,
        busy_s=None if not busy else at_s if seen.busy_s is None or restarted else seen.busy_s,
        starved_s=None if not starved else at_s if seen.starved_s is None else seen.starved_s,
        movements=seen.movements + moved,
        gone_s=None if moved else seen.gone_s,
        gone="" if moved else seen.gone,
        # Where the tree is seen, it is counted there.
        restarts=seen.restarts + (restarted and not seen.processes),
    )


def _was_reset(before: Counters, now: Counters) -> bool:
    """A total that fell belongs to a server that was started anew; the last, the cache's use, may fall at any time."""
    pairs = zip(before[:-1], now[:-1], strict=True)
    return any(old is not None and new is not None and new < old for old, new in pairs)
