"""What one trial showed, and what that means for the search. Pure."""

from collections.abc import Sequence

from sparkdiag.evidence.base import Value
from sparkdiag.evidence.bisection import Direction, Has, Mark, Signature, Target, TrialResult
from sparkdiag.evidence.client import NeedleScore

WRONG: frozenset[NeedleScore] = frozenset({"wrong", "truncated", "degenerate"})


class Finding(Value):
    """Whether a commit has what is looked for."""

    has: Has
    because: str


def finding(result: TrialResult, *, target: Target, reference: Signature | None) -> Finding:
    """Whether the trial showed the target. ``reference``: the stall at the end that has it; None while that is sought.

    Anything that is neither the target nor its clear absence cannot tell: a search that counted another stall, a crash
    or a server that never started would blame the wrong commit.
    """
    if result.outcome in ("not-built", "not-proved", "inconclusive"):
        return Finding(has="cannot-tell", because=result.reason or result.outcome)
    match target.what:
        case "stall":
            return _stall(result, reference)
        case "frame":
            return _frame(result, target.frame or "")
        case "wrong-needle":
            return _needle(result)
        case "crash":
            crashed = result.outcome in ("crashed", "not-started")
            return Finding(has="yes" if crashed else "no", because=result.reason or result.outcome)


def _stall(result: TrialResult, reference: Signature | None) -> Finding:
    if result.outcome == "completed":
        return Finding(has="no", because=f"completed, needle {result.needle or 'not scored'}")
    if result.outcome != "stalled":
        return Finding(has="cannot-tell", because=result.reason or result.outcome)
    if reference is not None and result.signature != reference:
        return Finding(has="cannot-tell", because=f"another stall: {result.signature}, not {reference}")
    return Finding(has="yes", because=f"stalled ({result.mode}): {result.signature}")


def _frame(result: TrialResult, name: str) -> Finding:
    if name in result.functions:
        return Finding(has="yes", because=f"{name} was seen in the stacks")
    if result.samples == 0 or result.outcome not in ("completed", "stalled"):
        return Finding(has="cannot-tell", because=result.reason or f"{result.outcome}, {result.samples} stack samples")
    return Finding(has="no", because=f"{name} was in none of {result.samples} stack samples")


def _needle(result: TrialResult) -> Finding:
    if result.outcome != "completed" or result.needle is None:
        return Finding(has="cannot-tell", because=result.reason or result.outcome)
    return Finding(has="yes" if result.needle in WRONG else "no", because=f"needle {result.needle}")


class Ends(Value):
    """What the two ends showed: which way the change goes, or why there is nothing to search."""

    direction: Direction | None
    reference: Signature | None = None
    problem: str | None = None
    lever: str | None = None
    """What to change so that the ends differ."""


def compare_ends(old: Finding, new: Finding, *, reference: Signature | None, target: Target) -> Ends:
    """``fix``: the older end has the target and the newer has not. ``regression``: the other way round."""
    for name, end in (("older", old), ("newer", new)):
        if end.has == "cannot-tell":
            problem = f"the {name} end cannot be judged: {end.because}"
            return Ends(direction=None, problem=problem, lever=f"name another {name} end")
    if old.has != new.has:
        return Ends(direction="fix" if old.has == "yes" else "regression", reference=reference)
    if old.has == "yes":
        return Ends(direction=None, problem=f"both ends have it ({target})", lever="a wider range, or another --dcp")
    lever = "a larger --dcp, a longer --prompt-tokens, or a wider range"
    return Ends(direction=None, problem=f"neither end has it ({target})", lever=lever)


def mark(has: Has, direction: Direction) -> Mark:
    """Which side of the change a finding puts a commit on."""
    if has == "cannot-tell":
        return "skip"
    return "old" if (has == "yes") == (direction == "fix") else "new"


def same_suspect_files(blobs: Sequence[str], judged: dict[tuple[str, ...], str]) -> str | None:
    """The judged commit whose watched files are the same, byte for byte; None without any blob to compare."""
    return judged.get(tuple(blobs)) if any(blobs) else None
