"""Whole searches in a simulated world: the right culprit, or an honest "cannot tell"."""

import errno
import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sparkdiag.bisecting.answer.document import document_of
from sparkdiag.bisecting.question.journal import Begun, Ended, Finished, Journal, Started, read_journal
from sparkdiag.bisecting.question.request import BisectRequest
from sparkdiag.bisecting.question.seams import TrialRunner
from sparkdiag.bisecting.session import bisect
from sparkdiag.bisecting.steps.state import fold
from sparkdiag.errors import BusyError, ExitCode, RunFolderError, UsageError
from sparkdiag.evidence.bisection import Bisection, Purpose, StackShare, TrialResult
from sparkdiag.evidence.run import DcpProof, RevisionProof, RunRecord, Timings
from sparkdiag.evidence.stacks import SamplingStats, StackSample
from sparkdiag.evidence.verdict import Verdict
from sparkdiag.recording.bisection import BisectionFolder
from sparkdiag.recording.folder import RunFolder
from sparkdiag.reproducing.signals import Terminated
from tests.unit.bisecting.simulated import (
    RememberingView,
    SimulatedRunner,
    chain,
    request_for,
    scenario,
    sha_of,
    skipped,
)

NOW = datetime(2026, 5, 26, 8, 15, 2, tzinfo=UTC)


@pytest.fixture
def folder(tmp_path: Path) -> BisectionFolder:
    return BisectionFolder.create(tmp_path / "runs", scenario_name="made-up", dcp=2, now=NOW)


def searched(request: BisectRequest, runner: TrialRunner, folder: BisectionFolder) -> Bisection:
    return bisect(request, folder=folder, runner=runner, view=RememberingView(), now=lambda: NOW)


@pytest.mark.parametrize("fix", [False, True])
def test_the_culprit_is_found_and_everything_is_written_down(folder: BisectionFolder, fix: bool) -> None:
    history = chain(40)
    runner = SimulatedRunner(history, sha_of(23), fix=fix)
    request = request_for(history, controls=True)
    found = searched(request, runner, folder)
    assert (found.outcome, found.direction) == ("found", "fix" if fix else "regression")
    assert [commit.sha for commit in found.commits] == [sha_of(23)]
    assert found.commits[0].subject == "Change 23"
    assert found.trials[0].subject == "Change 0"
    ends = [(sha_of(0), "end"), (sha_of(39), "end")]
    with_it = sha_of(0) if fix else sha_of(39)
    without = sha_of(39) if fix else sha_of(0)
    assert runner.ran[:4] == [*ends, (with_it, "control"), (without, "control")]
    assert len(runner.searched()) <= 6
    assert {sha for sha, purpose in runner.ran if purpose == "search"} <= {sha_of(number) for number in range(40)}
    healthy = [result and result.sha for result in runner.healthy]
    assert healthy == [None, None if fix else without, *[without] * (len(healthy) - 2)]
    assert all(len(following) <= 2 for following in runner.prefetched)
    assert json.loads(folder.document.read_text())["commits"][0]["sha"] == sha_of(23)
    steps = read_journal(folder.journal)
    assert isinstance(steps[-1], Ended)
    assert sum(isinstance(step, Started) for step in steps) == len(runner.ran)
    assert document_of(request, fold(request, steps)) == found


def test_an_answer_stands_when_it_is_asked_for_again(folder: BisectionFolder) -> None:
    history = chain(20)
    first = searched(request_for(history), SimulatedRunner(history, sha_of(7)), folder)
    journal = folder.journal.read_bytes()
    nobody = SimulatedRunner(history, sha_of(13))
    assert searched(request_for(history), nobody, folder) == first
    assert nobody.ran == []
    assert folder.journal.read_bytes() == journal


def test_a_journal_of_another_question_is_left_alone(folder: BisectionFolder) -> None:
    history = chain(20)
    searched(request_for(history), SimulatedRunner(history, sha_of(7)), folder)
    journal = folder.journal.read_bytes()
    with pytest.raises(UsageError, match="begun with other options; different: repeat"):
        searched(request_for(history, repeat=2), SimulatedRunner(history, sha_of(7)), folder)
    assert folder.journal.read_bytes() == journal


