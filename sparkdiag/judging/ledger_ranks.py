"""One rank's prefill as its ledger tells it: the fused path, the kernels, the call that was still open. Pure."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from sparkdiag.evidence.ledger import DispatchCall, FusedSeen, GuardSeen, KernelSeen, RankLedger
from sparkdiag.judging.ledger_calls import ProcessLedger, Shape, Window, prefill_calls, shape_of
from sparkdiag.judging.ledger_chunks import (
    Chunk,
    Part,
    chunks_of,
    first_no,
    refuted_guards,
    split_parts,
    visits_of,
)
from sparkdiag.kernels.plan import DEFAULT_BUDGET_BYTES, ChunkPlan, chunk_plan
from sparkdiag.scenario.ledger import LedgerGuard
from sparkdiag.scenario.model import Scenario, Signature


@dataclass(frozen=True, slots=True)
class Prefill:
    """The recorded prefill of one process, in its parts."""

    process: ProcessLedger
    calls: list[DispatchCall]
    chunks: list[Chunk]
    told: bool
    """Whether chunks could be told from each other."""
    refuted: tuple[LedgerGuard, ...]

    @property
    def functions(self) -> set[str]:
        """All that was called in the prefill."""
        return {call.function for call in self.calls}

    def sizes_of(self, signature: Signature) -> set[tuple[int, int, int]]:
        """The different (rows, keys, heads) that its function was called with."""
        of_it = [call for call in self.calls if call.function == signature.function]
        found = {_passed_on(call, self, {signature.function: signature}).whole for call in of_it}
        return {sizes for sizes in found if sizes is not None}

    def reaches_s(self, leaves: frozenset[str]) -> float:
        """Until when every kernel that ran has its line: the end of the last call that returned, or for ever where a
        kernel is known to be under way."""
        calls = self.process.calls.values()
        if any(call.took_s is None and call.function in leaves for call in calls):
            return math.inf
        return max((call.began_s + call.took_s for call in calls if call.took_s is not None), default=-math.inf)


def prefill_of(process: ProcessLedger, window: Window, scenario: Scenario) -> Prefill:
    """What of the process' calls is prefill, put together."""
    calls = prefill_calls(process, window, scenario)
    refuted = refuted_guards(calls, scenario)
    guards = [guard for guard in scenario.ledger.guards if guard not in refuted]
    visits = visits_of(process, calls, window, scenario)
    for visit in visits:
        split_parts(visit, process, fused=scenario.ledger.fused, guards=guards)
    chunks, told = chunks_of(visits)
    return Prefill(process=process, calls=calls, chunks=chunks, told=told, refuted=refuted)


def rank_ledger(prefill: Prefill, window: Window, scenario: Scenario, *, rank: str) -> RankLedger:
    """The summary of one rank."""
    process, told = prefill.process, prefill.process.told
    inner = _open_call(process, window)
    missing = _missing(prefill)
    layers = set().union(*(chunk.layers for chunk in prefill.chunks))
    whole_in, elsewhere = _whole_in(prefill, scenario)
    return RankLedger(
        pid=process.pid,
        rank=rank,
        dcp_world_size=_dcp_size(prefill),
        platform=told.platform if told is not None else {},
        chunks=len(prefill.chunks),
        counted="chunks" if prefill.told or not prefill.chunks else "calls",
        layers=len(layers),
        open_function=inner.function if inner is not None else None,
        open_s=window.took_s(inner) if inner is not None else None,
        local_total_zero=_empty_chunks(prefill, scenario),
        fused=(fused := _fused(prefill, scenario)),
        no_fused_because=_no_fused_because(process, scenario) if fused is None else None,
        kernels=tuple(_kernels(prefill, window, scenario)),
        whole_in=None if missing else whole_in,
        elsewhere=elsewhere,
        capturing=sum(call.capturing for call in prefill.calls),
        missing=missing,
        totals=process.totals.counts if missing and process.totals is not None else (),
    )


