"""What to do next, given what is known: one pure function from a state to a trial, a reused result or the answer.

Both ends first, then each end once more unwatched, then the search, then the confirmation.
"""

from collections.abc import Callable

from sparkdiag.bisecting.question.git_log import FIX_TERMS
from sparkdiag.bisecting.question.request import BisectRequest
from sparkdiag.bisecting.search.candidates import Contradiction, Standing, information_bits, next_trial, standing
from sparkdiag.bisecting.search.findings import same_suspect_files
from sparkdiag.bisecting.steps.noisy import noisy_step
from sparkdiag.bisecting.steps.state import (
    Conclusion,
    Point,
    ReuseStep,
    State,
    TrialStep,
    commit_of,
    has_blobs,
    named,
    runs_of,
)

Minutes = Callable[[str], float]
MOST_SKIPS_NAMED = 5


def _one_minute(_sha: str) -> float:
    return 1.0


def next_step(
    request: BisectRequest, state: State, *, minutes: Minutes = _one_minute
) -> TrialStep | ReuseStep | Conclusion:
    """The next step. ``minutes``: what a trial of a point is expected to take; it decides the order, not the answer."""
    before = _end_step(request, state) or _control_step(request, state) or _import_problem(request, state)
    if before is not None:
        return before
    noisy = request.confidence is not None
    step = noisy_step(request, state, minutes=minutes) if noisy else _search_step(request, state, minutes)
    if isinstance(step, Conclusion) and step.outcome == "found":
        return _left_out(request, step.commits[0]) or _confirm_step(request, state, step.commits[0]) or step
    return step


def _left_out(request: BisectRequest, culprit: str) -> Conclusion | None:
    """The newer end of a restricted search is no culprit where it stands for commits that were left out."""
    if culprit != request.axis.new or not request.axis.stand_in:
        return None
    last = ", ".join(named(request, parent) for parent in commit_of(request, culprit).parents)
    return _inconclusive(
        f"no commit that changes a watched file brought it: it came between {last} and {named(request, culprit)}",
        lever="search between these two without --only-watched-paths",
    )


def _end_step(request: BisectRequest, state: State) -> TrialStep | Conclusion | None:
    old, new = state.old, state.new
    if old is None:
        return TrialStep(sha=request.axis.old, purpose="end")
    if new is None and not (_is_hopeless(old) and not _may_lack_a_baseline(request, state)):
        return TrialStep(sha=request.axis.new, purpose="end")
    for name, sha, point in (("older", request.axis.old, old), ("newer", request.axis.new, new)):
        if point is not None and _is_hopeless(point):
            return _inconclusive(
                f"the {name} end {named(request, sha)} cannot be judged: {point.because}",
                lever=f"name another {name} end",
            )
    if state.ends is None:
        return TrialStep(sha=request.axis.new if old.settled else request.axis.old, purpose="end")
    if state.ends.direction is None:
        return _no_difference(request, state)
    return None


def _is_hopeless(end: Point) -> bool:
    return end.settled and end.has == "cannot-tell"


def _may_lack_a_baseline(request: BisectRequest, state: State) -> bool:
    """The older end came to no verdict, perhaps because no healthy time was known: the newer end may give one."""
    return any(run.outcome == "inconclusive" for run in runs_of(state, request.axis.old, "end"))


def _no_difference(request: BisectRequest, state: State) -> Conclusion:
    stalls = [
        run.signature
        for sha in (request.axis.old, request.axis.new)
        for run in runs_of(state, sha, "end")[-1:]
        if run.outcome == "stalled" and request.target.what == "stall"
    ]
    if len(set(stalls)) > 1:
        return _inconclusive(
            f"the ends stall in different ways: {stalls[0]} and {stalls[1]}",
            lever="look for one of them (--looks-for frame:NAME), or name an end that does not stall",
        )
    ends = state.ends
    return _inconclusive((ends and ends.problem) or "the ends do not differ", lever=(ends and ends.lever) or "")


def wants_controls(request: BisectRequest) -> bool:
    """Whether ends are run again unwatched: without stacks no frame can be looked for."""
    return request.controls and request.target.what != "frame"


def _control_step(request: BisectRequest, state: State) -> TrialStep | Conclusion | None:
    if not wants_controls(request):
        return None
    ends = [(request.axis.old, state.old), (request.axis.new, state.new)]
    for sha, end in sorted(ends, key=lambda one: one[1] is None or one[1].has != "yes"):
        control = state.controls.get(sha)
        if control is None:
            return TrialStep(sha=sha, purpose="control")
        if end is None or control.has in ("cannot-tell", end.has):
            continue
        what = str(request.target)
        if end.has == "yes":
            problem = f"the {what} at {named(request, sha)} vanishes when nobody samples ({control.because})"
            return _inconclusive(problem, lever="sampling itself may cause it; watch less often, then search again")
        problem = f"{named(request, sha)} has the {what} when nobody samples ({control.because}), and not when watched"
        return _inconclusive(problem, lever="the verdict is not stable; name another end, or --repeat 3")
    return None


def _import_problem(request: BisectRequest, state: State) -> Conclusion | None:
    words = {one.word for one in request.imported}
    direction = state.ends.direction if state.ends is not None else None
    if words & {"good", "bad"} and direction == "fix":
        return _inconclusive(
            f"the imported log calls the older side good, but here the older end has it ({request.target})",
            lever="leave the log out, or mark it with terms of its own (git bisect start --term-old … --term-new …)",
        )
    if words & {*FIX_TERMS} and direction == "regression":
        return _inconclusive(
            f"the imported log calls the older side {FIX_TERMS[0]}, but here the newer end has it ({request.target})",
            lever="leave the log out: it tells of another search",
        )
    return None


