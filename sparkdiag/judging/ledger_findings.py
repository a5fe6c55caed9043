"""The ledger held against what else is known of the same run: stacks, route, chunk plan, DCP proof. Pure.

Each source can be wrong in its own way. A disagreement is a finding to show; the verdict does not change by it. Stacks
are taken without stopping the process, so that now and then a frame's locals are torn (a ``k_chunk_size`` that was
another frame's number, in 1 of 50 samples): what a single sample shows, or less than a tenth, contradicts nobody.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sparkdiag.evidence.ledger import Answer, LedgerFinding, RankLedger
from sparkdiag.evidence.observation import Observation
from sparkdiag.evidence.stacks import Frame
from sparkdiag.evidence.stored import StoredRun
from sparkdiag.judging.agreement import call_chain
from sparkdiag.judging.ledger_ranks import Prefill, leaves_of, plan_of
from sparkdiag.kernels.plan import DEFAULT_BUDGET_BYTES, keys_per_pass
from sparkdiag.scenario.model import Scenario, Signature


@dataclass(frozen=True, slots=True)
class Sources:
    """What the findings are made from."""

    stored: StoredRun
    scenario: Scenario
    prefills: tuple[Prefill, ...]
    ranks: tuple[RankLedger, ...]

    @property
    def kernels(self) -> Counter[str]:
        """Calls of each kernel, all ranks together."""
        found: Counter[str] = Counter()
        for rank in self.ranks:
            for kernel in rank.kernels:
                found[kernel.function] += kernel.calls
        return found

    def callers_of(self, kernel: str) -> set[str]:
        """The watched functions that it was called from: the source's kernel may be one that calls another."""
        return {
            above.function
            for prefill in self.prefills
            for call in prefill.calls
            if call.function == kernel
            for above in prefill.process.chain(call)
        }


def findings_of(sources: Sources) -> tuple[LedgerFinding, ...]:
    """One for each question that more than one source may answer, in the order in which a reviewer asks."""
    made = (_dcp_size(sources), _why_not_fused(sources), _kernel_and_stacks(sources), _kernel_and_route(sources))
    return (*(finding for finding in made if finding is not None), *_plan(sources))


def _dcp_size(sources: Sources) -> LedgerFinding:
    proof = sources.stored.record.dcp
    told = {rank.dcp_world_size for rank in sources.ranks if rank.dcp_world_size is not None}
    shown = Counter(
        value
        for _pid, _name, frame in _frames(sources, {_entry(sources.scenario)})
        if isinstance(value := frame.locals.get("dcp_world_size"), int)
    )
    stacks = {value for value, count in shown.items() if len(shown) == 1 or _weighs(count, of=shown.total())}
    proved = {proof.size} if proof is not None and proof.size is not None else set[int]()
    says = (
        f"ledger: {_listed(told)}",
        f"stacks: {_listed(stacks) if stacks else 'no local dcp_world_size was seen'}",
        f"proof: {_listed(proved) if proved else 'not known'}",
    )
    if not told or not (stacks or proved):
        return LedgerFinding(question="DCP size", answer="not compared", says=says, because="only one source tells")
    agree = len(told | stacks | proved) == 1 and (proof is None or proof.consistent)
    return LedgerFinding(question="DCP size", answer="agree" if agree else "disagree", says=says)


def _why_not_fused(sources: Sources) -> LedgerFinding | None:
    """The guard that was seen to say no, and what the source makes of the same guard."""
    agreement = sources.stored.agreement
    facts = dict.fromkeys(
        one.fact for rank in sources.ranks if rank.fused is not None for one in rank.fused.not_tried_because
    )
    values = {
        (one.fact, str(one.value)) for rank in sources.ranks if rank.fused for one in rank.fused.not_tried_because
    }
    if not facts or agreement is None:
        return None
    ledger = "ledger: " + ", ".join(f"{fact} = {value}" for fact, value in sorted(values))
    of_facts = [guard for guard in agreement.guards if any(fact in guard.source for fact in facts)]
    said = ", ".join(f"{guard.source} is {guard.value}" for guard in of_facts)
    says = (ledger, f"route: {said or 'no guard on it among those that decide'}")
    if not of_facts or all(guard.value == "unknown" for guard in of_facts):
        because = agreement.because if not agreement.predicted else ""
        return LedgerFinding(question="why not fused", answer="not compared", says=says, because=because)
    agree = any(guard.value == "false" for guard in of_facts)
    return LedgerFinding(question="why not fused", answer="agree" if agree else "disagree", says=says)


