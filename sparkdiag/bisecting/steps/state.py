"""What the steps in the journal amount to: judged ends, controls and points, and what they mark. Pure."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from sparkdiag.bisecting.question.journal import Ended, Finished, Step
from sparkdiag.bisecting.question.request import BisectRequest
from sparkdiag.bisecting.search.candidates import Contradiction, standing
from sparkdiag.bisecting.search.findings import (
    ABSENT_BLOB,
    CLEARLY_SLOW,
    Ends,
    Finding,
    compare_ends,
    finding,
    mark,
    signature_for,
)
from sparkdiag.evidence.base import Value
from sparkdiag.evidence.bisection import Commit, Has, Mark, Purpose, Signature, Target, TrialResult


class Point(Value):
    """What the trials of one point say together."""

    has: Has
    because: str
    runs: int
    settled: bool
    """No further run of it is wanted."""
    reused: bool = False
    """Its files are those of a judged point; it was not run."""


class State(Value):
    """A bisection as far as it got."""

    finished: tuple[Finished, ...] = ()
    ended: bool = False
    reference: Signature | None = None
    """The stall at the end that has it."""
    old: Point | None = None
    new: Point | None = None
    ends: Ends | None = None
    """Once both ends are settled."""
    healthy: TrialResult | None = None
    """The watched run of an end that completed: the baseline of what comes after it."""
    controls: dict[str, Point] = {}
    points: dict[str, Point] = {}
    """What was tried between the ends, in the order it was first tried."""
    confirmed: Point | None = None
    marks: dict[str, Mark] = {}
    """What the search goes by: the ends, the settled points, imported marks; reused ones while they hold."""
    reuse_from: dict[tuple[str, ...], str] = {}
    """Watched files of a judged point, and the point."""
    reuse_fails: str | None = None
    """Why points with the same watched files do not share a result after all."""


def fold(request: BisectRequest, steps: Iterable[Step]) -> State:
    """The state after ``steps``. A trial that began and did not finish left nothing: it is run again."""
    steps = tuple(steps)
    finished = tuple(step for step in steps if isinstance(step, Finished))
    ended = any(isinstance(step, Ended) for step in steps)
    state = _with_ends(request, State(finished=finished, ended=ended))
    state = state.model_copy(update={"controls": _controls(request, state), "confirmed": _confirmed(request, state)})
    if state.ends is None or state.ends.direction is None:
        return state
    return _with_points(request, state)


def runs_of(state: State, sha: str, *purposes: str) -> tuple[TrialResult, ...]:
    """Results of a point's trials, in the order they came."""
    return tuple(step.result for step in state.finished if step.result.sha == sha and step.purpose in purposes)


def commit_of(request: BisectRequest, sha: str) -> Commit:
    """The commit; a bare one where the axis does not know it."""
    history = request.axis.history
    return history.commits[history.index[sha]] if sha in history.index else Commit(sha=sha)


def named(request: BisectRequest, sha: str) -> str:
    """A point as one line names it: ten digits of a commit, the value of another axis."""
    return sha[:10] if request.axis.kind == "commits" else sha


def judged(findings: Sequence[Finding], *, wanted: int) -> Point | None:
    """What ``findings`` of one point say together; they must agree. None of none."""
    if not findings:
        return None
    unclear = next((one for one in findings if one.has == "cannot-tell"), None)
    if unclear is not None:
        return Point(has="cannot-tell", because=unclear.because, runs=len(findings), settled=True)
    if len({one.has for one in findings}) > 1:
        yes = sum(one.has == "yes" for one in findings)
        flaky = f"flaky: {yes} of {len(findings)} runs had it"
        return Point(has="cannot-tell", because=flaky, runs=len(findings), settled=True)
    last = findings[-1]
    return Point(has=last.has, because=last.because, runs=len(findings), settled=len(findings) >= wanted)


def judged_again(request: BisectRequest, runs: Sequence[TrialResult], *, reference: Signature | None) -> Point | None:
    """``judged`` of results. One that was reused, or is of an earlier run, stands for all runs that are wanted."""
    wanted = 1 if any(run.reused_from for run in runs) else request.repeat
    return judged([finding(run, target=request.target, reference=reference) for run in runs], wanted=wanted)