def _missing(prefill: Prefill) -> int:
    """How many calls of its time may have no line: the gaps in the numbers, and what came after the last line. Whoever
    called the last ones may not have returned yet."""
    visits = [visit for chunk in prefill.chunks for visit in chunk.visits]
    known = [visit for visit in visits if visit.recorded]
    gaps = 0
    if known:
        last = max(call.number for visit in known for call in visit.calls)
        gaps = prefill.process.missing_between(known[0].number, last)
    return gaps + (prefill.process.beyond(prefill.calls[-1].number) if prefill.calls else 0)


def _no_fused_because(process: ProcessLedger, scenario: Scenario) -> str | None:
    if scenario.ledger.fused is None:
        return None
    reasons = (line.reason for line in process.not_wrapped if line.function == scenario.ledger.fused)
    return f"{scenario.ledger.fused}: {next(reasons, 'it was not found')}"


def _open_call(process: ProcessLedger, window: Window) -> DispatchCall | None:
    """The innermost call in which the process was when the run was decided."""
    return next((call for call in reversed(process.calls.values()) if window.open_at_end(call)), None)


def _dcp_size(prefill: Prefill) -> int | None:
    """As the process says of its group, else as the dispatch had it in its hands."""
    told = prefill.process.told
    if told is not None and told.dcp_world_size is not None:
        return told.dcp_world_size
    seen = [value for call in prefill.calls if isinstance(value := call.seen.get("dcp_world_size"), int)]
    return Counter(seen).most_common(1)[0][0] if seen else None


def _empty_chunks(prefill: Prefill, scenario: Scenario) -> int | None:
    """None where the fact was never read."""
    name = scenario.ledger.empty
    found = [
        [value for part in chunk.parts for call in part.calls if isinstance(value := call.seen.get(name), int)]
        for chunk in prefill.chunks
        if name is not None
    ]
    return sum(0 in values for values in found) if any(found) else None


def _fused(prefill: Prefill, scenario: Scenario) -> FusedSeen | None:
    """None where the function was never recorded in this process: nothing is known about it then."""
    name = scenario.ledger.fused
    if name is None or not (name in prefill.process.wrapped or any(call.function == name for call in prefill.calls)):
        return None
    guards = [guard for guard in scenario.ledger.guards if guard not in prefill.refuted]
    ways: Counter[str] = Counter()
    because: Counter[str] = Counter()
    values: dict[str, Counter[int]] = {}
    for chunk in prefill.chunks:
        ways[chunk.way] += 1
        if chunk.way != "not_tried":
            continue
        noes = Counter(_no_of(guards, part) for part in chunk.parts if part.way == "not_tried")
        commonest = noes.most_common(1)[0][0]
        if commonest is None:
            ways["unexplained"] += 1
            continue
        because[commonest[0]] += 1
        values.setdefault(commonest[0], Counter())[commonest[1]] += 1
    order = [guard.fact for guard in guards]
    return FusedSeen(
        function=name,
        **dict(ways),
        not_tried_because=tuple(
            GuardSeen(fact=fact, value=values[fact].most_common(1)[0][0], chunks=because[fact])
            for fact in sorted(because, key=lambda fact: (-because[fact], order.index(fact)))
        ),
        not_guards=tuple(dict.fromkeys(guard.fact for guard in prefill.refuted)),
    )


def _no_of(guards: Iterable[LedgerGuard], part: Part) -> tuple[str, int] | None:
    found = first_no(guards, part)
    return (found[0].fact, int(found[1])) if found is not None and isinstance(found[1], int) else None


def leaves_of(scenario: Scenario) -> frozenset[str]:
    """The watched functions that are kernels."""
    return frozenset(watched.function for watched in scenario.watch if watched.role == "leaf")


def kernels_in(part: Part, prefill: Prefill, leaves: frozenset[str]) -> list[DispatchCall]:
    """The part's innermost kernels: one that called another did not do the work itself. The fused call itself, where
    it did the work and shows none below it."""
    found = [call for call in part.calls if call.function in leaves]
    callers = {above.number for call in found for above in prefill.process.chain(call)}
    found = [call for call in found if call.number not in callers]
    if not found and part.fused is not None and part.way == "accepted":
        return [part.fused]
    return found


