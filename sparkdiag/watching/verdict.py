"""A diagnosis of a watched server as a verdict, and as an exit code's meaning. Pure.

A verdict of ``repro`` is about a prompt of our own. Where none was sent there is a stall or there is none to be named:
``stalled`` only where the diagnosis finds one.
"""

from collections.abc import Iterable

from sparkdiag.evidence.diagnosis import CANNOT_TELL, Diagnosis, LoopFinding, ProcessDiagnosis, Reason
from sparkdiag.evidence.verdict import EvidenceItem, EvidenceSource, RankFinding, StallMode, Verdict

_METRICS, _PEERS = "metrics", "process set"


def verdict_of(found: Diagnosis, *, now_s: float) -> Verdict:
    """``stalled`` where the finding is; else ``inconclusive`` with what was found as the reason."""
    decides = _deciding(found)
    stalled = found.finding == "stalled"
    return Verdict(
        outcome="stalled" if stalled else "inconclusive",
        mode=_mode(decides) if stalled else None,
        kind=found.kind if stalled else None,
        function=found.function if stalled else None,
        role=decides.role if decides is not None and stalled else None,
        ranks=tuple(_rank(one) for one in found.processes if one.pid is not None),
        evidence_for=_items(found.reasons_for),
        evidence_against=(*_items(found.reasons_against), *_caveats(found)),
        reason=None if stalled else reason_of(found),
        decided_at_s=now_s,
    )


def nothing_bad(found: Diagnosis) -> bool:
    """Whether the server was seen to be well: idle, or at work without a sign of a known stall."""
    if found.finding == "healthy":
        return True
    return found.finding == "moving" and not is_suspect(found)


def is_suspect(found: Diagnosis) -> bool:
    """Whether what was found names the path of a known stall, also where it still moves."""
    decides = _deciding(found)
    return found.kind not in CANNOT_TELL and decides is not None and decides.healthy is False


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
    last = found.reasons_for[-1].text if found.reasons_for else ""
    return found.reason or last or "what was seen does not tell a stall from a healthy server"


def _deciding(found: Diagnosis) -> ProcessDiagnosis | None:
    return next((one for one in found.processes if one.name == found.process), None)


def _mode(decides: ProcessDiagnosis | None) -> StallMode | None:
    if decides is None or decides.movement is None:
        return None
    return "crawling" if decides.movement.loops else "stuck"


def _rank(one: ProcessDiagnosis) -> RankFinding:
    movement = one.movement
    return RankFinding(
        pid=one.pid or 0,
        name=one.name,
        top_function=one.function,
        top_share=1.0,
        samples=movement.looks if movement is not None else 1,
        loop_progress=_progress(movement.loops) if movement is not None and movement.loops else None,
        differs=one.differs,
    )


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
