"""A result that nobody ran: what a trial would have shown. For planning ahead, and for marks of somebody else. Pure."""

from sparkdiag.bisecting.search.findings import FEWEST_SAMPLES
from sparkdiag.evidence.bisection import Has, Signature, Target, TrialResult

SUPPOSED = "supposed"
SUPPOSED_STALL = Signature(kind=SUPPOSED, function=SUPPOSED, role="worker")


def supposed_result(sha: str, has: Has, *, target: Target, reference: Signature | None) -> TrialResult:
    """A result that ``trial.finding`` reads as ``has``. ``reference``: what the search is locked on, if it is yet."""
    if has == "cannot-tell":
        return TrialResult(sha=sha, outcome="inconclusive", reason=SUPPOSED)
    samples, yes = FEWEST_SAMPLES, has == "yes"
    if target.what == "frame":
        return TrialResult(
            sha=sha, outcome="completed", functions=(target.frame or "",) if yes else (), samples=samples
        )
    if target.what == "wrong-needle":
        return TrialResult(sha=sha, outcome="completed", needle="wrong" if yes else "retrieved", samples=samples)
    if not yes:
        return TrialResult(sha=sha, outcome="completed", reason=SUPPOSED, samples=samples)
    if target.what == "stall":
        return TrialResult(sha=sha, outcome="stalled", reason=SUPPOSED, signature=reference or SUPPOSED_STALL)
    at_start = reference is not None and reference.role == "not-started"
    cause = SUPPOSED if reference is None else reference.function or ""
    return TrialResult(sha=sha, outcome="not-started" if at_start else "crashed", reason=cause)