def test_what_ends_a_trial_leaves_the_journal_whole(folder: BisectionFolder) -> None:
    history = chain(20)
    whole = searched(request_for(history), SimulatedRunner(history, sha_of(7)), folder)
    order = [step.result.sha for step in read_journal(folder.journal) if isinstance(step, Finished)]
    for number, error in enumerate([KeyboardInterrupt(), Terminated(), BusyError("taken"), RuntimeError("a defect")]):
        other = BisectionFolder.create(folder.path.parent, scenario_name=f"n{number}", dcp=2, now=NOW)

        def stop(sha: str, _purpose: Purpose, error: BaseException = error) -> TrialResult:
            raise error

        stopped = SimulatedRunner(history, sha_of(7), overrides={order[number + 1]: stop})
        with pytest.raises(type(error)):
            searched(request_for(history), stopped, other)
        steps = read_journal(other.journal)
        assert isinstance(steps[-1], Started)
        assert (steps[-1].sha, steps[-1].at) == (order[number + 1], "2026-05-26T08:15:02+00:00")
        assert json.loads(other.document.read_text())["outcome"] == "unfinished"
        again = SimulatedRunner(history, sha_of(7))
        assert searched(request_for(history), again, other) == whole
        assert [sha for sha, _ in again.ran] == order[number + 1 :]


def test_a_secret_in_a_servers_last_words_is_not_written(folder: BisectionFolder) -> None:
    secret = "hf_abcdefghijklmnopqrstuvwxyz0123456789"
    history = chain(20)
    words = f"ValueError: bad token {secret}"
    overrides = {sha_of(number): lambda sha, _: skipped(sha, words) for number in (9, 10)}
    answer = searched(request_for(history), SimulatedRunner(history, sha_of(7), overrides=overrides), folder)
    assert "bad token" in folder.journal.read_text()
    assert secret not in folder.journal.read_text()
    assert secret not in answer.model_dump_json()


