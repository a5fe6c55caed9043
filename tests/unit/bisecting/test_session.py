"""Whole searches in a simulated world: the right culprit, or an honest "cannot tell"."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sparkdiag.bisecting.document import document_of
from sparkdiag.bisecting.journal import Ended, Started, read_journal
from sparkdiag.bisecting.request import BisectRequest
from sparkdiag.bisecting.seams import TrialRunner
from sparkdiag.bisecting.session import bisect
from sparkdiag.bisecting.state import fold
from sparkdiag.evidence.bisection import Bisection
from sparkdiag.recording.bisection import BisectionFolder
from tests.unit.bisecting.simulated import (
    RememberingView,
    SimulatedRunner,
    chain,
    request_for,
    sha_of,
)

NOW = datetime(2026, 5, 26, 8, 15, 2, tzinfo=UTC)
Search = Callable[[BisectRequest, TrialRunner], Bisection]


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
