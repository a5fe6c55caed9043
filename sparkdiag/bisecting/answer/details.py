"""What belongs to an answer beside the trials: the change in the watched files, and the difference in the stacks."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from sparkdiag.bisecting.question.request import BisectRequest
from sparkdiag.bisecting.question.seams import AnswerDetails
from sparkdiag.bisecting.steps.state import Conclusion, State, runs_of
from sparkdiag.bisecting.steps.step import last_old
from sparkdiag.bisecting.trials.culprit import suspect_diff
from sparkdiag.bisecting.trials.stack_difference import stack_difference
from sparkdiag.evidence.base import Value
from sparkdiag.evidence.bisection import Has, StackShare, TrialResult
from sparkdiag.harmless.secrets import redact_text
from sparkdiag.recording.bisection import BisectionFolder

Kind = TypeVar("Kind")


class Details(Value):
    """What could be had."""

    suspect_diff: str = ""
    stack_difference: tuple[StackShare, ...] = ()
    notes: tuple[str, ...] = ()
    """What could not, and why."""


class ReadDetails:
    """``seams.AnswerDetails`` from the clone that the commits are read in, and from the trials' run folders."""

    def __init__(self, request: BisectRequest, *, folder: BisectionFolder) -> None:
        self._request = request
        self._folder = folder

    def suspect_diff(self, *, old: str, new: str) -> str:
        """Of the watched files; empty on an axis without commits."""
        where = self._request.axis.read_from
        if where is None or self._request.axis.kind != "commits":
            return ""
        return suspect_diff(Path(where), old_sha=old, new_sha=new, paths=self._request.suspect_paths)

    def stack_difference(self, *, with_it: TrialResult, without: TrialResult) -> tuple[StackShare, ...]:
        """Of two runs; none where one of them has no folder (any more)."""
        if with_it.run_dir is None or without.run_dir is None:
            return ()
        return stack_difference(self._folder.path / with_it.run_dir, self._folder.path / without.run_dir)


def details_of(request: BisectRequest, state: State, answer: Conclusion, details: AnswerDetails) -> Details:
    """For a culprit or for candidates. A failure, of whatever kind, is a note: the answer took hours."""
    if not answer.commits:
        return Details()
    notes: list[str] = []

    def had(what: str, ask: Callable[[], Kind], otherwise: Kind) -> Kind:
        try:
            return ask()
        except Exception as error:
            notes.append(redact_text(f"{what} could not be had: {error or type(error).__name__}"))
            return otherwise

    old, new = last_old(request, answer.commits[0]), answer.commits[-1]
    diff = had("the difference in the watched files", lambda: details.suspect_diff(old=old, new=new), "")
    with_it, without = (telling_run(request, state, has, near=(old, new)) for has in ("yes", "no"))
    shares: tuple[StackShare, ...] = ()
    if with_it is not None and without is not None:
        shares = had(
            "the difference in the stacks",
            lambda: details.stack_difference(with_it=with_it, without=without),
            (),
        )
    return Details(suspect_diff=diff, stack_difference=shares, notes=tuple(notes))


def telling_run(request: BisectRequest, state: State, has: Has, *, near: tuple[str, str]) -> TrialResult | None:
    """The watched run that shows ``has`` best: next to the change, else of the end."""
    points = {**state.points}
    for sha, end in ((request.axis.old, state.old), (request.axis.new, state.new)):
        if end is not None:
            points[sha] = end
    for sha in (*near, request.axis.old, request.axis.new):
        if sha not in points or points[sha].has != has:
            continue
        for run in reversed(runs_of(state, sha, "end", "search")):
            if run.run_dir is not None and run.watched:
                return run
    return None
