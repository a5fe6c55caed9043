"""The ledger's lines, sorted by process, and the calls of a prefill among them: sizes, and who called whom. Pure."""

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from sparkdiag.evidence.ledger import (
    DispatchCall,
    DispatchLine,
    DispatchNotWrapped,
    DispatchProcess,
    DispatchTotals,
    DispatchWrapped,
)
from sparkdiag.scenario.model import Scenario, Signature

_TENSOR = re.compile(r"[a-z]\w{0,40}\[(?P<sizes>[0-9]{1,12}(?:, ?[0-9]{1,12})*)\]")
_MOST_PARENTS = 64


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of a call's score matrix, as far as they were passed."""

    rows: int | None = None
    keys: int | None = None
    heads: int | None = None

    @property
    def whole(self) -> tuple[int, int, int] | None:
        """(rows, keys, heads) where all are known and positive."""
        if self.rows and self.keys and self.heads:
            return self.rows, self.keys, self.heads
        return None


@dataclass(slots=True)
class ProcessLedger:
    """What one process wrote."""

    pid: int
    told: DispatchProcess | None = None
    wrapped: set[str] = field(default_factory=set)
    not_wrapped: list[DispatchNotWrapped] = field(default_factory=list)
    totals: DispatchTotals | None = None
    calls: dict[int, DispatchCall] = field(default_factory=dict)
    """By number, in order of it."""
    known: list[int] = field(default_factory=list)
    """The numbers of these and of their callers, in order."""

    def chain(self, call: DispatchCall) -> list[DispatchCall]:
        """The recorded calls that ``call`` was made from, the nearest first."""
        found: list[DispatchCall] = []
        parent = call.parent
        while parent is not None and len(found) < _MOST_PARENTS:
            above = self.calls.get(parent)
            if above is None or above.number >= call.number:
                break
            found.append(above)
            parent = above.parent
        return found

    def missing_between(self, first: int, last: int) -> int:
        """Calls of these numbers that have no line. Whoever called what has one will have one too."""
        return last - first + 1 - (bisect_right(self.known, last) - bisect_left(self.known, first))

    def beyond(self, last: int) -> int:
        """Calls that were counted and come after every line (the file was full), where the last line is ``last``."""
        if self.totals is None or not self.totals.dropped or last != max(self.calls):
            return 0
        return max(0, sum(count.calls for count in self.totals.counts) - last)


def by_process(lines: Iterable[DispatchLine]) -> tuple[ProcessLedger, ...]:
    """The later line of a call replaces the earlier one, whatever the order of reading."""
    found: dict[int, ProcessLedger] = {}
    for line in lines:
        process = found.setdefault(line.pid, ProcessLedger(line.pid))
        match line:
            case DispatchProcess():
                process.told = line
            case DispatchWrapped():
                process.wrapped.add(line.function)
            case DispatchNotWrapped():
                process.not_wrapped.append(line)
            case DispatchTotals():
                process.totals = _newer(process.totals, line)
            case DispatchCall():
                known = process.calls.get(line.number)
                if known is None or known.took_s is None:
                    process.calls[line.number] = line
    for process in found.values():
        process.calls = dict(sorted(process.calls.items()))
        callers = {call.parent for call in process.calls.values() if call.parent is not None}
        process.known = sorted(callers.union(process.calls))
    return tuple(found[pid] for pid in sorted(found))


def _newer(known: DispatchTotals | None, line: DispatchTotals) -> DispatchTotals:
    if known is None:
        return line
    return max(known, line, key=lambda one: (one.written + one.dropped, sum(count.calls for count in one.counts)))


@dataclass(frozen=True, slots=True)
class Window:
    """The time of a prefill: from its sending to its first token, or to where the run was decided."""

    sent_s: float
    end_s: float
    first_token_s: float | None

    def holds(self, call: DispatchCall) -> bool:
        return self.sent_s <= call.began_s <= self.end_s

    def open_at_end(self, call: DispatchCall) -> bool:
        """Whether the run was decided while ``call`` went on."""
        if self.first_token_s is not None or not self.holds(call):
            return False
        return call.took_s is None or call.began_s + call.took_s > self.end_s

    def took_s(self, call: DispatchCall) -> float:
        """The part of the call's time that lies in the window."""
        until_s = math.inf if call.took_s is None else call.began_s + call.took_s
        return max(0.0, min(until_s, self.end_s) - call.began_s)


def shape_of(call: DispatchCall, signatures: Mapping[str, Signature]) -> Shape:
    """Rows, keys and heads as passed: by the names of the function's signature, else from the tensors q and kv.

    ``q`` is [rows, heads, dim] or a pair whose first is; ``kv`` a [keys, dim] tensor or a pair whose first is.
    """
    named, given = signatures.get(call.function), call.arguments
    q, kv = _sizes(given.get("q")), _sizes(given.get("kv"))
    passed = Shape(rows=q[0] if q else None, keys=kv[0] if len(kv) == 2 else None, heads=q[1] if len(q) == 3 else None)
    if named is None:
        return passed
    rows, keys, heads = (_whole(name, given) for name in (named.rows, named.keys, named.heads))
    return Shape(
        rows=passed.rows if rows is None else rows,
        keys=passed.keys if keys is None else keys,
        heads=passed.heads if heads is None else heads,
    )


def _whole(name: str | None, given: Mapping[str, JsonValue]) -> int | None:
    value = given.get(name) if name else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _sizes(value: JsonValue) -> tuple[int, ...]:
    """Of a tensor as the probe writes it, or of the first one in a list."""
    if isinstance(value, list):
        return _sizes(value[0]) if value and not isinstance(value[0], list) else ()
    match = _TENSOR.fullmatch(value) if isinstance(value, str) else None
    return tuple(int(size) for size in match["sizes"].split(",")) if match else ()


def prefill_calls(process: ProcessLedger, window: Window, scenario: Scenario) -> list[DispatchCall]:
    """The calls of the prefill below the entry function, in order.

    Neither what ran before the prompt was sent (warm-up, profiling) or after its first token, nor decode: the paged
    twins and what they call, and calls of a single row, which vLLM schedules as decodes.
    """
    entries = {watched.function for watched in scenario.watch if watched.role == "entry"}
    decode, signatures = set(scenario.ledger.decode), {one.function: one for one in scenario.signatures}
    found: list[DispatchCall] = []
    for call in process.calls.values():
        if call.function in entries or not window.holds(call):
            continue
        family = [call, *process.chain(call)]
        if any(one.function in decode for one in family):
            continue
        if any(shape_of(one, signatures).rows == 1 for one in family):
            continue
        found.append(call)
    return found
