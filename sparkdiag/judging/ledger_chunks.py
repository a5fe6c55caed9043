"""Recorded calls of a prefill, put together: calls of the entry function, the parts within one, scheduler steps. Pure.

A chunk is one scheduler step of prefill on one rank. It has one call of the entry function for each layer, and newer
vLLM cuts the rows of such a call into parts, each of which tries the fused path anew.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from pydantic import JsonValue

from sparkdiag.evidence.ledger import DispatchCall
from sparkdiag.judging.ledger_calls import ProcessLedger, Window
from sparkdiag.scenario.ledger import LedgerGuard
from sparkdiag.scenario.model import Scenario

Way = Literal["accepted", "refused", "not_tried", "unanswered", "unknown"]


@dataclass(slots=True)
class Part:
    """One pass of the dispatch: the fused path, where it was tried, and what was called instead."""

    fused: DispatchCall | None = None
    calls: list[DispatchCall] = field(default_factory=list)
    """All of them, ``fused`` and what lies below included."""
    sure: bool = True
    """False where a line is missing that may have been the fused path's."""

    @property
    def way(self) -> Way:
        """What became of the fused path. Only a plain True or False is an answer."""
        if self.fused is None:
            return "not_tried" if self.sure else "unknown"
        if self.fused.took_s is None or self.fused.raised is not None or not isinstance(self.fused.returned, bool):
            return "unanswered"
        return "accepted" if self.fused.returned else "refused"


@dataclass(slots=True)
class Visit:
    """One call of the entry function: one layer of a chunk."""

    number: int
    layer: str | None
    calls: list[DispatchCall]
    open: bool = False
    recorded: bool = True
    """Whether the entry's own line is there."""
    parts: list[Part] = field(default_factory=list)


@dataclass(slots=True)
class Chunk:
    """The visits of one scheduler step."""

    visits: list[Visit]

    @property
    def parts(self) -> Iterator[Part]:
        return (part for visit in self.visits for part in visit.parts)

    @property
    def layers(self) -> set[str]:
        return {visit.layer for visit in self.visits if visit.layer is not None}

    @property
    def way(self) -> Way | Literal["mixed"]:
        """What became of the fused path in all its parts; those that were not over do not count beside others."""
        found = {part.way for part in self.parts}
        if len(found) > 1 and not any(part.fused is not None and part.fused.raised for part in self.parts):
            found = found - {"unanswered", "unknown"} or {"unknown" if "unknown" in found else "unanswered"}
        return found.pop() if len(found) == 1 else "mixed"


def refuted_guards(calls: Iterable[DispatchCall], scenario: Scenario) -> tuple[LedgerGuard, ...]:
    """Guards whose fact said no while the fused path was tried all the same: none of this revision's."""
    tried = [call for call in calls if call.function == scenario.ledger.fused]
    return tuple(
        guard for guard in scenario.ledger.guards if any(says_no(guard, call.seen.get(guard.fact)) for call in tried)
    )


def says_no(guard: LedgerGuard, value: JsonValue) -> bool:
    """Whether ``value`` is known and keeps the fused path from being tried."""
    return isinstance(value, int) and not guard.holds(int(value))


def first_no(guards: Iterable[LedgerGuard], part: Part) -> tuple[LedgerGuard, JsonValue] | None:
    """The first guard, in their order, that says no in what was seen from this part's calls."""
    for guard in guards:
        for call in part.calls:
            value = call.seen.get(guard.fact)
            if says_no(guard, value):
                return guard, value
    return None