def _kernel_and_stacks(sources: Sources) -> LedgerFinding:
    """Of each rank the kernels on its stacks must be among those that it recorded."""
    question, leaves = "which kernel", leaves_of(sources.scenario)
    seen: Counter[str] = Counter()
    other: Counter[str] = Counter()
    recorded = {prefill.process.pid: prefill for prefill in sources.prefills}
    # A kernel may be called by another: a sample can show either.
    called = {prefill.process.pid: prefill.functions for prefill in sources.prefills}
    for pid, name, _frame in _frames(sources, leaves):
        seen[name] += 1
        if pid in recorded and name in recorded[pid].process.wrapped and name not in called.get(pid, set()):
            other[name] += 1
    says = (f"ledger: {_counted(sources.kernels, 'calls')}", f"stacks: {_counted(seen, 'worker samples')}")
    if not seen:
        because = "no sample of the prefill shows a watched kernel; a fast one may never be on a stack"
        return LedgerFinding(question=question, answer="not compared", says=says, because=because)
    if _weighs(other.total(), of=seen.total()):
        because = f"on the stacks and not recorded: {_counted(other, 'samples')}"
        return LedgerFinding(question=question, answer="disagree", says=says, because=because)
    compared = any(name in called.get(pid, set()) for pid, name, _frame in _frames(sources, leaves))
    because = "" if compared else "what the stacks show could not be recorded"
    answer = "agree" if compared else "not compared"
    return LedgerFinding(question=question, answer=answer, says=says, because=because)


def _kernel_and_route(sources: Sources) -> LedgerFinding | None:
    """What was recorded must lie on a way that the source leaves open: it is the kernel, or leads to it."""
    predicted, agreement = sources.stored.record.predicted, sources.stored.agreement
    if predicted is None or agreement is None:
        return None
    kernels, route = sources.kernels, predicted.route
    named = " or ".join(agreement.predicted) or "nothing"
    says = (f"ledger: {_counted(kernels, 'calls')}", f"route: {named}")
    question = "which kernel by the source"
    if route is None or not route.exact or not kernels:
        because = agreement.because if route is None or not route.exact else "no known kernel was recorded"
        return LedgerFinding(question=question, answer="not compared", says=says, because=because)
    if agreement.answer == "not compared" and ("the server runs" in agreement.because):
        return LedgerFinding(question=question, answer="not compared", says=says, because=agreement.because)
    ways = {name for reached in route.reached for name in call_chain(reached)}
    ends = {reached.function for reached in route.reached}
    wrong = [name for name in kernels if name not in ways and not ends & sources.callers_of(name)]
    answer = "disagree" if wrong else "agree"
    because = f"by the source this is not reached: {', '.join(wrong)}" if wrong else ""
    return LedgerFinding(question=question, answer=answer, says=says, because=because)


@dataclass(frozen=True, slots=True)
class _Seen:
    """One call's sizes and the sizes of its passes, as a frame showed them."""

    sizes: tuple[int, int, int]
    heads_step: int
    keys_step: int


def _plan(sources: Sources) -> Iterator[LedgerFinding]:
    """The plan for the shapes that were passed, beside the locals of the frames that ran it."""
    for signature in sources.scenario.signatures:
        if not sources.kernels[signature.function]:
            continue
        shapes = {
            sizes
            for prefill in sources.prefills
            for sizes in prefill.sizes_of(signature)
            if plan_of(signature, sizes, sources.scenario) is not None
        }
        if not shapes:
            continue
        seen = Counter(
            found
            for _pid, _name, frame in _frames(sources, {signature.function})
            if (found := _seen(signature, frame)) is not None
        )
        yield _shapes(signature, seen, shapes, sources)
        for heads in (True, False):
            yield _passes(signature, seen, shapes, sources, heads=heads)


