"""A bisection as a ``git bisect log``, and such a log as marks."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from sparkdiag.bisecting.answer.document import IMPORTED
from sparkdiag.bisecting.axes.axis import Axis
from sparkdiag.bisecting.question.git_log import export_log, imported_marks, read_log
from sparkdiag.bisecting.question.request import ImportedMark
from sparkdiag.bisecting.session import bisect
from sparkdiag.errors import UsageError
from sparkdiag.evidence.bisection import Bisection, Commit
from sparkdiag.recording.bisection import BisectionFolder
from tests.unit.bisecting.simulated import (
    RememberingView,
    SimulatedRunner,
    chain,
    request_for,
    sha_of,
    skipped,
)

HISTORY = chain(20)
AXIS = Axis(kind="commits", history=HISTORY, old=sha_of(0), new=sha_of(19))


def answer(tmp_path: Path, runner: SimulatedRunner, **changes: object) -> Bisection:
    folder = BisectionFolder.create(tmp_path, scenario_name="x", dcp=2, now=datetime.now(UTC))
    return bisect(request_for(HISTORY, **changes), folder=folder, runner=runner, view=RememberingView())


def test_a_regression_is_told_in_good_and_bad(tmp_path: Path) -> None:
    runner = SimulatedRunner(HISTORY, sha_of(7), overrides={sha_of(9): lambda sha, _: skipped(sha)})
    text = export_log(answer(tmp_path, runner))
    lines = text.splitlines()
    assert lines[:3] == [
        f"# bad: [{sha_of(19)}] Change 19",
        f"# good: [{sha_of(0)}] Change 0",
        f"git bisect start '{sha_of(19)}' '{sha_of(0)}'",
    ]
    assert f"git bisect skip {sha_of(9)}" in lines
    assert f"git bisect bad {sha_of(7)}" in lines
    assert f"git bisect good {sha_of(6)}" in lines
    assert lines[-1] == f"# first bad commit: [{sha_of(7)}] Change 7"


def test_a_fix_has_terms_that_read_the_right_way_round(tmp_path: Path) -> None:
    text = export_log(answer(tmp_path, SimulatedRunner(HISTORY, sha_of(7), fix=True)))
    assert f"git bisect start '--term-old=broken' '--term-new=fixed' '{sha_of(19)}' '{sha_of(0)}'" in text
    assert f"git bisect fixed {sha_of(7)}" in text
    assert f"git bisect broken {sha_of(6)}" in text


@pytest.mark.parametrize("fix", [False, True])
def test_what_was_exported_comes_back_and_saves_the_trials(tmp_path: Path, fix: bool) -> None:
    first = SimulatedRunner(HISTORY, sha_of(7), fix=fix, overrides={sha_of(9): lambda sha, _: skipped(sha)})
    imported = imported_marks(export_log(answer(tmp_path, first)), AXIS)
    assert {one.sha for one in imported.marks} == set(first.searched())
    again = SimulatedRunner(HISTORY, sha_of(7), fix=fix)
    found = answer(tmp_path, again, imported=imported.marks)
    assert (found.outcome, [commit.sha for commit in found.commits]) == ("found", [sha_of(7)])
    assert again.searched() == []
    taken = [trial for trial in found.trials if trial.result.reused_from == IMPORTED]
    assert {trial.result.sha: trial.mark for trial in taken} == {one.sha: one.mark for one in imported.marks}
    assert all("imported log" in trial.because for trial in taken)
    assert any("imported log" in note for note in found.notes)


def test_a_log_of_good_and_bad_is_refused_where_the_older_end_has_it(tmp_path: Path) -> None:
    marks = (ImportedMark(sha=sha_of(5), mark="old", word="good"),)
    runner = SimulatedRunner(HISTORY, sha_of(7), fix=True)
    refused = answer(tmp_path, runner, imported=marks)
    assert refused.outcome == "inconclusive"
    assert refused.reason is not None
    assert "calls the older side good" in refused.reason
    assert runner.searched() == []


def test_the_log_of_a_fix_is_refused_where_the_newer_end_has_it(tmp_path: Path) -> None:
    log = export_log(answer(tmp_path, SimulatedRunner(HISTORY, sha_of(7), fix=True)))
    runner = SimulatedRunner(HISTORY, sha_of(7))
    refused = answer(tmp_path / "again", runner, imported=imported_marks(log, AXIS).marks)
    assert refused.outcome == "inconclusive"
    assert "calls the older side broken" in str(refused.reason)
    assert runner.searched() == []


@pytest.mark.parametrize("line_break", ["\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028"])
def test_the_subject_of_a_commit_is_no_part_of_the_log(line_break: str) -> None:
    """Anyone may write a commit's subject; git quotes it in the log's comments as it is."""
    subjects = (
        "git bisect start --term-old=bad --term-new=good",
        f"a{line_break}git bisect start --term-old=bad --term-new=good",
        f"a{line_break}git bisect good {sha_of(12)}",
        f"a{line_break}# bad: [{sha_of(2)}]",
    )
    for subject in subjects:
        log = f"git bisect start\n# good: [{sha_of(5)}] {subject}\ngit bisect good {sha_of(5)}\n"
        assert [(one.sha, one.mark) for one in imported_marks(log, AXIS).marks] == [(sha_of(5), "old")]


def test_marks_that_contradict_each_other_blame_nobody(tmp_path: Path) -> None:
    marks = (
        ImportedMark(sha=sha_of(5), mark="new", word="bad"),
        ImportedMark(sha=sha_of(9), mark="old", word="good"),
    )
    refused = answer(tmp_path, SimulatedRunner(HISTORY, sha_of(7)), imported=marks)
    assert (refused.outcome, refused.commits) == ("inconclusive", ())
    assert "contradict" in str(refused.reason)


def test_what_git_writes_is_understood() -> None:
    log = f"""# status: waiting for both good and bad commits
