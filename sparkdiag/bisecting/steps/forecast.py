"""How many trials a search takes and how long: before it starts (``--dry-run``), and what is left of one. Pure."""

from collections.abc import Callable, Iterator
from statistics import mean

from sparkdiag.bisecting.question.journal import Finished
from sparkdiag.bisecting.question.request import BisectRequest
from sparkdiag.bisecting.search.candidates import (
    MOST_EXTRA_TRIALS,
    Contradiction,
    halving_bound,
    longest_halving,
    standing,
)
from sparkdiag.bisecting.steps.noisy import most_trials
from sparkdiag.bisecting.steps.state import Conclusion, ReuseStep, State, TrialStep, commit_of, fold, has_blobs
from sparkdiag.bisecting.steps.step import Minutes, next_step, wants_controls
from sparkdiag.bisecting.steps.supposed import supposed_result
from sparkdiag.evidence.base import Value
from sparkdiag.evidence.bisection import Has, Mark, Purpose, TrialResult

MOST_SIMULATED = 64
"""Culprits that are played through; of more candidates as many, evenly spread."""
MOST_POINTS_SIMULATED = 1024
"""In a longer history a played-through search takes too long; then the bounds of halving are told."""
FIRST_POINTS = 4


class Forecast(Value):
    """What a search is expected to take."""

    ends: int
    """Trials that are runs of the two ends; those given by earlier runs are not among them."""
    controls: int
    confirm: int
    search_least: int
    search_most: int
    exact: bool
    """The search was played through for each possible culprit; else the bounds are those of halving."""
    minutes_least: float
    minutes_most: float
    first: tuple[str, ...] = ()
    """Points that are tried first if the ends differ: the first, and both that may come after it."""

    @property
    def trials_least(self) -> int:
        """In all, if the ends differ."""
        return self.ends + self.controls + self.confirm + self.search_least

    @property
    def trials_most(self) -> int:
        """In all."""
        return self.ends + self.controls + self.confirm + self.search_most


def forecast(request: BisectRequest, *, minutes: Minutes) -> Forecast:
    """Before anything starts. Skips, flaky verdicts, ends that do not differ and, where results are reused, files that
    matter and are not watched are not foreseen."""
    given = sum(1 for run in (request.old_run, request.new_run) if run is not None)
    ends, controls = (2 - given) * request.repeat, 2 if wants_controls(request) else 0
    confirm = 1 if request.confirm and request.target.what == "stall" else 0
    beside = (ends + controls + confirm) * _mean_minutes([request.axis.old, request.axis.new], minutes)
    paths = [] if request.confidence is not None else [*_played(request, minutes)]
    if paths:
        numbers = [len(path) for path in paths]
        costs = [sum(minutes(sha) for sha in path) for path in paths]
    else:
        numbers = [*_bounds(request)]
        each = _mean_minutes([commit.sha for commit in request.axis.history.commits], minutes)
        costs = [number * each for number in numbers]
    return Forecast(
        ends=ends,
        controls=controls,
        confirm=confirm,
        search_least=min(numbers),
        search_most=max(numbers),
        exact=bool(paths) and _between(request) <= MOST_SIMULATED,
        minutes_least=beside + min(costs),
        minutes_most=beside + max(costs),
        first=_first_points(request, minutes),
    )


def minutes_left(request: BisectRequest, state: State, *, minutes: Minutes) -> float | None:
    """What the rest of the search is expected to take, the trial that is about to start included.

    Of halving: what trials really took so far, else what their runner expects of them.
    """
    took = [step.result.minutes for step in state.finished if step.result.minutes > 0]
    each = mean(took) if took else _mean_minutes([request.axis.old, request.axis.new], minutes)
    runs = [point.runs for point in (state.old, state.new) if point is not None]
    missing_ends = 2 * request.repeat - sum(runs) if state.ends is None else 0
    controls = 2 - len(state.controls) if wants_controls(request) else 0
    confirm = 1 if request.confirm and request.target.what == "stall" and state.confirmed is None else 0
    left = _search_left(request, state)
    return None if left is None else (max(0, missing_ends) + controls + confirm + left) * each


def _search_left(request: BisectRequest, state: State) -> int | None:
    marks = state.marks or {request.axis.old: "old", request.axis.new: "new"}
    try:
        now = standing(request.axis.history, marks)
    except Contradiction:
        return None
    if request.confidence is not None:
        tried = sum(step.purpose == "search" for step in state.finished)
        return max(1, halving_bound(len(now.candidates)) * 2 - tried)
    return halving_bound(len(now.testable) + 1) * request.repeat if now.testable else 0


def possible_next(request: BisectRequest, state: State, step: TrialStep, *, minutes: Minutes) -> tuple[str, ...]:
    """The points that may be tried after ``step``, whichever way it ends: the likelier first where both are known."""
    found = []
    for has in ("yes", "no"):
        then = _after(request, state, step, has, minutes=minutes)
        if isinstance(then, TrialStep) and then.sha != step.sha:
            found.append(then.sha)
    return tuple(dict.fromkeys(found))