def _search_step(request: BisectRequest, state: State, minutes: Minutes) -> TrialStep | ReuseStep | Conclusion:
    history = request.axis.history
    try:
        now = standing(history, state.marks)
    except Contradiction as clash:
        return _inconclusive(
            f"the verdicts contradict each other: {named(request, clash.new)} is like the newer end, and "
            f"{named(request, clash.old)}, which contains it, is not",
            lever="search a narrower range, --repeat 3, or leave imported marks out",
        )
    again = next((sha for sha, point in state.points.items() if not point.settled), None)
    if again is not None:
        return TrialStep(sha=again, purpose="search")
    reused = _reuse_step(request, state, now)
    if reused is not None:
        return reused
    free = {one.sha for one in request.imported} | {sha for sha, point in state.points.items() if point.reused}
    sha = next_trial(history, state.marks, predicted=request.predicted, minutes=minutes, free=free)
    if sha is not None:
        sha = _oldest_alike(request, state, now, sha)
    else:
        now, sha = _checked(request, state, now, minutes)
    if sha is not None:
        return TrialStep(sha=sha, purpose="search")
    if now.found is not None:
        return Conclusion(outcome="found", commits=(now.found,))
    return Conclusion(outcome="candidates", commits=now.candidates, reason=_hidden_by(request, state, now))


def _reuse_step(request: BisectRequest, state: State, now: Standing) -> ReuseStep | None:
    """Of the points that cost nothing the one that tells most."""
    if not request.reuse or not state.reuse_from:
        return None
    history = request.axis.history
    free = [sha for sha in now.testable if _same_files(request, state, sha) is not None]
    if not free:
        return None
    left = sum(1 << history.index[sha] for sha in now.candidates)

    def tells(sha: str) -> tuple[float, int]:
        share = (history.ancestors_of(sha) & left).bit_count() / len(now.candidates)
        return information_bits(share), -history.index[sha]

    sha = max(free, key=tells)
    source = _same_files(request, state, sha) or sha
    result = next(
        run for run in reversed(runs_of(state, source, "end", "search")) if run.reused_from not in history.index
    )
    return ReuseStep(result=result.model_copy(update={"sha": sha, "reused_from": source, "minutes": 0.0}))


def _checked(request: BisectRequest, state: State, now: Standing, minutes: Minutes) -> tuple[Standing, str | None]:
    """What is left, and the point that the answer stands on though only a reused result speaks for it: it is run.

    What is left is bounded by its newest point, which has to be new, and by the parents outside, which have to be old.
    If files that are not watched matter too, a boundary that was only reused is where the search would go wrong. Where
    a skip keeps the boundary itself from being run, reused results count for nothing: the search goes on without them.
    """
    history = request.axis.history
    run = {sha: side for sha, side in state.marks.items() if sha not in state.points or not state.points[sha].reused}
    really = standing(history, run)
    if really.candidates == now.candidates:
        return now, None
    outside = [
        parent
        for sha in now.candidates
        for parent in commit_of(request, sha).parents
        if parent in history.index and parent not in now.candidates
    ]
    bound = next((sha for sha in (now.candidates[-1], *outside) if sha in really.testable), None)
    if bound is not None:
        return now, bound
    free = {one.sha for one in request.imported}
    return really, next_trial(history, run, predicted=request.predicted, minutes=minutes, free=free)


def _oldest_alike(request: BisectRequest, state: State, now: Standing, sha: str) -> str:
    """Of the points with the same watched files, which tell the same, the one that may itself be the culprit."""
    blobs = commit_of(request, sha).suspect_blobs
    guided = any(sha in (one, *commit_of(request, one).parents) for one in request.predicted)
    if guided or not request.reuse or state.reuse_fails is not None or not has_blobs(blobs):
        return sha
    return next(other for other in now.testable if commit_of(request, other).suspect_blobs == blobs)


def _same_files(request: BisectRequest, state: State, sha: str) -> str | None:
    return same_suspect_files(commit_of(request, sha).suspect_blobs, state.reuse_from)


def _hidden_by(request: BisectRequest, state: State, now: Standing) -> str:
    skipped = [sha for sha in now.candidates if state.marks.get(sha) == "skip"]
    imported = {one.sha for one in request.imported}
    texts = []
    for sha in skipped[:MOST_SKIPS_NAMED]:
        point = state.points.get(sha)
        why = point.because if point is not None else "skipped in the imported log" if sha in imported else "skipped"
        texts.append(f"{named(request, sha)}: {why}")
    more = f" and {len(skipped) - MOST_SKIPS_NAMED} more" if len(skipped) > MOST_SKIPS_NAMED else ""
    return f"{len(now.candidates)} are left, because these could not be judged: {'; '.join(texts)}{more}"


def _confirm_step(request: BisectRequest, state: State, culprit: str) -> TrialStep | None:
    if not request.confirm or request.target.what != "stall" or state.confirmed is not None:
        return None
    return TrialStep(sha=_stalls_beside(request, state, culprit), purpose="confirm")


def _stalls_beside(request: BisectRequest, state: State, culprit: str) -> str:
    """The point next to the change that was seen to stall: the culprit, or what a fix came upon."""
    if state.ends is None or state.ends.direction != "fix":
        return culprit
    seen = (
        sha for sha in commit_of(request, culprit).parents if sha in state.points and state.points[sha].has == "yes"
    )
    return next(seen, request.axis.old)


def last_old(request: BisectRequest, culprit: str) -> str:
    """The point before the culprit: its first parent among the points, else the older end."""
    known = request.axis.history.index
    return next((parent for parent in commit_of(request, culprit).parents if parent in known), request.axis.old)


def _inconclusive(problem: str, *, lever: str) -> Conclusion:
    return Conclusion(outcome="inconclusive", reason=f"{problem}; next: {lever}" if lever else problem)