def with_heads_seen(sources: Sources) -> tuple[RankLedger, ...]:
    """The ranks, each kernel with the heads a pass that its frames showed; values of torn readings left out."""
    seen: dict[str, tuple[int, ...]] = {}
    for signature in sources.scenario.signatures:
        if len(signature.loop) != 2:
            continue
        shown = Counter(
            found.heads_step
            for _pid, _name, frame in _frames(sources, {signature.function})
            if (found := _seen(signature, frame)) is not None
        )
        kept = (value for value, count in shown.items() if len(shown) == 1 or _weighs(count, of=shown.total()))
        seen[signature.function] = tuple(sorted(kept))
    return tuple(
        rank.model_copy(
            update={
                "kernels": tuple(
                    kernel.model_copy(update={"head_chunk_seen": seen.get(kernel.function, ())})
                    for kernel in rank.kernels
                )
            }
        )
        for rank in sources.ranks
    )


def _shapes(
    signature: Signature, seen: Counter[_Seen], shapes: set[tuple[int, int, int]], sources: Sources
) -> LedgerFinding:
    strange = sum(count for one, count in seen.items() if one.sizes not in shapes)
    says = (
        f"ledger: {_shapes_of(len(shapes))}, the largest {_shape(max(shapes, key=lambda sizes: sizes[0] * sizes[1]))}",
        f"stacks: {_shapes_of(len({one.sizes for one in seen}))} in {seen.total()} samples",
    )
    question = f"shapes of {signature.function}"
    if not seen:
        return LedgerFinding(question=question, answer="not compared", says=says, because="no sample shows its locals")
    if strange and any(rank.missing for rank in sources.ranks):
        because = f"{_samples(strange)} another shape than was recorded, and some calls have no line"
        return LedgerFinding(question=question, answer="not compared", says=says, because=because)
    return _held(question, says, wrong=strange, of=seen.total(), what="a shape that was not recorded")


def _held(question: str, says: tuple[str, ...], *, wrong: int, of: int, what: str) -> LedgerFinding:
    """What samples come to of which some show something else."""
    if _weighs(wrong, of=of):
        return LedgerFinding(question=question, answer="disagree", says=says, because=f"{_samples(wrong)} {what}")
    if wrong == of:
        because = f"the only sample shows {what}; one alone may be torn"
        return LedgerFinding(question=question, answer="not compared", says=says, because=because)
    because = f"{_samples(wrong)} {what}: so few may be torn readings" if wrong else ""
    return LedgerFinding(question=question, answer="agree", says=says, because=because)


def _weighs(count: int, *, of: int) -> bool:
    """Whether so many samples are no torn readings."""
    return count >= 2 and count * 10 > of


def _samples(count: int) -> str:
    return "1 sample shows" if count == 1 else f"{count} samples show"


def _passes(
    signature: Signature,
    seen: Counter[_Seen],
    shapes: set[tuple[int, int, int]],
    sources: Sources,
    *,
    heads: bool,
) -> LedgerFinding:
    scenario, loop = sources.scenario, signature.loop[0 if heads else 1]
    plans = [plan for sizes in shapes if (plan := plan_of(signature, sizes, scenario)) is not None]
    planned = {plan.head_chunk_size if heads else plan.k_chunk_size for plan in plans}
    shown = Counter[int]()
    wrong = 0
    for one, count in seen.items():
        value = one.heads_step if heads else one.keys_step
        shown[value] += count
        if value not in _allowed(signature, one, scenario, heads=heads):
            wrong += count
    name = loop.step or loop.index
    says = (
        f"plan: {name} {_listed(planned)} for the shapes that were passed",
        f"stacks: {name} {_listed(shown) if shown else 'not seen'}" + (f" in {shown.total()} samples" if shown else ""),
    )
    question = "heads a pass" if heads else "keys a pass"
    if not shown:
        return LedgerFinding(question=question, answer="not compared", says=says, because="no sample shows its locals")
    what = "another value than the plan has for their own shape"
    usual, _count = shown.most_common(1)[0]
    telling = _telling(signature, seen, shapes, scenario, usual=usual, heads=heads)
    if telling and telling == {usual: telling.total()}:
        told = "the one sample" if telling.total() == 1 else f"the {telling.total()} samples"
        because = f"{name} is {usual} also in {told} for whose shape the plan has another value"
        answer: Answer = "disagree" if telling.total() > 1 else "not compared"
        return LedgerFinding(question=question, answer=answer, says=says, because=because)
    return _held(question, says, wrong=wrong, of=shown.total(), what=what)


