"""A search's log is one that the real git takes, and goes on from; git's own log is one that we take."""

import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sparkdiag.bisecting.axes.axis import Axis
from sparkdiag.bisecting.question.git_log import export_log, imported_marks
from sparkdiag.bisecting.search.history import History
from sparkdiag.bisecting.session import bisect
from sparkdiag.evidence.bisection import Commit
from sparkdiag.recording.bisection import BisectionFolder
from tests.unit.bisecting.simulated import RememberingView, SimulatedRunner, request_for, skipped

pytestmark = pytest.mark.integration

LENGTH = 24
CULPRIT = 15


def git(clone: Path, *words: str, status: int = 0) -> str:
    """Without the user's settings, bounded."""
    environment = os.environ | {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "n",
        "GIT_AUTHOR_EMAIL": "n@example.org",
        "GIT_COMMITTER_NAME": "n",
        "GIT_COMMITTER_EMAIL": "n@example.org",
        "LC_ALL": "C",
    }
    done = subprocess.run(
        ["git", *words], cwd=clone, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == status, f"git {words}: {done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    clone = tmp_path / "clone"
    clone.mkdir()
    git(clone, "init", "-q", "-b", "main")
    for number in range(LENGTH):
        git(clone, "commit", "-q", "--allow-empty", "-m", f"Change {number} of 'everything'; $(touch owned)")
    return clone


def history_of(clone: Path) -> History:
    lines = git(clone, "log", "--format=%H%x00%P%x00%s").splitlines()
    fields = [line.split("\0") for line in lines]
    return History.of(
        Commit(sha=sha, parents=tuple(parents.split()), subject=subject) for sha, parents, subject in fields
    )


@pytest.mark.parametrize("fix", [False, True])
def test_git_goes_on_from_our_log(clone: Path, tmp_path: Path, fix: bool) -> None:
    history = history_of(clone)
    shas = [commit.sha for commit in history.commits]
    cannot = {shas[number]: lambda sha, _: skipped(sha) for number in (CULPRIT, CULPRIT + 1)}
    runner = SimulatedRunner(history, shas[CULPRIT], fix=fix, overrides=cannot)
    folder = BisectionFolder.create(tmp_path / "runs", scenario_name="x", dcp=2, now=datetime.now(UTC))
    answer = bisect(request_for(history), folder=folder, runner=runner, view=RememberingView())
    assert answer.outcome == "candidates"
    log = tmp_path / "log"
    log.write_text(export_log(answer))
    only_skipped_left = 2
    said = git(clone, "bisect", "replay", str(log), status=only_skipped_left)
    assert {line for line in said.splitlines() if line in shas} == {commit.sha for commit in answer.commits}
    assert not (clone / "owned").exists()
    assert git(clone, "bisect", "log").count("git bisect skip") == 2
    old, new = ("broken", "fixed") if fix else ("good", "bad")
    terms = git(clone, "bisect", "terms")
    assert f"{old} for the old state" in terms
    assert f"{new} for the new state" in terms


def test_git_names_the_same_culprit(clone: Path, tmp_path: Path) -> None:
    history = history_of(clone)
    culprit = history.commits[CULPRIT].sha
    folder = BisectionFolder.create(tmp_path / "runs", scenario_name="x", dcp=2, now=datetime.now(UTC))
    runner = SimulatedRunner(history, culprit)
    answer = bisect(request_for(history), folder=folder, runner=runner, view=RememberingView())
    log = tmp_path / "log"
    log.write_text(export_log(answer))
    assert f"{culprit} is the first bad commit" in git(clone, "bisect", "replay", str(log))


def test_we_go_on_from_gits_log(clone: Path, tmp_path: Path) -> None:
    history = history_of(clone)
    shas = [commit.sha for commit in history.commits]
    git(clone, "bisect", "start", shas[-1], shas[0])
    git(clone, "bisect", "good", shas[10])
    git(clone, "bisect", "skip", shas[16])
    git(clone, "bisect", "bad", shas[18])
    axis = Axis(kind="commits", history=history, old=shas[0], new=shas[-1])
    imported = imported_marks(git(clone, "bisect", "log"), axis)
    assert {one.sha: one.mark for one in imported.marks} == {shas[10]: "old", shas[16]: "skip", shas[18]: "new"}
    runner = SimulatedRunner(history, shas[CULPRIT])
    folder = BisectionFolder.create(tmp_path / "runs", scenario_name="x", dcp=2, now=datetime.now(UTC))
    answer = bisect(request_for(history, imported=imported.marks), folder=folder, runner=runner, view=RememberingView())
    assert [commit.sha for commit in answer.commits] == [shas[CULPRIT]]
    assert set(runner.searched()) <= set(shas[11:18])
