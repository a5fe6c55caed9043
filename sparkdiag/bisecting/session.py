"""One bisection from its journal to its answer: fold, step, write down, run, write down.

Nothing is decided outside the journal, so a search that was killed and goes on is the same search.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from sparkdiag.bisecting.answer.details import ReadDetails, details_of
from sparkdiag.bisecting.answer.document import document_of
from sparkdiag.bisecting.axes.axis import trial_request
from sparkdiag.bisecting.question.begun import begun, check_same
from sparkdiag.bisecting.question.journal import Begun, Ended, Finished, Journal, Started, Step, read_journal
from sparkdiag.bisecting.question.request import BisectRequest
from sparkdiag.bisecting.question.seams import AnswerDetails, BisectView, TrialRunner
from sparkdiag.bisecting.steps.forecast import minutes_left, possible_next
from sparkdiag.bisecting.steps.state import Conclusion, ReuseStep, State, TrialStep, commit_of, fold, named
from sparkdiag.bisecting.steps.step import next_step
from sparkdiag.bisecting.trials.result import points_of, result_of_run
from sparkdiag.errors import UsageError
from sparkdiag.evidence.bisection import Bisection, TrialResult
from sparkdiag.evidence.run import RunRecord
from sparkdiag.evidence.verdict import EvidenceItem
from sparkdiag.harmless.documents import redact_document
from sparkdiag.harmless.secrets import redact_text
from sparkdiag.recording.bisection import BisectionFolder
from sparkdiag.recording.read import read_run

_MAY_DIFFER = frozenset({"ready_timeout_s", "max_model_len", "served_model_name"})
"""What an earlier run of an end may have had otherwise: it makes no prompt slow."""


def _utc_now() -> datetime:
    return datetime.now(UTC)


def bisect(
    request: BisectRequest,
    *,
    folder: BisectionFolder,
    runner: TrialRunner,
    view: BisectView,
    details: AnswerDetails | None = None,
    now: Callable[[], datetime] = _utc_now,
) -> Bisection:
    """Search until there is an answer; where the journal already tells of a search, go on with it.

    Raises ``UsageError`` when the journal asks another question or a named earlier run is not one of its end,
    ``BusyError`` when another process writes this bisection, ``RunFolderError`` when the journal cannot be written, and
    what the runner raises. Whatever is raised, the journal is whole and the next call goes on from it.
    """
    with folder.writing():
        session = _Session(request, folder=folder, runner=runner, view=view, now=now)
        session.begin()
        while not isinstance(step := session.next(), Conclusion):
            session.take(step)
        return session.end(step, details or ReadDetails(request, folder=folder))


class _Session:
    """The steps so far, in memory as on the disk."""

    def __init__(
        self,
        request: BisectRequest,
        *,
        folder: BisectionFolder,
        runner: TrialRunner,
        view: BisectView,
        now: Callable[[], datetime],
    ) -> None:
        self._request = request
        self._folder = folder
        self._runner = runner
        self._view = view
        self._now = now
        self._journal = Journal(folder.journal)
        self._steps = list(read_journal(folder.journal))
        self._state = State()

    def begin(self) -> None:
        """Write the question down, or see that it is the one that was asked; then what earlier runs tell."""
        if not self._steps:
            self._write(begun(self._request, at=self._at()))
        elif isinstance(self._steps[0], Begun):
            check_same(self._request, self._steps[0])
            there = sum(isinstance(step, Finished) for step in self._steps)
            self._view.note(f"goes on from its journal: {there} {'trial is' if there == 1 else 'trials are'} there")
        self._state = fold(self._request, self._steps)
        for sha, run in (
            (self._request.axis.old, self._request.old_run),
            (self._request.axis.new, self._request.new_run),
        ):
            known = any(step.purpose == "end" and step.result.sha == sha for step in self._state.finished)
            if run is not None and not known:
                self._finish(Finished(at=self._at(), purpose="end", result=earlier_run(self._request, sha, Path(run))))
        self._show()

    def next(self) -> TrialStep | ReuseStep | Conclusion:
        return next_step(self._request, self._state, minutes=self._runner.minutes)

    def take(self, step: TrialStep | ReuseStep) -> None:
        """One step, on the disk before the next begins."""
        if isinstance(step, ReuseStep):
            self._view.note(
                f"{named(self._request, step.result.sha)} has the watched files of"
                f" {named(self._request, step.result.reused_from or '?')}: its result is reused"
            )
            self._finish(Finished(at=self._at(), purpose="search", result=step.result))
        else:
            self._run(step)
        self._show()

    def end(self, answer: Conclusion, details: AnswerDetails) -> Bisection:
        """The document with its details; then the end is written down."""
        added = details_of(self._request, self._state, answer, details)
        bisection = document_of(
            self._request,
            self._state,
            suspect_diff=added.suspect_diff,
            stack_difference=added.stack_difference,
            notes=added.notes,
        )
        self._folder.write_document(bisection)
        if not self._state.ended:
            self._write(Ended(at=self._at(), outcome=answer.outcome))
        lost = self._folder.problems
        for problem in lost:
            self._view.note(problem)
        if lost:
            bisection = bisection.model_copy(update={"notes": (*bisection.notes, *lost)})
        self._view.update(bisection)
        return bisection

    def _run(self, step: TrialStep) -> None:
        minutes = self._runner.minutes
        self._view.trial_begins(
            step.sha,
            subject=commit_of(self._request, step.sha).subject,
            purpose=step.purpose,
            minutes_left=minutes_left(self._request, self._state, minutes=minutes),
        )
        self._write(Started(at=self._at(), sha=step.sha, purpose=step.purpose))
        self._runner.prefetch(possible_next(self._request, self._state, step, minutes=minutes))
        result = self._runner.run(step.sha, purpose=step.purpose, healthy=self._state.healthy)
        self._finish(Finished(at=self._at(), purpose=step.purpose, result=_harmless(result)))

    def _finish(self, step: Finished) -> None:
        self._write(step)
        self._state = fold(self._request, self._steps)

    def _show(self) -> None:
        bisection = document_of(self._request, self._state)
        self._folder.write_document(bisection)
        self._view.update(bisection)

    def _write(self, step: Step) -> None:
        try:
            self._journal.append(step)
        except OSError as error:
            raise self._folder.unwritable(error) from error
        self._steps.append(step)

    def _at(self) -> str:
        return self._now().astimezone(UTC).isoformat(timespec="seconds")


def earlier_run(request: BisectRequest, sha: str, run: Path) -> TrialResult:
    """The result of a run that was named for an end. Raises ``UsageError`` when it is not a run of that point."""
    must_prove = request.axis.kind in ("commits", "releases")
    result = result_of_run(run, sha, must_prove=must_prove)
    problem = _not_of_that_point(request, sha, read_run(run).record) or (
        None if result.watched else "nobody sampled it, so its stall cannot be named"
    )
    if problem is not None:
        raise UsageError(
            f"{run} is no run that can stand for {named(request, sha)}: {problem}",
            remedy="leave it out: the end is then run",
        )
    return _harmless(result.model_copy(update={"reused_from": str(run)}))


def _not_of_that_point(request: BisectRequest, sha: str, record: RunRecord) -> str | None:
    """What of a run differs from the run of the point that would be made here. Pure."""
    wanted = redact_document(trial_request(request.repro, request.axis, sha).scenario.model_dump(mode="json"))
    ran = record.scenario
    if ran.get("name") != wanted["name"]:
        return f"it is of the scenario {ran.get('name')}, not {wanted['name']}"
    for section in ("server", "prompt"):
        for key, asked in wanted[section].items():
            found = (ran.get(section) or {}).get(key, asked)
            if found != asked and key not in _MAY_DIFFER:
                return f"its {section}.{key} is {found}, not {asked}"
    if request.axis.kind == "commits" and sha not in points_of(record):
        return f"it ran revision {(record.revision.sha or 'unknown')[:10]}"
    if request.axis.kind == "releases" and record.revision.version != sha:
        return f"it ran vLLM {record.revision.version or 'of an unknown version'}"
    return None


def _harmless(result: TrialResult) -> TrialResult:
    """A result's texts may quote a server's log."""

    def clean(items: tuple[EvidenceItem, ...]) -> tuple[EvidenceItem, ...]:
        return tuple(item.model_copy(update={"text": redact_text(item.text)}) for item in items)

    return result.model_copy(
        update={
            "reason": redact_text(result.reason),
            "evidence_for": clean(result.evidence_for),
            "evidence_against": clean(result.evidence_against),
        }
    )
