"""A result that nobody ran: what a trial would have shown. For planning ahead, and for marks of somebody else. Pure."""

from sparkdiag.evidence.bisection import Has, Signature, Target, TrialResult

SUPPOSED = Signature(kind=None, function="supposed", role=None)
"""Of a stall that is known: one whose function is not shows nothing."""
SUPPOSED_SAMPLES = 1000
"""Enough for any finding."""


def supposed_result(sha: str, has: Has, *, target: Target, reference: Signature | None) -> TrialResult:
    """A result that ``trial.finding`` reads as ``has``."""
    if has == "cannot-tell":
        return TrialResult(sha=sha, outcome="inconclusive", reason="supposed")
    yes = has == "yes"
    match target.what:
        case "stall":
            stall = reference or SUPPOSED
            return TrialResult(
                sha=sha, outcome="stalled" if yes else "completed", signature=stall if yes else None, reason="supposed"
            )
        case "frame":
            seen = (target.frame or "",) if yes else ()
            return TrialResult(sha=sha, outcome="completed", functions=seen, samples=SUPPOSED_SAMPLES)
        case "wrong-needle":
            return TrialResult(sha=sha, outcome="completed", needle="wrong" if yes else "retrieved")
        case "crash":
            return TrialResult(sha=sha, outcome="crashed" if yes else "completed")