def _whole_in(prefill: Prefill, scenario: Scenario) -> tuple[str | None, int]:
    """The one kernel of every layer of every chunk, if it is one; and how many finished layers show none."""
    leaves, names, elsewhere = leaves_of(scenario), set[str](), 0
    for chunk in prefill.chunks:
        for visit in chunk.visits:
            of_parts = [{call.function for call in kernels_in(part, prefill, leaves)} for part in visit.parts]
            names |= set().union(*of_parts)
            elsewhere += not visit.open and not all(of_parts)
    layers = [chunk.layers for chunk in prefill.chunks]
    complete = not prefill.told or all(some == set().union(*layers) for some in layers[:-1])
    return (names.pop() if len(names) == 1 and not elsewhere and complete else None), elsewhere


@dataclass(slots=True)
class _Kernel:
    calls: list[DispatchCall] = field(default_factory=list)
    chunks: set[int] = field(default_factory=set)
    layers: set[str | None] = field(default_factory=set)


def _kernels(prefill: Prefill, window: Window, scenario: Scenario) -> Iterable[KernelSeen]:
    found: dict[str, _Kernel] = {}
    leaves = leaves_of(scenario)
    for number, chunk in enumerate(prefill.chunks):
        for visit in chunk.visits:
            for call in (call for part in visit.parts for call in kernels_in(part, prefill, leaves)):
                kernel = found.setdefault(call.function, _Kernel())
                kernel.calls.append(call)
                kernel.chunks.add(number)
                kernel.layers.add(visit.layer)
    for name, kernel in sorted(found.items(), key=lambda one: -len(one[1].calls)):
        yield _kernel(name, kernel, prefill, window, scenario)


def _kernel(name: str, kernel: _Kernel, prefill: Prefill, window: Window, scenario: Scenario) -> KernelSeen:
    signatures = {one.function: one for one in scenario.signatures}
    shapes = [_passed_on(call, prefill, signatures) for call in kernel.calls]
    plans = [plan for shape in shapes if (plan := plan_of(signatures.get(name), shape.whole, scenario)) is not None]
    largest = max(plans, key=lambda plan: plan.rows * plan.keys, default=None)
    return KernelSeen(
        function=name,
        calls=len(kernel.calls),
        chunks=len(kernel.chunks),
        layers=len(kernel.layers - {None}),
        took_s=sum(window.took_s(call) for call in kernel.calls),
        synced=all(call.synced for call in kernel.calls),
        rows_max=max((shape.rows for shape in shapes if shape.rows is not None), default=None),
        keys_max=max((shape.keys for shape in shapes if shape.keys is not None), default=None),
        heads=max((shape.heads for shape in shapes if shape.heads is not None), default=None),
        head_chunk_size=largest.head_chunk_size if largest is not None else None,
        head_chunk_size_most=max((plan.head_chunk_size for plan in plans), default=None),
        k_chunk_size=largest.k_chunk_size if largest is not None else None,
        matmuls=sum(plan.matmuls for plan in plans) if plans else None,
        clean_logits=tuple(sorted({value for call in kernel.calls for value in _clean_logits(prefill, call)})),
    )


def _passed_on(call: DispatchCall, prefill: Prefill, signatures: dict[str, Signature]) -> Shape:
    """The call's sizes; those of its nearest caller that shows them, where its own parameters do not."""
    shapes = (shape_of(one, signatures) for one in (call, *prefill.process.chain(call)))
    return next((shape for shape in shapes if shape.whole is not None), shape_of(call, signatures))


def plan_of(signature: Signature | None, sizes: tuple[int, int, int] | None, scenario: Scenario) -> ChunkPlan | None:
    """The plan of one call of ``(rows, keys, heads)``; None for a function that does not go through heads and keys in
    two loops, or whose sizes are not known."""
    if signature is None or sizes is None or len(signature.loop) != 2:
        return None
    heads_loop, keys_loop = signature.loop
    if (heads_loop.stop, keys_loop.stop) != (signature.heads, signature.keys):
        return None
    rows, keys, heads = sizes
    budget = scenario.work.budget_bytes or DEFAULT_BUDGET_BYTES
    return chunk_plan(rows=rows, keys=keys, heads=heads, budget_bytes=budget)


def _clean_logits(prefill: Prefill, call: DispatchCall) -> tuple[bool, ...]:
    for one in (call, *prefill.process.chain(call)):
        value = one.arguments.get("clean_logits")
        if isinstance(value, bool):
            return (value,)
    return ()