def visits_of(process: ProcessLedger, calls: Iterable[DispatchCall], window: Window, scenario: Scenario) -> list[Visit]:
    """The calls of the prefill by the call of the entry function that they were made from, in order.

    Of an entry that has not returned for a second at most there is no line yet: its number is known from its calls.
    """
    entry_names = {watched.function for watched in scenario.watch if watched.role == "entry"}
    entries = {call.number: call for call in process.calls.values() if call.function in entry_names}
    numbers = list(entries)
    found: dict[int, Visit] = {}
    for call in calls:
        key = _root(process, call, entries, numbers)
        visit = found.get(key)
        if visit is None:
            own = process.calls.get(key)
            is_entry = own is not None and own.function in entry_names
            visit = found[key] = Visit(key, None, [], recorded=is_entry)
            visit.open = window.open_at_end(own) if own is not None else window.first_token_s is None
            visit.layer = _layer(own, scenario) if own is not None else None
        visit.calls.append(call)
        visit.layer = visit.layer or _layer(call, scenario)
    return list(_joined(found[key] for key in sorted(found)))


def _root(process: ProcessLedger, call: DispatchCall, entries: dict[int, DispatchCall], numbers: list[int]) -> int:
    """Number of the entry's call, by the chain of callers, else by time; ``numbers`` are those of ``entries``."""
    top = (process.chain(call) or [call])[-1]
    if top.number in entries:
        return top.number
    before = bisect_left(numbers, top.number)
    if before and _contains(entries[numbers[before - 1]], top):
        return numbers[before - 1]
    return top.parent if top.parent is not None else top.number


def _contains(outer: DispatchCall, inner: DispatchCall) -> bool:
    return outer.began_s <= inner.began_s and (outer.took_s is None or inner.began_s <= outer.began_s + outer.took_s)


def _joined(visits: Iterable[Visit]) -> Iterator[Visit]:
    """Neighbours of one layer, of whose entry there is no line, are one call of it: more than one callee had none."""
    last: Visit | None = None
    for visit in visits:
        if last is not None and not last.recorded and not visit.recorded and last.layer == visit.layer is not None:
            last.calls += visit.calls
            continue
        if last is not None:
            yield last
        last = visit
    if last is not None:
        yield last


def _layer(call: DispatchCall, scenario: Scenario) -> str | None:
    if scenario.layer_clock is None:
        return None
    name = scenario.layer_clock.variable
    for value in (call.seen.get(name), call.arguments.get(name)):
        if isinstance(value, str) and value and not value.startswith("<"):
            return value
    return None


def split_parts(visit: Visit, process: ProcessLedger, *, fused: str | None, guards: Iterable[LedgerGuard]) -> None:
    """Fill ``visit.parts``. After a refusal what follows belongs to the same part, unless a guard says no to it: the
    dispatch then went on to its next part without trying."""
    guards = tuple(guards)
    gaps = bool(process.missing_between(visit.number, max(call.number for call in visit.calls)))
    mine = {call.number for call in visit.calls}
    tops: dict[int, list[DispatchCall]] = {}
    for call in visit.calls:
        inside = [above for above in process.chain(call) if above.number in mine]
        tops.setdefault((inside or [call])[-1].number, []).append(call)
    for family in tops.values():
        part = Part(fused=next((call for call in family if call.function == fused), None), calls=family)
        last = visit.parts[-1] if visit.parts else None
        kept_out = first_no(guards, part) is not None
        if (
            part.fused is None
            and not kept_out
            and last is not None
            and last.way in ("refused", "unanswered", "unknown")
        ):
            last.calls += family
            continue
        caller_known = family[0].parent is None or family[0].parent in process.calls
        part.sure = kept_out or (caller_known and not gaps)
        visit.parts.append(part)


def chunks_of(visits: list[Visit]) -> tuple[list[Chunk], bool]:
    """Scheduler steps, and whether they could be told: without a layer's name every visit stands for itself.

    A step begins where the layer that was seen first comes again after another one. Of a single layer each visit is
    a step.
    """
    layers = {visit.layer for visit in visits if visit.layer is not None}
    if not layers:
        return [Chunk([visit]) for visit in visits], False
    first = next(visit.layer for visit in visits if visit.layer is not None)
    chunks: list[Chunk] = []
    for visit in visits:
        again = visit.layer == first and (len(layers) == 1 or bool(chunks and chunks[-1].layers - {first}))
        if not chunks or again:
            chunks.append(Chunk([visit]))
        else:
            chunks[-1].visits.append(visit)
    return chunks, True