Run = tuple[int, TrialResult]
"""A result of an end, and its place among all results."""


def _with_ends(request: BisectRequest, state: State) -> State:
    runs = [(place, step.result) for place, step in enumerate(state.finished) if step.purpose == "end"]
    by_end = [[run for run in runs if run[1].sha == sha] for sha in (request.axis.old, request.axis.new)]
    healthy = _healthy(request, by_end[0] + by_end[1])
    seeing = [[run for place, run in end if not _is_blind(request, (place, run), runs, healthy)] for end in by_end]
    blind = [bool(end) and not clear for end, clear in zip(by_end, seeing, strict=True)]
    reference = _reference(request.target, *seeing)
    old, new = (
        judged_again(request, clear or [run for _, run in end], reference=reference)
        for clear, end in zip(seeing, by_end, strict=True)
    )
    if old is not None and blind[0]:
        old = old.model_copy(update={"settled": False})
    if new is not None and blind[1]:
        new = new.model_copy(update={"settled": False})
    return state.model_copy(
        update={
            "old": old,
            "new": new,
            "ends": None if any(blind) else _compared(request, old, new, reference=reference),
            "reference": reference,
            "healthy": healthy,
        }
    )


def _healthy(request: BisectRequest, runs: Sequence[Run]) -> TrialResult | None:
    """Of the ends' watched runs that completed the quickest; where the prompts differ in length, the first. One that
    completed at many times its own healthy time (a stall may end) is no measure."""
    watched = [run for _, run in sorted(runs, key=lambda run: run[0]) if run.outcome == "completed" and run.watched]
    completed = [run for run in watched if run.times_healthy is None or run.times_healthy <= CLEARLY_SLOW]
    if not completed or request.axis.kind == "prompt-tokens":
        return next(iter(completed), None)
    return min(completed, key=_time)


def _time(run: TrialResult) -> float:
    return math.inf if run.first_token_s is None else run.first_token_s


def _is_blind(request: BisectRequest, one: Run, runs: Sequence[Run], healthy: TrialResult | None) -> bool:
    """Whether a run of an end had no healthy time to go by that is known by now, and would have needed it: it came to
    no verdict, or completed many times slower than the other end. It is run again."""
    place, run = one
    if healthy is None or run is healthy:
        return False
    known = [_time(other) for before, other in runs if before < place and other.outcome == "completed"]
    if run.outcome == "inconclusive":
        return not known
    if run.outcome != "completed" or request.target.what != "stall" or request.axis.kind == "prompt-tokens":
        return False
    return _is_slow(run, _time(healthy)) and not any(_is_slow(run, time_s) for time_s in known)


def _is_slow(run: TrialResult, healthy_s: float) -> bool:
    return run.first_token_s is not None and run.first_token_s > CLEARLY_SLOW * healthy_s


def _compared(
    request: BisectRequest, old: Point | None, new: Point | None, *, reference: Signature | None
) -> Ends | None:
    """As soon as no further run can make the ends differ."""
    if old is None or new is None:
        return None
    if not (old.settled and new.settled) and (old.has != new.has or old.has == "cannot-tell"):
        return None
    return compare_ends(_finding(old), _finding(new), reference=reference, target=request.target)


def _reference(target: Target, old: Sequence[TrialResult], new: Sequence[TrialResult]) -> Signature | None:
    """The stall (or crash) of the one end that has it; of both none is locked on."""
    seen = [[signature for run in runs if (signature := signature_for(run, target=target))] for runs in (old, new)]
    if all(seen) or not any(seen):
        return None
    return next(signature for found in seen for signature in found)


def _finding(point: Point) -> Finding:
    return Finding(has=point.has, because=point.because)


def _controls(request: BisectRequest, state: State) -> dict[str, Point]:
    """By end: what happened when nobody watched."""
    found = {}
    for sha in (request.axis.old, request.axis.new):
        runs = runs_of(state, sha, "control")
        point = judged([finding(run, target=request.target, reference=state.reference) for run in runs], wanted=1)
        if point is not None:
            found[sha] = point
    return found