def test_a_disk_that_fills_up_ends_the_search_with_the_line_that_resumes(
    folder: BisectionFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = chain(20)
    append, left = Journal.append, [6]

    def filling(self: Journal, step: Begun | Started | Finished | Ended) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        append(self, step)

    monkeypatch.setattr(Journal, "append", filling)
    with pytest.raises(RunFolderError, match="No space left on device") as raised:
        searched(request_for(history), SimulatedRunner(history, sha_of(7)), folder)
    assert raised.value.exit_code == ExitCode.ENVIRONMENT
    assert f"sparkdiag bisect --resume --folder {folder.path}" in str(raised.value.remedy)
    monkeypatch.undo()
    assert searched(request_for(history), SimulatedRunner(history, sha_of(7)), folder).outcome == "found"


def test_a_document_that_cannot_be_written_costs_nothing_but_itself(
    folder: BisectionFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_path: Path, _text: str) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("sparkdiag.recording.bisection.replace", full)
    history, view = chain(20), RememberingView()
    runner = SimulatedRunner(history, sha_of(7))
    answer = bisect(request_for(history), folder=folder, runner=runner, view=view, now=lambda: NOW)
    assert [commit.sha for commit in answer.commits] == [sha_of(7)]
    told = "bisection.json could not be written: No space left on device"
    assert told in answer.notes
    assert told in view.notes


class Reader:
    """Details that can be had, or not."""

    def __init__(self, error: Exception | None = None) -> None:
        self._error = error
        self.asked: list[tuple[str, str]] = []

    def suspect_diff(self, *, old: str, new: str) -> str:
        self.asked.append((old, new))
        if self._error is not None:
            raise self._error
        return "-slow\n+fast\n"

    def stack_difference(self, *, with_it: TrialResult, without: TrialResult) -> tuple[StackShare, ...]:
        self.asked.append((with_it.sha, without.sha))
        if self._error is not None:
            raise self._error
        return (StackShare(function="mqa_logits_torch", share_with=0.9, share_without=0.0),)


@pytest.mark.parametrize("fix", [True, False])
def test_the_change_itself_is_shown(folder: BisectionFolder, fix: bool) -> None:
    history = chain(20)
    runner = SimulatedRunner(history, sha_of(7), fix=fix)
    runner._overrides = {
        commit.sha: lambda sha, purpose: runner.truth(sha, purpose).model_copy(update={"run_dir": f"trials/{sha}"})
        for commit in history.commits
    }
    reader = Reader()
    answer = bisect(
        request_for(history), folder=folder, runner=runner, view=RememberingView(), details=reader, now=lambda: NOW
    )
    assert answer.suspect_diff == "-slow\n+fast\n"
    assert answer.stack_difference[0].share_with == 0.9
    with_it, without = (sha_of(6), sha_of(7)) if fix else (sha_of(7), sha_of(6))
    assert reader.asked == [(sha_of(6), sha_of(7)), (with_it, without)]
    assert json.loads(folder.document.read_text())["suspect_diff"] == "-slow\n+fast\n"


@pytest.mark.parametrize("error", [BusyError("held"), OSError("gone"), KeyError("x"), RuntimeError("a defect")])
def test_an_answer_is_not_lost_with_its_details(folder: BisectionFolder, error: Exception) -> None:
    history = chain(20)
    runner = SimulatedRunner(history, sha_of(7))
    answer = bisect(
        request_for(history),
        folder=folder,
        runner=runner,
        view=RememberingView(),
        details=Reader(error),
        now=lambda: NOW,
    )
    assert [commit.sha for commit in answer.commits] == [sha_of(7)]
    assert any(note.startswith("the difference in the watched files could not be had") for note in answer.notes)
    assert isinstance(read_journal(folder.journal)[-1], Ended)


def earlier(tmp_path: Path, *, sha: str, dcp: int = 2, tokens: int = 1000, taken: bool = True) -> Path:
    """The folder of a run of ``repro`` that completed."""
    made = scenario(dcp=dcp)
    made = made.model_copy(update={"prompt": made.prompt.model_copy(update={"tokens": tokens})})
    with RunFolder.create(tmp_path / "before", scenario_name="x", short_sha=sha[:10], dcp=dcp, now=NOW) as run:
        run.append(StackSample(pid=1, started_s=1, ended_s=1) if taken else SamplingStats(mode="none", wanted=False))
        run.write_record(
            RunRecord(
                sparkdiag_version="1",
                started_at=NOW.isoformat(),
                status="finished",
                scenario=made.model_dump(mode="json", by_alias=True),
                command=("sparkdiag", "repro"),
                revision=RevisionProof(sha=sha, proved=True),
                dcp=DcpProof(asked=dcp, size=dcp),
                timings_s=Timings(prompt_to_first_token_s=5.0),
                verdict=Verdict(outcome="completed", needle="retrieved"),
            )
        )
        return run.path


def test_an_earlier_run_stands_for_its_end(folder: BisectionFolder, tmp_path: Path) -> None:
    history = chain(20)
    run = earlier(tmp_path, sha=sha_of(0))
    request, runner = request_for(history, old_run=str(run)), SimulatedRunner(history, sha_of(7))
    answer = searched(request, runner, folder)
    assert [commit.sha for commit in answer.commits] == [sha_of(7)]
    assert (sha_of(0), "end") not in runner.ran
    assert answer.trials[0].result.reused_from == str(run)
    assert answer.trials[0].result.run_dir == str(run)
    assert runner.healthy[0] is not None
    assert runner.healthy[0].first_token_s == 5.0
    run.rename(tmp_path / "moved")
    assert searched(request, runner, folder) == answer


@pytest.mark.parametrize(
    ("changes", "because"),
    [
        ({"sha": sha_of(3)}, "it ran revision 0000000000"),
        ({"dcp": 1}, "its server.dcp is 1, not 2"),
        ({"tokens": 500}, "its prompt.tokens is 500, not 1000"),
        ({"taken": False}, "nobody sampled it"),
    ],
)
def test_a_run_of_something_else_stands_for_no_end(
    folder: BisectionFolder, tmp_path: Path, changes: dict[str, object], because: str
) -> None:
    history = chain(20)
    run = earlier(tmp_path, **{"sha": sha_of(0), **changes})  # type: ignore[arg-type]
    runner = SimulatedRunner(history, sha_of(7))
    with pytest.raises(UsageError, match=because):
        searched(request_for(history, old_run=str(run)), runner, folder)
    assert runner.ran == []


def test_a_folder_without_a_run_stands_for_no_end(folder: BisectionFolder, tmp_path: Path) -> None:
    history = chain(20)
    with pytest.raises(RunFolderError):
        searched(request_for(history, new_run=str(tmp_path / "none")), SimulatedRunner(history, sha_of(7)), folder)
