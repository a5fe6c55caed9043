"""A bisection among the runs: listed as one unit, deleted as one, and never while it is written or holds more."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sparkdiag.errors import RunFolderError
from sparkdiag.evidence.bisection import Bisection
from sparkdiag.evidence.run import RunRecord
from sparkdiag.recording.bisection import BisectionFolder
from sparkdiag.recording.folder import POSTED, RunFolder
from sparkdiag.recording.listed_bisection import read_bisection, state_of
from sparkdiag.recording.listing import ListedRun, listed_runs
from sparkdiag.recording.prune import Limits, choose, delete

NOW = datetime(2026, 6, 1, tzinfo=UTC)
BEGUN = '{"event":"begun","schema":1}\n'
ENDED = '{"event":"ended","at":"","outcome":"found"}\n'
RECORD = RunRecord(sparkdiag_version="1", started_at=NOW.isoformat(), status="finished", scenario={}, command=())


def searched(runs: Path, *, journal: str = BEGUN + ENDED, trials: int = 2) -> BisectionFolder:
    folder = BisectionFolder.create(runs, scenario_name="lab", dcp=2, now=NOW)
    folder.journal.write_text(journal, encoding="utf-8")
    folder.write_document(Bisection(outcome="found", scenario="lab", dcp=2))
    folder.write_report("# report\n")
    with folder.writing():
        for number in range(trials):
            with RunFolder.create(folder.trials, scenario_name="lab", short_sha=f"{number}" * 8, dcp=2, now=NOW) as run:
                run.write_record(RECORD)
                run.write_report("report.md", "x")
    return folder


def only(runs: Path) -> ListedRun:
    (listed,) = listed_runs(runs)
    return listed


def test_it_is_one_unit_with_its_trials_bytes(tmp_path: Path) -> None:
    folder = searched(tmp_path)
    listed = only(tmp_path)
    assert (listed.kind, listed.state, listed.ours, listed.foreign) == ("bisection", "finished", True, ())
    assert listed.bisection is not None and listed.bisection.outcome == "found"
    assert listed.bytes == sum(path.stat().st_size for path in folder.path.rglob("*") if path.is_file())
    assert listed.began_s == NOW.timestamp()


def test_an_unfinished_one_is_interrupted_and_a_written_one_running(tmp_path: Path) -> None:
    folder = searched(tmp_path, journal=BEGUN)
    assert (only(tmp_path).state, only(tmp_path).because) == ("interrupted", "it can be resumed")
    with folder.writing():
        assert (only(tmp_path).state, only(tmp_path).held) == ("running", True)
        assert delete(only(tmp_path)) == "it is being written"
        assert choose(listed_runs(tmp_path), Limits(keep=0), now_s=0)[0] == ()


def test_it_goes_with_everything_in_it(tmp_path: Path) -> None:
    folder = searched(tmp_path)
    (folder.path / POSTED).write_text("{}\n")
    assert delete(only(tmp_path)) == ""
    assert not folder.path.exists()


@pytest.mark.parametrize("where", ["mine.txt", "trials/mine.txt", "trials/folder/mine.txt", "folder/mine.txt"])
def test_it_stays_whole_where_anything_in_it_is_not_ours(tmp_path: Path, where: str) -> None:
    folder = searched(tmp_path)
    mine = folder.path / where
    mine.parent.mkdir(exist_ok=True)
    mine.write_text("mine")
    before = sorted(folder.path.rglob("*"))
    assert only(tmp_path).foreign
    assert "did not write" in delete(only(tmp_path))
    assert choose(listed_runs(tmp_path), Limits(keep=0), now_s=0)[0] == ()
    assert sorted(folder.path.rglob("*")) == before


def test_a_foreign_file_in_a_trials_folder_keeps_it_whole(tmp_path: Path) -> None:
    folder = searched(tmp_path)
    trial = next(folder.trials.iterdir())
    (trial / "mine.txt").write_text("mine")
    assert only(tmp_path).foreign == (f"trials/{trial.name}/mine.txt",)
    assert "did not write" in delete(only(tmp_path))
    assert len(list(folder.trials.iterdir())) == 2


def test_links_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "mine.txt").write_text("mine")
    runs = tmp_path / "runs"
    folder = searched(runs)
    (folder.trials / "20260601T000000Z-lab-3333-dcp2").symlink_to(outside)
    assert "did not write" in delete(only(runs))
    assert (outside / "mine.txt").exists()


def test_a_named_folder_without_a_journal_is_damaged_and_not_ours(tmp_path: Path) -> None:
    (tmp_path / "20260601T000000Z-bisect-lab-dcp2").mkdir()
    listed = only(tmp_path)
    assert (listed.state, listed.ours) == ("damaged", False)
    assert choose((listed,), Limits(keep=0, damaged=True), now_s=0)[0] == ()


def test_a_run_of_a_scenario_called_bisect_is_a_run(tmp_path: Path) -> None:
    with RunFolder.create(tmp_path, scenario_name="bisect-me", short_sha="1" * 8, dcp=2, now=NOW) as run:
        run.write_record(RECORD)
    assert only(tmp_path).kind == "run"
    assert delete(only(tmp_path)) == ""


def test_states() -> None:
    assert state_of(ours=True, ended=True, held=False, found=True)[0] == "finished"
    assert state_of(ours=True, ended=False, held=None, found=True)[0] == "interrupted"
    assert state_of(ours=True, ended=True, held=False, found=False)[0] == "damaged"
    assert state_of(ours=False, ended=False, held=False, found=True)[0] == "damaged"
    assert state_of(ours=False, ended=False, held=True, found=False)[0] == "running"


@pytest.mark.parametrize("content", ["", "{", "[]", json.dumps({"outcome": "maybe"}), "\0" * 10])
def test_a_damaged_document_is_said_to_be_that(tmp_path: Path, content: str) -> None:
    folder = searched(tmp_path)
    folder.document.write_text(content)
    with pytest.raises(RunFolderError, match="not a bisection's document"):
        read_bisection(folder.path)
    assert only(tmp_path).state == "damaged"
