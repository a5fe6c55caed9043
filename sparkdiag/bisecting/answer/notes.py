"""What a reader of the answer should know: which assumptions it stands on, and what spoke against it. Pure."""

from collections.abc import Iterator

from sparkdiag.bisecting.question.request import BisectRequest
from sparkdiag.bisecting.steps.noisy import most_trials
from sparkdiag.bisecting.steps.state import Conclusion, State, commit_of, has_blobs, named, runs_of, same_as_a_parent
from sparkdiag.bisecting.steps.step import wants_controls
from sparkdiag.reporting.follow_up import pair_around


def notes_of(request: BisectRequest, state: State, answer: Conclusion | None) -> tuple[str, ...]:
    """One line each."""
    return (
        *request.notes,
        *_of_the_ends(request, state),
        *_of_the_controls(request, state),
        *_of_reuse(request, state),
        *_of_imports(request),
        *_of_noise(request),
        *_of_predictions(request, state, answer),
        *_of_the_culprit(request, answer),
        *_of_the_releases(request, state, answer),
        *_of_the_confirmation(state),
    )


def _of_the_ends(request: BisectRequest, state: State) -> Iterator[str]:
    for name, sha in (("older", request.axis.old), ("newer", request.axis.new)):
        runs = runs_of(state, sha, "end")
        earlier = [run.reused_from for run in runs if run.reused_from]
        if earlier:
            yield f"the {name} end {named(request, sha)} was not run: an earlier run stands for it ({earlier[0]})"
        elif len(runs) > request.repeat and state.healthy is not None:
            yield f"the {name} end {named(request, sha)} was run again once the other end gave a healthy time"


def _of_the_controls(request: BisectRequest, state: State) -> Iterator[str]:
    if state.ends is None or state.ends.direction is None:
        return
    if not request.controls:
        yield f"no end was run unwatched: whether the {request.target} is there when nobody samples is not known"
    elif not wants_controls(request):
        yield "no end was run unwatched: a frame is seen only by who samples"
    for sha, control in state.controls.items():
        if control.has == "cannot-tell":
            yield f"the unwatched run of {named(request, sha)} tells nothing: {control.because}"


def _of_reuse(request: BisectRequest, state: State) -> Iterator[str]:
    comparable = any(has_blobs(commit.suspect_blobs) for commit in request.axis.history.commits)
    if request.confidence is not None and request.reuse and comparable:
        yield "no result was reused: with --confidence every trial counts by itself"
    reused = [sha for sha, point in state.points.items() if point.reused]
    if state.reuse_fails is not None:
        yield f"no result was reused after all: {state.reuse_fails}"
    elif reused:
        number = "1 result was" if len(reused) == 1 else f"{len(reused)} results were"
        yield (
            f"{number} reused from points with the same watched files; what bounds the answer was run itself"
            " (--no-reuse runs every point)"
        )


def _of_imports(request: BisectRequest) -> Iterator[str]:
    if request.imported:
        marks = "1 mark is" if len(request.imported) == 1 else f"{len(request.imported)} marks are"
        yield f"{marks} taken from an imported log: nothing here has checked them"


def _of_noise(request: BisectRequest) -> Iterator[str]:
    if request.confidence is not None:
        noise, most = request.noise, most_trials(len(request.axis.history.commits))
        yield (
            f"verdicts are taken to be wrong now and then (a change missed {noise.missed:.0%}, a false one"
            f" {noise.false:.0%}); the two ends are taken for certain; at most {most} trials"
        )


def _of_predictions(request: BisectRequest, state: State, answer: Conclusion | None) -> Iterator[str]:
    for sha in request.predicted:
        point = state.points.get(sha)
        if answer is None or answer.outcome != "found":
            continue
        because = request.predicted_because.get(sha)
        predicted = f"{named(request, sha)} was predicted" + (f" ({because})" if because else "")
        if sha in answer.commits:
            yield predicted
        elif point is not None and not point.reused:
            yield f"{predicted}, and is not it"


def _of_the_culprit(request: BisectRequest, answer: Conclusion | None) -> Iterator[str]:
    if answer is None or answer.outcome != "found":
        return
    [culprit] = answer.commits
    if same_as_a_parent(request, culprit):
        yield f"{named(request, culprit)} leaves the watched files as they were: it changes what they do from elsewhere"
    if request.axis.kind == "commits" and not commit_of(request, culprit).parents:
        yield (
            f"{named(request, culprit)} branches off before the older end: its own parent was not run, and is taken to"
            f" be like {named(request, request.axis.old)}; if it is not, the branch had the difference all along"
        )


def _of_the_releases(request: BisectRequest, state: State, answer: Conclusion | None) -> Iterator[str]:
    if answer is None or request.axis.kind != "releases" or state.ends is None:
        return
    commits = [commit_of(request, sha) for sha in answer.commits]
    pair = pair_around(commits, direction=state.ends.direction)
    if pair is not None and pair.same_source:
        yield f"{pair.older} and {pair.newer} are wheels of one source: they differ in how they were built"


def _of_the_confirmation(state: State) -> Iterator[str]:
    if state.confirmed is None:
        return
    function = state.reference.function if state.reference is not None else None
    if state.confirmed.has == "yes":
        yield f"confirmed: {function or 'the same function'} stalls under CUDA_LAUNCH_BLOCKING=1 too"
    else:
        yield (
            f"not confirmed under CUDA_LAUNCH_BLOCKING=1 ({state.confirmed.because}): {function or 'the function'} is"
            " where the host was, which kernel is slow is not known"
        )
