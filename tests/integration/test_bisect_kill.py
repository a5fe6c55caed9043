"""A search that is killed anywhere goes on to the same answer, and runs no finished trial again."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkdiag.bisecting.question.journal import Ended, Finished, Started, read_journal
from sparkdiag.errors import BusyError
from sparkdiag.evidence.bisection import Bisection
from tests.integration.bisect_kill_case import (
    CULPRIT,
    create,
    full_disk,
    killed_in_trial,
    killed_in_write,
    ran,
    search,
    written,
)

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
MOST_STEPS = 100
SEARCH_AND_WAIT = """
import sys, time
from pathlib import Path
from tests.integration.bisect_kill_case import search

def inside(number):
    if number == 4:
        print("in the fourth trial", flush=True)
        time.sleep(120)

try:
    search(Path(sys.argv[1]), inside=inside)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.exit(130)
"""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Bisection, list[str]]:
    folder = create(tmp_path_factory.mktemp("undisturbed"))
    answer = search(folder)
    assert [commit.sha for commit in answer.commits] == [CULPRIT]
    steps = read_journal(folder / "journal.jsonl")
    finished = [step for step in steps if isinstance(step, Finished)]
    assert {step.purpose for step in finished} == {"end", "control", "search", "confirm"}
    assert any(step.result.reused_from for step in finished)
    return answer, ran(folder)


def goes_on(folder: Path, undisturbed: tuple[Bisection, list[str]]) -> None:
    """To the same answer, without a trial that had been written down, and for one trial more at most."""
    answer, order = undisturbed
    before, known = len(ran(folder)), written(folder)
    again = search(folder)
    assert again.trials == answer.trials
    assert again == answer
    assert ran(folder)[before:] == order[len(known) :]
    assert written(folder) == order
    steps = read_journal(folder / "journal.jsonl")
    assert sum(isinstance(step, Ended) for step in steps) == 1


@pytest.mark.parametrize("share", [0.0, 0.5, 0.999, 1.0])
def test_killed_in_any_write_of_the_journal(
    tmp_path: Path, undisturbed: tuple[Bisection, list[str]], share: float
) -> None:
    for number in range(1, MOST_STEPS):
        folder = create(tmp_path / str(number))
        died = killed_in_write(folder, number, share)
        goes_on(folder, undisturbed)
        if not died:
            steps = read_journal(folder / "journal.jsonl")
            assert number == len(steps) + 1, "it was not killed in every write"
            return
    pytest.fail("the search has no end")


def test_killed_in_any_trial(tmp_path: Path, undisturbed: tuple[Bisection, list[str]]) -> None:
    for number in range(1, MOST_STEPS):
        folder = create(tmp_path / str(number))
        died = killed_in_trial(folder, number)
        goes_on(folder, undisturbed)
        if not died:
            assert number == len(undisturbed[1]) + 1
            return
    pytest.fail("the search has no end")


def test_killed_again_and_again_after_a_single_trial(tmp_path: Path, undisturbed: tuple[Bisection, list[str]]) -> None:
    """Each search of this series ends one trial and tears the line after it."""
    folder = create(tmp_path)
    for _ in range(MOST_STEPS):
        if not killed_in_write(folder, 3, 0.5):
            break
    else:
        pytest.fail("the search gets nowhere")
    goes_on(folder, undisturbed)


def test_a_journal_that_finds_no_room_ends_the_search_and_loses_nothing(
    tmp_path: Path, undisturbed: tuple[Bisection, list[str]], capfd: pytest.CaptureFixture[str]
) -> None:
    begun = create(tmp_path / "begun")
    assert killed_in_trial(begun, 2)
    for room in range(0, 2000, 97):
        folder = tmp_path / str(room)
        shutil.copytree(begun, folder)
        assert full_disk(folder, room) == 3
        told = capfd.readouterr().err
        assert "RunFolderError: cannot write the bisection in" in told
        goes_on(folder, undisturbed)


@pytest.fixture
def waiting(tmp_path: Path) -> Iterator[tuple[Path, subprocess.Popen[str]]]:
    """A search in a process of its own that is in the middle of its fourth trial."""
    folder = create(tmp_path)
    with subprocess.Popen(
        [sys.executable, "-c", SEARCH_AND_WAIT, str(folder)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "in the fourth trial\n"
            yield folder, child
        finally:
            child.kill()
            child.wait(timeout=30)


def test_interrupted_by_ctrl_c(
    waiting: tuple[Path, subprocess.Popen[str]], undisturbed: tuple[Bisection, list[str]]
) -> None:
    folder, child = waiting
    child.send_signal(signal.SIGINT)
    assert child.wait(timeout=60) == 130
    steps = read_journal(folder / "journal.jsonl")
    assert isinstance(steps[-1], Started)
    assert len(written(folder)) == 3
    goes_on(folder, undisturbed)


def test_two_processes_never_write_one_bisection(
    waiting: tuple[Path, subprocess.Popen[str]], undisturbed: tuple[Bisection, list[str]]
) -> None:
    folder, child = waiting
    before = (folder / "journal.jsonl").read_bytes()
    with pytest.raises(BusyError, match="another process is searching in"):
        search(folder)
    assert (folder / "journal.jsonl").read_bytes() == before
    child.kill()
    child.wait(timeout=30)
    goes_on(folder, undisturbed)
