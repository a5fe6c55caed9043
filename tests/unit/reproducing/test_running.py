"""What a run says and keeps while its server loads."""

from pathlib import Path
from typing import cast

import pytest

from sparkdiag.evidence.run import RunRecord
from sparkdiag.evidence.timeline import Phase
from sparkdiag.recording.folder import RunFolder
from sparkdiag.reproducing.progress import View
from sparkdiag.reproducing.running import SAY_EVERY_S, RunInProgress

RECORD = RunRecord(sparkdiag_version="0", started_at="now", status="running", scenario={}, command=())


class Heard:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def phase(self, name: Phase, detail: str = "") -> None:
        self.lines.append(f"{name}: {detail}")

    def note(self, text: str) -> None:
        self.lines.append(text)


@pytest.fixture
def run(tmp_path: Path) -> RunInProgress:
    return RunInProgress(RunFolder(tmp_path), RECORD, view=cast("View", Heard()), clock=lambda: 3.5)


def heard(run: RunInProgress) -> list[str]:
    return cast("Heard", run.view).lines


def test_each_loading_step_is_said_once_and_noise_is_not(run: RunInProgress) -> None:
    run.loading(1.0, "INFO something", None)
    run.loading(2.0, "INFO something else", None)
    run.loading(3.0, "Loading weights", "loading weights")
    run.loading(4.0, "INFO 50 %", "loading weights")
    run.loading(5.0, "INFO noise", None)
    assert heard(run) == ["loading: 1 s: importing vLLM", "loading: 3 s: loading weights"]


def test_a_long_step_is_said_again_now_and_then(run: RunInProgress) -> None:
    for elapsed_s in range(1, 41):
        run.loading(float(elapsed_s), "", "loading weights")
    assert [line.split()[1] for line in heard(run)] == ["1", f"{1 + SAY_EVERY_S:.0f}", f"{1 + 2 * SAY_EVERY_S:.0f}"]


def test_a_hint_of_any_length_makes_one_short_line(run: RunInProgress) -> None:
    run.loading(1.0, "", "x" * 5000)
    assert [len(line) for line in heard(run)] == [len("loading: ") + 160]


def test_loading_is_the_views_business_and_phases_are_kept(run: RunInProgress, tmp_path: Path) -> None:
    run.loading(1.0, "", "loading weights")
    timeline = tmp_path / "timeline.jsonl"
    assert not timeline.exists()
    run.phase("ready", "after 4 s")
    assert '"phase":"ready","detail":"after 4 s"' in timeline.read_text()
    run.folder.close()