def _after(
    request: BisectRequest, state: State, step: TrialStep, has: Has, *, minutes: Minutes
) -> TrialStep | Conclusion:
    """What follows if ``step`` shows ``has``, reused results taken for granted."""
    result = supposed_result(step.sha, has, target=request.target, reference=state.reference)
    finished = [*state.finished, *[_finished(step.purpose, result)] * _runs(request, step.purpose)]
    while True:
        then = next_step(request, fold(request, finished), minutes=minutes)
        if not isinstance(then, ReuseStep):
            return then
        finished.append(_finished("search", then.result))


def _runs(request: BisectRequest, purpose: Purpose) -> int:
    return request.repeat if purpose in ("end", "search") and request.confidence is None else 1


def _finished(purpose: Purpose, result: TrialResult) -> Finished:
    return Finished(at="", purpose=purpose, result=result)


def _played(request: BisectRequest, minutes: Minutes) -> Iterator[tuple[str, ...]]:
    """The points run between the ends, for each culprit that is tried out."""
    history = request.axis.history
    if len(history.commits) > MOST_POINTS_SIMULATED:
        return
    imported: dict[str, Mark] = {one.sha: one.mark for one in request.imported if one.sha in history.index}
    try:
        now = standing(history, imported | {request.axis.old: "old", request.axis.new: "new"})
    except Contradiction:
        return
    possible = [sha for sha in now.candidates if not request.reuse or _changes_watched(request, sha)]
    step = max(1, -(-len(possible) // MOST_SIMULATED))
    quiet = _quiet(request)
    for culprit in possible[::step]:
        yield _path(quiet, culprit, minutes)


def _quiet(request: BisectRequest) -> BisectRequest:
    """The search between the ends only. A regression is supposed, so an imported log is not held to its words."""
    imported = tuple(one.model_copy(update={"word": one.mark}) for one in request.imported)
    return request.model_copy(update={"controls": False, "confirm": False, "imported": imported})


def _changes_watched(request: BisectRequest, sha: str) -> bool:
    """Whether the point can be the culprit if only the watched files matter."""
    commit, known = commit_of(request, sha), request.axis.history.index
    if not has_blobs(commit.suspect_blobs):
        return True
    return all(
        commit_of(request, parent).suspect_blobs != commit.suspect_blobs for parent in commit.parents if parent in known
    )


def _path(request: BisectRequest, culprit: str, minutes: Minutes) -> tuple[str, ...]:
    history = request.axis.history
    bit = 1 << history.index[culprit]

    def result(sha: str) -> TrialResult:
        is_new = bool(history.ancestors_of(sha) & bit)
        has: Has = "yes" if is_new else "no"  # a regression; a fix takes as many trials
        return supposed_result(sha, has, target=request.target, reference=None)

    finished: list[Finished] = []
    path: list[str] = []
    while True:
        step = next_step(request, fold(request, finished), minutes=minutes)
        match step:
            case Conclusion():
                return tuple(path)
            case ReuseStep():
                finished.append(_finished("search", step.result))
            case TrialStep():
                finished.append(_finished(step.purpose, result(step.sha)))
                path += [step.sha] if step.purpose == "search" else []


def _between(request: BisectRequest) -> int:
    return len(standing(request.axis.history, {request.axis.old: "old", request.axis.new: "new"}).candidates)


def _bounds(request: BisectRequest) -> tuple[int, int]:
    candidates = _between(request)
    halving = halving_bound(candidates)
    if request.confidence is not None:
        return halving, most_trials(candidates)
    predicted = any(sha in request.axis.history.index for sha in request.predicted)
    least = min(2, halving) if predicted or request.reuse else max(0, halving - 1)
    history = request.axis.history
    between = history.ancestors_of(request.axis.new) & ~history.ancestors_of(request.axis.old)
    most = longest_halving(history, between) + (MOST_EXTRA_TRIALS if predicted else 0)
    return least * request.repeat, most * request.repeat


def _first_points(request: BisectRequest, minutes: Callable[[str], float]) -> tuple[str, ...]:
    quiet = _quiet(request)
    ends: tuple[tuple[str, Has], ...] = ((request.axis.old, "no"), (request.axis.new, "yes"))
    finished = [
        _finished("end", supposed_result(sha, has, target=request.target, reference=None))
        for sha, has in ends
        for _ in range(request.repeat)
    ]
    while isinstance(step := next_step(quiet, fold(quiet, finished), minutes=minutes), ReuseStep):
        finished.append(_finished("search", step.result))
    if not isinstance(step, TrialStep):
        return ()
    after = possible_next(quiet, fold(quiet, finished), step, minutes=minutes)
    return (step.sha, *after)[:FIRST_POINTS]


def _mean_minutes(shas: list[str], minutes: Minutes) -> float:
    return mean(minutes(sha) for sha in shas) if shas else 0.0