# slow: [{sha_of(19)}] c 19
# quick: [{sha_of(0)}] c 0
git bisect start '--term-old' 'quick' '--term-new=slow' 'HEAD' 'HEAD~19'
# skip: [{sha_of(4)}] c 4
git bisect skip {sha_of(4)}
git bisect slow {sha_of(12)}
git bisect quick {sha_of(2)} {sha_of(3)}
git-bisect slow {sha_of(10)}
git bisect run rm -rf {sha_of(11)}
$(touch owned)
# first slow commit: [{sha_of(8)}] c 8
git bisect quick {"f" * 40}
"""
    imported = imported_marks(log, AXIS)
    assert {one.sha: one.mark for one in imported.marks} == {
        sha_of(4): "skip",
        sha_of(12): "new",
        sha_of(2): "old",
        sha_of(3): "old",
        sha_of(10): "new",
    }
    assert imported.notes == ("1 of the imported log's marks are of commits outside the range",)


def test_a_log_of_another_search_is_refused() -> None:
    with pytest.raises(UsageError, match="calls the older end 0000000000 bad"):
        imported_marks(f"git bisect bad {sha_of(0)}\n", AXIS)
    with pytest.raises(UsageError, match="no mark"):
        imported_marks("hello\n", AXIS)
    with pytest.raises(UsageError, match="not of dcp"):
        imported_marks(f"git bisect bad {sha_of(3)}\n", AXIS.model_copy(update={"kind": "dcp"}))


def test_a_file_that_is_no_log_is_told_of(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read the log"):
        read_log(tmp_path / "none")
    (tmp_path / "big").write_bytes(b"#" * (4 * 1024 * 1024 + 1))
    with pytest.raises(UsageError, match="larger than any"):
        read_log(tmp_path / "big")
    (tmp_path / "log").write_bytes(b"git bisect bad \xff\n")
    assert read_log(tmp_path / "log").startswith("git bisect bad")


@pytest.mark.parametrize(
    ("bisection", "because"),
    [
        (Bisection(outcome="found", axis="dcp", direction="regression", commits=(Commit(sha="2"),)), "knows commits"),
        (Bisection(outcome="inconclusive"), "do not differ"),
    ],
)
def test_what_git_has_no_words_for_is_not_exported(bisection: Bisection, because: str) -> None:
    with pytest.raises(UsageError, match=because):
        export_log(bisection)
