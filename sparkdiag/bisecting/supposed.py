"""A result that nobody ran: what a trial would have shown. For planning ahead, and for marks of somebody else. Pure."""

from sparkdiag.evidence.bisection import Has, Signature, Target, TrialResult


def supposed_result(sha: str, has: Has, *, target: Target, reference: Signature | None) -> TrialResult:
    """A result that ``trial.finding`` reads as ``has``."""
    if has == "cannot-tell":
        return TrialResult(sha=sha, outcome="inconclusive", reason="supposed")
    yes = has == "yes"
    match target.what:
        case "stall":
            stall = reference or Signature(kind=None, function=None, role=None)
            return TrialResult(
                sha=sha, outcome="stalled" if yes else "completed", signature=stall if yes else None, reason="supposed"
            )
        case "frame":
            seen = (target.frame or "",) if yes else ()
            return TrialResult(sha=sha, outcome="completed", functions=seen, samples=1)
        case "wrong-needle":
            return TrialResult(sha=sha, outcome="completed", needle="wrong" if yes else "retrieved")
        case "crash":
            return TrialResult(sha=sha, outcome="crashed" if yes else "completed")
