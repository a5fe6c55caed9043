"""The document of a bisection, built from its state alone. Pure."""

from sparkdiag.bisecting.answer.notes import notes_of
from sparkdiag.bisecting.question.request import BisectRequest, ImportedMark
from sparkdiag.bisecting.search.findings import Finding, finding, mark
from sparkdiag.bisecting.steps.state import Conclusion, State, commit_of
from sparkdiag.bisecting.steps.step import next_step
from sparkdiag.bisecting.steps.supposed import supposed_result
from sparkdiag.evidence.bisection import Bisection, Direction, Has, Mark, Purpose, StackShare, Trial, TrialResult
from sparkdiag.harmless.documents import redact_argv

IMPORTED = "imported log"


def document_of(
    request: BisectRequest,
    state: State,
    *,
    suspect_diff: str = "",
    stack_difference: tuple[StackShare, ...] = (),
    notes: tuple[str, ...] = (),
) -> Bisection:
    """What the bisection amounts to. ``notes``: what only the session knows, after those that follow from the state."""
    step = next_step(request, state)
    answer = step if isinstance(step, Conclusion) else None
    history = request.axis.history
    return Bisection(
        outcome=answer.outcome if answer is not None else "unfinished",
        reason=answer.reason if answer is not None else None,
        axis=request.axis.kind,
        target=request.target,
        direction=_direction(state),
        reference=state.reference,
        old_end=request.axis.old,
        new_end=request.axis.new,
        commits=tuple(commit_of(request, sha) for sha in answer.commits) if answer is not None else (),
        confidence=answer.confidence if answer is not None else None,
        trials=trials_of(request, state),
        scenario=request.repro.scenario.name,
        dcp=None if request.axis.kind == "dcp" else request.repro.scenario.server.dcp,
        repo=request.repro.repo if request.axis.kind == "releases" else request.axis.repo,
        searched=sum(1 for commit in history.commits if commit.sha != request.axis.old),
        suspect_paths=request.suspect_paths,
        suspect_diff=suspect_diff,
        stack_difference=stack_difference,
        notes=tuple(dict.fromkeys([*notes_of(request, state, answer), *notes])),
        command=redact_argv(request.command),
    )


def trials_of(request: BisectRequest, state: State) -> tuple[Trial, ...]:
    """Every result in the order it came; imported marks where the search begins."""
    trials = [_trial(request, state, purpose=step.purpose, result=step.result) for step in state.finished]
    first = next((place for place, trial in enumerate(trials) if trial.purpose in ("search", "confirm")), len(trials))
    direction = _direction(state)
    imported = [] if direction is None else [_imported(request, state, one, direction) for one in request.imported]
    return (*trials[:first], *imported, *trials[first:])


def _trial(request: BisectRequest, state: State, *, purpose: Purpose, result: TrialResult) -> Trial:
    found = finding(result, target=request.target, reference=state.reference)
    return Trial(
        purpose=purpose,
        result=result,
        subject=commit_of(request, result.sha).subject,
        has=found.has,
        because=found.because,
        mark=_mark(request, state, purpose=purpose, result=result, found=found),
    )


def _mark(
    request: BisectRequest, state: State, *, purpose: Purpose, result: TrialResult, found: Finding
) -> Mark | None:
    direction = _direction(state)
    if direction is None or purpose in ("control", "confirm"):
        return None
    if request.confidence is not None or purpose == "end":
        return mark(found.has, direction)
    point = state.points.get(result.sha)
    if point is None or not point.settled or (result.reused_from and state.reuse_fails is not None):
        return None
    if result.reused_from and point.has != found.has:
        return None  # it was run itself since
    return mark(point.has, direction)


def _imported(request: BisectRequest, state: State, one: ImportedMark, direction: Direction) -> Trial:
    has: Has = "cannot-tell" if one.mark == "skip" else "yes" if (one.mark == "old") == (direction == "fix") else "no"
    result = supposed_result(one.sha, has, target=request.target, reference=state.reference)
    because = f"{one.word} in the imported log"
    return Trial(
        purpose="search",
        result=result.model_copy(update={"reused_from": IMPORTED, "reason": because}),
        subject=commit_of(request, one.sha).subject,
        has=has,
        because=because,
        mark=one.mark,
    )


def _direction(state: State) -> Direction | None:
    return state.ends.direction if state.ends is not None else None
