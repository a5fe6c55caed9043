"""What one trial showed, and what that means for the search. Pure."""

import re
from collections.abc import Sequence
from typing import assert_never

from sparkdiag.evidence.base import Value
from sparkdiag.evidence.bisection import Direction, Has, Mark, Signature, Target, TrialResult
from sparkdiag.evidence.client import NeedleScore

WRONG: frozenset[NeedleScore] = frozenset({"wrong", "truncated", "degenerate"})
FEWEST_SAMPLES = 5
"""Stack samples without a function, below which it may merely have been missed."""
ABSENT_BLOB = "-"
_EXCEPTION = re.compile(r"\b[A-Za-z_]\w*(?:Error|Exception|Exit|Interrupt|Refused|NotFound|Violation)\b")
_PASSING_ON = frozenset({"ServerError", "EngineDeadError", "EngineGenerateError"})
"""Raised because something else was."""
_SIGNAL = re.compile(r"\bSIG[A-Z]{3,}\b")
_VARIABLE = re.compile(r"0x[0-9a-fA-F]+|(?<!\w)/\S+|(?<!code )(?<!status )(?<!signal )(?<![\d.-])\d+(?:\.\d+)?")
"""What differs between two crashes that are the same: addresses, paths, numbers other than how the process ended."""
_MOST_WORDS = 12
CLEARLY_SLOW = 5.0
"""Half the factor at which crawling begins by default. Were the healthy end slowed by a busy machine, a stall could end
before ten times its time; a run that took less than this many times is none."""


class Finding(Value):
    """Whether a commit has what is looked for."""

    has: Has
    because: str


def finding(result: TrialResult, *, target: Target, reference: Signature | None) -> Finding:
    """Whether the trial showed the target. ``reference``: what ``signature_for`` says of the end that has it; None
    while that is sought.

    Anything that is neither the target nor its clear absence cannot tell: a search that counted another stall, a crash
    or a server that never started would blame the wrong commit. A run that did not prove its revision shows nothing.
    """
    if result.outcome in ("not-built", "not-proved"):
        return _cannot_tell(result)
    match target.what:
        case "stall":
            return _stall(result, reference)
        case "frame":
            return _frame(result, target.frame or "")
        case "wrong-needle":
            return _needle(result)
        case "crash":
            return _crash(result, reference)
        case never:
            assert_never(never)


def signature_for(result: TrialResult, *, target: Target) -> Signature | None:
    """What later trials must show to count as the same, where the target has that: the stall's signature, or what
    crashed and how. None where the result has none."""
    match target.what:
        case "stall":
            return result.signature if result.outcome == "stalled" else None
        case "crash":
            return _crash_signature(result)
        case _:
            return None


def _cannot_tell(result: TrialResult, because: str = "") -> Finding:
    return Finding(has="cannot-tell", because=because or result.reason or result.outcome)


def _stall(result: TrialResult, reference: Signature | None) -> Finding:
    if result.outcome == "completed" and result.times_healthy is not None and result.times_healthy > CLEARLY_SLOW:
        times = f"{result.times_healthy:.1f} times the healthy time"
        return _cannot_tell(result, f"completed, but after {times}: neither the stall nor clearly without it")
    if result.outcome == "completed":
        return Finding(has="no", because=f"completed, needle {result.needle or 'not scored'}")
    if result.outcome != "stalled":
        return _cannot_tell(result)
    if not result.watched:
        return Finding(has="yes", because=f"stalled ({result.mode}), unwatched: not known where")
    if result.signature is None or result.signature.function is None:
        return _cannot_tell(result, "stalled, but not known where: it cannot be told from another stall")
    if reference is not None and result.signature != reference:
        return _cannot_tell(result, f"another stall: {result.signature}, not {reference}")
    return Finding(has="yes", because=f"stalled ({result.mode}): {result.signature}")


def _frame(result: TrialResult, name: str) -> Finding:
    """A function that was seen was there, however the run ended; it was not only where the whole prompt was watched:
    what a run stuck elsewhere would have come to is not known."""
    if name in result.functions:
        return Finding(has="yes", because=f"{name} was seen in the stacks")
    samples = f"{result.samples} stack samples"
    whole = result.outcome == "completed" or (result.outcome == "stalled" and result.mode == "crawling")
    if not whole:
        how = f"{result.outcome} ({result.mode})" if result.mode else result.outcome
        return _cannot_tell(result, result.reason or f"{how}: {name} might have come later")
    if result.samples < FEWEST_SAMPLES:
        return _cannot_tell(result, f"{name} was in none of {samples}, too few to have seen it")
    return Finding(has="no", because=f"{name} was in none of {samples}")


def _needle(result: TrialResult) -> Finding:
    if result.outcome != "completed":
        return _cannot_tell(result)
    if result.needle is None:
        return _cannot_tell(result, "completed, but the answer was not scored")
    return Finding(has="yes" if result.needle in WRONG else "no", because=f"needle {result.needle}")


def _crash(result: TrialResult, reference: Signature | None) -> Finding:
    """A prompt that was answered is the clear absence of a crash; a server that was ready that of one at its start."""
    seen = _crash_signature(result)
    if seen is None:
        at_start = reference is not None and reference.role == "not-started"
        if result.outcome == "completed" or (at_start and result.outcome == "stalled"):
            return Finding(has="no", because=f"did not crash: {result.outcome}")
        return _cannot_tell(result)
    if reference is not None and seen != reference:
        said = result.reason or result.outcome
        return _cannot_tell(result, f"another crash: {said}; {_as_crash(seen)}, not {_as_crash(reference)}")
    return Finding(has="yes", because=f"{result.outcome}: {result.reason or 'no reason known'}")


def _as_crash(seen: Signature) -> str:
    return f"{seen.function or 'unknown'} ({seen.role})"


def _crash_signature(result: TrialResult) -> Signature | None:
    """When it crashed (before or after the server was ready) and the class of the reason; None for no crash."""
    if result.outcome not in ("crashed", "not-started"):
        return None
    log = [item.text for item in result.evidence_for if item.source == "server-log"]
    return Signature(kind="crash", function=crash_class(result.reason, log=log), role=result.outcome)


def crash_class(reason: str, *, log: Sequence[str] = ()) -> str | None:
    """What two crashes of one cause share: the first exception of the reason, else of the server's last lines, that was
    raised for a cause of its own; else the signal; else the reason's first words, without the numbers, paths and
    addresses that differ from run to run. None where nothing is known."""
    named = [name for text in (reason, *log) for name in _EXCEPTION.findall(text)]
    own = [name for name in named if name not in _PASSING_ON]
    if found := (*own, *_SIGNAL.findall(reason), *named):
        return str(found[0])
    return " ".join(_VARIABLE.sub("#", reason).split()[:_MOST_WORDS]) or None


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
    """The judged commit whose watched files are the same, byte for byte. None where there is no file to compare: two
    commits that both lack them may differ in everything."""
    return judged.get(tuple(blobs)) if any(blob != ABSENT_BLOB for blob in blobs) else None