def _telling(
    signature: Signature,
    seen: Counter[_Seen],
    shapes: set[tuple[int, int, int]],
    scenario: Scenario,
    *,
    usual: int,
    heads: bool,
) -> Counter[int]:
    """What the samples show for whose shape, one that was recorded, the plan has not the usual value: the others look
    the same whether the function keeps to the plan or to that value."""
    found: Counter[int] = Counter()
    for one, count in seen.items():
        if one.sizes in shapes and usual not in _allowed(signature, one, scenario, heads=heads):
            found[one.heads_step if heads else one.keys_step] += count
    return found


def _allowed(signature: Signature, one: _Seen, scenario: Scenario, *, heads: bool) -> set[int]:
    """By the plan; the last heads of a call may be fewer, and then more keys fit a pass."""
    plan = plan_of(signature, one.sizes, scenario)
    if plan is None:
        return set()
    if heads:
        return {plan.head_chunk_size}
    rest = plan.heads % plan.head_chunk_size
    allowed = {plan.k_chunk_size}
    if rest:
        budget = scenario.work.budget_bytes or DEFAULT_BUDGET_BYTES
        allowed.add(keys_per_pass(rows=plan.rows, heads=rest, keys=plan.keys, budget_bytes=budget))
    return allowed


def _seen(signature: Signature, frame: Frame) -> _Seen | None:
    names = (signature.rows, signature.keys, signature.heads, signature.loop[0].step, signature.loop[1].step)
    values = [frame.locals.get(name) if name else None for name in names]
    whole = [value for value in values if isinstance(value, int) and not isinstance(value, bool) and value > 0]
    if len(whole) != len(names):
        return None
    return _Seen(sizes=(whole[0], whole[1], whole[2]), heads_step=whole[3], keys_step=whole[4])


def _entry(scenario: Scenario) -> str:
    return next((watched.function for watched in scenario.watch if watched.role == "entry"), "")


def _frames(sources: Sources, names: Iterable[str]) -> Iterator[tuple[int, str, Frame]]:
    """In usable samples of the model's processes during the prefill, the innermost frame of any of ``names``; up to
    where the ledger reaches: the call that a later sample shows may have no line yet."""
    observation: Observation = sources.stored.observation
    wanted, client = frozenset(names), observation.client
    # Of a rank without a ledger the stacks tell nothing about what was recorded.
    pids = {worker.pid for worker in observation.workers} & {prefill.process.pid for prefill in sources.prefills}
    if client.sent is None:
        return
    leaves = leaves_of(sources.scenario)
    reach_s = {prefill.process.pid: prefill.reaches_s(leaves) for prefill in sources.prefills}
    for sample in observation.samples:
        if sample.pid not in pids or not sample.usable or sample.started_s < client.sent.t_s:
            continue
        if client.first_token_s is not None and sample.ended_s > client.first_token_s:
            continue
        if sample.ended_s > reach_s.get(sample.pid, math.inf):
            continue
        for thread in sample.threads:
            frame = next((frame for frame in thread.frames if frame.name in wanted), None)
            if frame is not None:
                yield sample.pid, frame.name, frame
                break


def _listed(values: Iterable[int]) -> str:
    ordered = sorted(set(values))
    if not ordered:
        return "not known"
    return ", ".join(map(str, ordered)) if len(ordered) <= 4 else f"{ordered[0]} to {ordered[-1]}"


def _counted(counts: Counter[str], what: str) -> str:
    return ", ".join(f"{name} in {count} {what}" for name, count in counts.most_common(4)) or "none"


def _shapes_of(count: int) -> str:
    return "1 shape" if count == 1 else f"{count} shapes"


def _shape(sizes: tuple[int, int, int]) -> str:
    return f"{sizes[0]} × {sizes[1]} over {sizes[2]} heads"
