"""Whole bisections over the fake vLLM tree: every trial a real run, every kind of end among them."""

from pathlib import Path

import pytest

from sparkdiag.bisecting.question.journal import Finished, Started, read_journal
from sparkdiag.bisecting.question.request import BisectRequest
from sparkdiag.bisecting.session import bisect
from sparkdiag.bisecting.trials.runner import ReproRunner
from sparkdiag.evidence.bisection import Bisection
from sparkdiag.recording.bisection import BisectionFolder
from sparkdiag.recording.read import read_run
from tests.integration.bisect_case import UNPROVED, bisect_request, bisection_folder, serve_modes
from tests.integration.test_reproducing_session import Silent, children
from tests.unit.bisecting.simulated import RememberingView

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]

A, B, C, D, E = (letter * 40 for letter in "abcde")


def search(request: BisectRequest, folder: BisectionFolder, view: Silent | None = None) -> Bisection:
    runner = ReproRunner(request, folder=folder, view=view or Silent())
    return bisect(request, folder=folder, runner=runner, view=RememberingView())


def with_healthy_time(request: BisectRequest) -> BisectRequest:
    """The fake's healthy prefill takes 0.06 s on a quiet machine: ten times that may go by on a busy one."""
    return request.model_copy(update={"repro": request.repro.model_copy(update={"baseline_s": 0.5})})


def told(bisection: Bisection) -> dict[str, str]:
    return {trial.result.sha[0] + ":" + trial.purpose: trial.result.outcome for trial in bisection.trials}


def test_the_commit_that_brought_the_stall_is_found_and_confirmed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes = {A: "healthy", B: "crash-in-request", C: "healthy", D: "crawling", E: "crawling"}
    prepared: list[str] = []
    serve_modes(monkeypatch, modes, heard=prepared.append)
    folder = bisection_folder(tmp_path)
    request = with_healthy_time(bisect_request(folder.path, modes, confirm=True, predicted=(D,)))
    found = search(request, folder)
    assert (found.outcome, found.direction) == ("found", "regression")
    assert [commit.sha for commit in found.commits] == [D]
    outcomes = told(found)
    assert (outcomes["a:end"], outcomes["e:end"]) == ("completed", "stalled")
    assert (outcomes["a:control"], outcomes["e:control"]) == ("completed", "stalled")
    assert (outcomes["c:search"], outcomes["d:search"], outcomes["d:confirm"]) == ("completed", "stalled", "stalled")
    assert all(not trial.result.watched for trial in found.trials if trial.purpose == "control")
    (confirmed,) = [trial.result for trial in found.trials if trial.purpose == "confirm"]
    assert confirmed.signature == found.reference
    for trial in found.trials:
        assert trial.result.run_dir is not None
        run = folder.path / trial.result.run_dir
        assert read_run(run).problems == () and (run / "report.md").is_file()
    assert len(list(folder.trials.iterdir())) == len(found.trials)
    assert set(prepared) >= {trial.result.sha for trial in found.trials}
    assert children() == []


class Interrupted(Silent):
    """Presses Ctrl-C in the middle of a trial."""

    def __init__(self, *, trial: int) -> None:
        super().__init__()
        self.left = trial

    def phase(self, name: str, detail: str = "") -> None:  # type: ignore[override]
        if name == "prompting" and "building" in detail:
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt


def test_what_cannot_be_judged_leaves_a_set_and_a_search_that_was_interrupted_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes = {A: "crawling", B: "crash-while-loading", C: UNPROVED, D: "healthy"}
    serve_modes(monkeypatch, modes)
    folder = bisection_folder(tmp_path)
    request = with_healthy_time(bisect_request(folder.path, modes, controls=False))
    with pytest.raises(KeyboardInterrupt):
        search(request, folder, Interrupted(trial=2))
    assert children() == []
    steps = read_journal(folder.journal)
    assert [type(step) for step in steps[1:]] == [Started, Finished, Started]
    found = search(request, folder)
    assert (found.outcome, found.direction) == ("candidates", "fix")
    assert [commit.sha for commit in found.commits] == [B, C, D]
    assert told(found) == {
        "a:end": "stalled",
        "d:end": "completed",
        "b:search": "not-started",
        "c:search": "not-proved",
    }
    assert "cannot load the model" in (found.reason or "")
    assert children() == []
