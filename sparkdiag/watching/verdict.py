"""A diagnosis of a watched server as a verdict, and as an exit code's meaning. Pure.

A verdict of ``repro`` is about a prompt of our own. Where none was sent there is a stall or there is none to be named:
``stalled`` only where the diagnosis finds one.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from sparkdiag.diagnosing.signatures import match_look
from sparkdiag.evidence.diagnosis import CANNOT_TELL, Diagnosis, DiagnosisKind, LoopFinding, ProcessDiagnosis, Reason
from sparkdiag.evidence.dump import ProcessDump
from sparkdiag.evidence.verdict import EvidenceItem, EvidenceSource, RankFinding, StallMode, Verdict

FEWEST_LOOKS = 2
"""Of a process at which something is taken for more than a passing moment."""
_METRICS, _PEERS = "metrics", "process set"
_ORDINARY: frozenset[DiagnosisKind] = frozenset(
    {"forward", "gpu-wait", "collective-wait", "queue-wait", "ray-wait", "dp-dummy", "tokenizer", "idle"}
)
"""Where a healthy server at work is seen all the time."""


def verdict_of(found: Diagnosis, *, looks: Sequence[ProcessDump], now_s: float) -> Verdict:
    """``stalled`` where the finding is; else ``inconclusive`` with what was found as the reason."""
    decides = _deciding(found)
    stalled = found.finding == "stalled"
    return Verdict(
        outcome="stalled" if stalled else "inconclusive",
        mode=_mode(decides) if stalled else None,
        kind=found.kind if stalled else None,
        function=found.function if stalled else None,
        role=decides.role if decides is not None and stalled else None,
        ranks=tuple(_rank(one, [look for look in looks if look.pid == one.pid]) for one in found.processes),
        evidence_for=_items(found.reasons_for),
        evidence_against=(*_items(found.reasons_against), *_caveats(found)),
        reason=None if stalled else reason_of(found),
        decided_at_s=now_s,
    )


def named_by(found: Diagnosis, verdict: Verdict) -> Verdict:
    """A stall of our own prompt that was certain before its place was, named by the diagnosis of the same looks."""
    if verdict.outcome != "stalled" or verdict.kind not in (None, "unknown"):
        return verdict
    if not is_suspect(found) or found.confidence == "low":
        return verdict
    text = f"{found.kind} in {found.function or found.process}, by the signatures of sparkdiag triage"
    item = EvidenceItem(source="stacks", text=text)
    changes = {"kind": found.kind, "function": found.function, "evidence_for": (*verdict.evidence_for, item)}
    return verdict.model_copy(update=changes)


def nothing_bad(found: Diagnosis) -> bool:
    """Whether the server was seen to be well: idle, or at work without a sign of a known stall."""
    return found.finding in ("healthy", "moving") and not is_suspect(found)


def with_what_came_and_went(found: Diagnosis, looks: Sequence[ProcessDump]) -> Diagnosis:
    """In a server that others use requests come and go: what a known stall looks like, seen in a minority of looks,
    decides nothing, but the server cannot be called well either."""
    if not nothing_bad(found):
        return found
    kinds = Counter((look.pid, kind) for look in looks if (kind := match_look(look).kind) not in _ORDINARY)
    names = {one.pid: one.name for one in found.processes}
    seen = tuple(
        Reason(source=names.get(pid, f"process {pid}"), text=f"{kind} in {count} of its looks, while others show none")
        for (pid, kind), count in kinds.items()
        if kind not in CANNOT_TELL and count >= FEWEST_LOOKS
    )
    if not seen:
        return found
    why = f"{found.finding} as a whole, but {seen[0].source} was seen in {seen[0].text}"
    changes = {
        "finding": "unknown",
        "reasons_against": (*found.reasons_against, *seen),
        "reason": why,
    }
    return found.model_copy(update=changes)


def is_suspect(found: Diagnosis) -> bool:
    """Whether what was found is no ordinary work, also where it still moves."""
    return found.kind not in CANNOT_TELL and found.kind not in _ORDINARY


def reason_of(found: Diagnosis) -> str:
    """Why there is no verdict of a stall."""
    where = f" in {found.function}" if found.function else ""
    if found.finding == "healthy":
        return f"no prompt of ours was sent, and no stall was seen: {found.kind}{where}"
    if found.finding == "moving" and is_suspect(found):
        return (
            f"{found.kind}{where}: it advances, so nothing stands still; whether that is a stall takes a healthy time "
            "to hold it against (--send-needle --baseline-s SECONDS)"
        )
    if found.finding == "moving":
        return f"no prompt of ours was sent, and no stall was seen: the server is at work ({found.kind}{where})"
    why = next((one.text for one in found.reasons_for if one.source == "looks"), "")
    return found.reason or why or "what was seen does not tell a stall from a healthy server"


def _deciding(found: Diagnosis) -> ProcessDiagnosis | None:
    return next((one for one in found.processes if one.name == found.process), None)


def _mode(decides: ProcessDiagnosis | None) -> StallMode | None:
    if decides is None or decides.movement is None:
        return None
    moves = decides.movement.loops or decides.movement.what in ("leaf", "call", "process")
    return "crawling" if moves else "stuck"


def _rank(one: ProcessDiagnosis, looks: Sequence[ProcessDump]) -> RankFinding:
    there = sum(_is_in(look, one.function) for look in looks)
    return RankFinding(
        pid=one.pid or 0,
        name=one.name,
        top_function=one.function,
        top_share=there / len(looks) if looks else 0.0,
        samples=len(looks),
        loop_progress=_progress(one.movement.loops) if one.movement is not None and one.movement.loops else None,
        differs=one.differs,
    )


def _is_in(look: ProcessDump, function: str | None) -> bool:
    """As printed or by its bare name: a diagnosis names either."""
    frames = (frame for thread in look.threads for frame in thread.frames)
    return any(function in (frame.function, frame.name) for frame in frames)


def _progress(loops: Iterable[LoopFinding]) -> str:
    return "; ".join(loop.words for loop in loops)


def _items(reasons: Iterable[Reason]) -> tuple[EvidenceItem, ...]:
    return tuple(EvidenceItem(source=_source(one), text=_said(one)) for one in reasons)


def _source(one: Reason) -> EvidenceSource:
    if one.source == _METRICS:
        return "metrics"
    return "process-tree" if one.source == _PEERS else "stacks"


def _said(one: Reason) -> str:
    return one.text if one.source in (_METRICS, _PEERS, "looks") else f"{one.source}: {one.text}"


def _caveats(found: Diagnosis) -> tuple[EvidenceItem, ...]:
    return tuple(EvidenceItem(source="sampling", text=text) for text in found.caveats)
