"""The folder of a bisection: named, found again, written by one, and harmless."""

import errno
import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sparkdiag.errors import BusyError, ExitCode, RunFolderError
from sparkdiag.evidence.bisection import Bisection
from sparkdiag.recording import bisection as module
from sparkdiag.recording.bisection import BisectionFolder, bisection_folder_name, has_ended, is_being_written

NOW = datetime(2026, 5, 26, 8, 15, 2, tzinfo=UTC)
SECRET = "hf_abcdefghijklmnopqrstuvwxyz0123456789"
BEGUN = '{"event":"begun","schema":1}\n'
ENDED = '{"event":"ended","at":"","outcome":"found"}\n'


def make(runs: Path, *, later_s: int = 0) -> BisectionFolder:
    return BisectionFolder.create(runs, scenario_name="lab", dcp=2, now=NOW + timedelta(seconds=later_s))


@pytest.mark.parametrize(
    ("scenario", "name"),
    [
        ("lab", "20260526T081502Z-bisect-lab-dcp2"),
        ("my scenario/../x", "20260526T081502Z-bisect-my-scenario-..-x-dcp2"),
        ("$(rm)", "20260526T081502Z-bisect-rm-dcp2"),
        ("…", "20260526T081502Z-bisect-scenario-dcp2"),
    ],
)
def test_its_name_sorts_by_time_and_bothers_no_shell(scenario: str, name: str) -> None:
    assert bisection_folder_name(scenario_name=scenario, dcp=2, now=NOW) == name
    assert module.FOLDER_NAME.fullmatch(name)


def test_two_of_one_second_have_folders_of_their_own(tmp_path: Path) -> None:
    first, second = make(tmp_path / "runs"), make(tmp_path / "runs")
    assert second.path.name == f"{first.path.name}-2"
    assert first.trials.is_dir()
    assert (tmp_path / "runs" / ".gitignore").read_text() == "*\n"


def test_a_folder_that_cannot_be_made_is_told_of_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file")
    with pytest.raises(RunFolderError, match="cannot make a folder for the bisection") as raised:
        make(tmp_path / "runs")
    assert raised.value.exit_code == ExitCode.ENVIRONMENT


def test_only_a_bisection_can_be_opened(tmp_path: Path) -> None:
    folder = make(tmp_path / "runs")
    with pytest.raises(RunFolderError, match="holds no bisection"):
        BisectionFolder.open(folder.path)
    folder.journal.write_text(BEGUN)
    assert BisectionFolder.open(folder.path).path == folder.path


def test_the_newest_that_did_not_end_is_resumed(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    assert BisectionFolder.newest_unfinished(runs) is None
    contents = [BEGUN, BEGUN + ENDED[:20], BEGUN + ENDED, BEGUN + ENDED + '{"event":"fin']
    folders = [make(runs, later_s=number) for number in range(len(contents))]
    for folder, content in zip(folders, contents, strict=True):
        folder.journal.write_text(content)
    make(runs, later_s=99)  # killed before its first line
    (runs / "20270101T000000Z-lab-abc-dcp2").mkdir()
    found = BisectionFolder.newest_unfinished(runs)
    assert found is not None
    assert found.path == folders[1].path
    assert [has_ended(folder.journal) for folder in folders] == [False, False, True, True]


def test_an_end_is_told_by_the_tail_alone(tmp_path: Path) -> None:
    folder = make(tmp_path / "runs")
    folder.journal.write_text('{"event":"begun","question":"' + "x" * 300_000 + '"}\n')
    assert not has_ended(folder.journal)
    with folder.journal.open("a") as file:
        file.write(ENDED)
    assert has_ended(folder.journal)


def test_one_writes_it_at_a_time(tmp_path: Path) -> None:
    folder = make(tmp_path / "runs")
    assert not is_being_written(folder.path)
    with folder.writing():
        assert is_being_written(folder.path)
        with pytest.raises(BusyError, match="another process is searching"), BisectionFolder(folder.path).writing():
            pytest.fail("two write one bisection")
    assert not is_being_written(folder.path)
    with folder.writing():
        pass


def test_where_there_are_no_locks_the_search_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(_fd: int, _operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(module.fcntl, "flock", no_locks)
    with make(tmp_path / "runs").writing():
        pass


def test_a_lock_that_cannot_be_made_names_the_line_that_resumes(tmp_path: Path) -> None:
    folder = make(tmp_path / "runs")
    (folder.path / ".lock").mkdir()
    with pytest.raises(RunFolderError, match="cannot write the bisection") as raised, folder.writing():
        pytest.fail("there is no lock")
    assert f"--resume --folder {folder.path}" in str(raised.value.remedy)


def test_no_secret_is_in_document_or_report(tmp_path: Path) -> None:
    folder = make(tmp_path / "runs")
    folder.write_document(
        Bisection(outcome="inconclusive", reason=f"HF_TOKEN={SECRET}", command=("bisect", "--api-key", "s3cret"))
    )
    folder.write_report(f"token {SECRET}\n")
    document = folder.document.read_text()
    assert SECRET not in document
    assert "s3cret" not in document
    assert SECRET not in folder.report.read_text()
    assert json.loads(document)["outcome"] == "inconclusive"
    assert sorted(entry.name for entry in folder.path.iterdir()) == ["bisection.json", "report.md", "trials"]


def test_a_document_without_room_is_remembered_until_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make(tmp_path / "runs")

    def full(_path: Path, _text: str) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(module, "replace", full)
    folder.write_document(Bisection(outcome="unfinished"))
    folder.write_document(Bisection(outcome="unfinished"))
    assert folder.problems == ("bisection.json could not be written: No space left on device",)
    monkeypatch.undo()
    folder.write_document(Bisection(outcome="unfinished"))
    assert folder.problems == ()