def _confirmed(request: BisectRequest, state: State) -> Point | None:
    runs = [step.result for step in state.finished if step.purpose == "confirm"]
    return judged([finding(run, target=request.target, reference=state.reference) for run in runs], wanted=1)


def _with_points(request: BisectRequest, state: State) -> State:
    tried = dict.fromkeys(step.result.sha for step in state.finished if step.purpose == "search")
    points: dict[str, Point] = {}
    for sha in tried:
        runs = runs_of(state, sha, "search")
        own = [run for run in runs if not run.reused_from]
        point = judged_again(request, own or runs, reference=state.reference)
        if point is not None:
            points[sha] = point.model_copy(update={"reused": not own})
    state = state.model_copy(update={"points": points})
    reuse_from, broken = _reusable(request, state)
    marks = _marks(request, state, points)
    fails = broken or _reuse_fails(request, points, marks)
    if fails is not None:
        reuse_from = {}
        marks = _marks(request, state, {sha: point for sha, point in points.items() if not point.reused})
    return state.model_copy(update={"marks": marks, "reuse_from": reuse_from, "reuse_fails": fails})


def has_blobs(blobs: Sequence[str]) -> bool:
    """Whether there is any watched file to compare."""
    return any(blob != ABSENT_BLOB for blob in blobs)


def _reusable(request: BisectRequest, state: State) -> tuple[dict[tuple[str, ...], str], str | None]:
    """Watched files of points that were really run and clearly judged; and what disproves that they alone matter."""
    real = {request.axis.old: state.old, request.axis.new: state.new}
    real |= {sha: point for sha, point in state.points.items() if not point.reused}
    first: dict[tuple[str, ...], tuple[str, Has]] = {}
    broken = None
    for sha, point in real.items():
        blobs = commit_of(request, sha).suspect_blobs
        if point is None or not point.settled or point.has == "cannot-tell" or not has_blobs(blobs):
            continue
        other, has = first.setdefault(blobs, (sha, point.has))
        if has != point.has and broken is None:
            broken = f"{named(request, other)} and {named(request, sha)} have the same watched files and differ"
    return {blobs: sha for blobs, (sha, _) in first.items()}, broken


def _marks(request: BisectRequest, state: State, points: Mapping[str, Point]) -> dict[str, Mark]:
    known = request.axis.history.index
    marks: dict[str, Mark] = {one.sha: one.mark for one in request.imported if one.sha in known}
    direction = state.ends.direction if state.ends is not None else None
    for sha, point in points.items():
        if point.settled and sha in known and direction is not None:
            marks[sha] = mark(point.has, direction)
    return marks | {request.axis.old: "old", request.axis.new: "new"}


def _reuse_fails(request: BisectRequest, points: Mapping[str, Point], marks: Mapping[str, Mark]) -> str | None:
    """Whether the reused results contradict the others: then each point is really run."""
    if not any(point.reused for point in points.values()):
        return None
    try:
        standing(request.axis.history, marks)
    except Contradiction:
        return "the reused results contradict the others"
    return None


def same_as_a_parent(request: BisectRequest, sha: str) -> bool:
    """Whether a commit's watched files are known to be those of one of its parents."""
    commit, known = commit_of(request, sha), request.axis.history.index
    return has_blobs(commit.suspect_blobs) and any(
        commit_of(request, parent).suspect_blobs == commit.suspect_blobs for parent in commit.parents if parent in known
    )


class TrialStep(Value):
    """Run a point."""

    sha: str
    purpose: Purpose


class ReuseStep(Value):
    """Take a judged point's result for another point, whose watched files are the same."""

    result: TrialResult


class Conclusion(Value):
    """The search is over."""

    outcome: Literal["found", "candidates", "inconclusive"]
    reason: str | None = None
    """Why it is not ``found``; one line, with the lever to pull next."""
    commits: tuple[str, ...] = ()
    """The culprit, or all candidates in history order."""
    confidence: float | None = None
