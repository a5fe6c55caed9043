"""Ctrl-C and SIGTERM through the real command line, over a fake tree: tidy exits, and nothing left."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.integration.fake_environment import fake_variables, make_fake_environment, repro_arguments
from tests.integration.serving_case import Case, alive, until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]


class Sparkdiag:
    """A running command."""

    def __init__(self, folder: Path, mode: str, **more: str) -> None:
        self.folder = folder
        self.said = folder / "said"
        arguments = repro_arguments(make_fake_environment(folder))
        with self.said.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "sparkdiag", *arguments, "--out", str(folder / "runs")],
                env=fake_variables(folder, mode, **more),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                # A shell's background job, such as a CI's, starts with SIGINT ignored.
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - no thread runs
            )

    def events(self, what: str) -> list[str]:
        path = self.folder / "events"
        return [line for line in path.read_text().splitlines() if what in line] if path.exists() else []

    def has_written(self, name: str, text: str) -> bool:
        return any(text in path.read_text() for path in self.folder.glob(f"runs/*/{name}"))

    def assert_nothing_left(self) -> None:
        pids = {int(line.split()[0]) for line in self.events("")}
        assert len(pids) >= 2
        assert [pid for pid in pids if alive(pid)] == []
        assert list((self.folder / "t").glob("sparkdiag-*")) == []
        assert [line for line in self.events(" shm ") if Path(line.split()[-1]).exists()] == []


@contextmanager
def sparkdiag(folder: Path, mode: str, **more: str) -> Iterator[Sparkdiag]:
    running = Sparkdiag(folder, mode, **more)
    try:
        yield running
    finally:
        running.process.kill()
        running.process.wait()


CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}


@pytest.mark.parametrize("number", CODES)
@pytest.mark.parametrize("moment", ["loading", "prefill"])
def test_a_signal_ends_all_and_says_how_to_resume(tmp_path: Path, number: signal.Signals, moment: str) -> None:
    mode = "shm,orphan,stuck" if moment == "prefill" else "shm,orphan"
    with sparkdiag(tmp_path, mode, FAKE_VLLM_IMPORT_S="0" if moment == "prefill" else "20") as running:
        if moment == "loading":
            until(lambda: "loading: " in running.said.read_text(), limit_s=60)
        else:
            until(lambda: running.events("worker execute"), limit_s=60)
        pids = {int(line.split()[0]) for line in running.events("")}
        running.process.send_signal(number)
        assert running.process.wait(60) == CODES[number]
        text = running.said.read_text()
        assert "everything started is stopped. Run it again with: sparkdiag repro --scenario" in text
        assert "Traceback" not in text
        if moment == "prefill":
            assert len(pids) >= 4
            running.assert_nothing_left()
        assert list((tmp_path / "t").glob("sparkdiag-*")) == []
        assert running.has_written("run.json", '"interrupted"')


def test_a_second_ctrl_c_kills_at_once(tmp_path: Path) -> None:
    with sparkdiag(tmp_path, "shm,orphan,stuck,ignore-term") as running:
        until(lambda: running.events("worker execute"), limit_s=60)
        running.process.send_signal(signal.SIGINT)
        until(lambda: running.has_written("timeline.jsonl", '"stopping"'), limit_s=60)
        running.process.send_signal(signal.SIGINT)
        assert running.process.wait(60) == 130
        assert re.search("asked again: what has not ended yet is killed", running.said.read_text())
        running.assert_nothing_left()


def test_asked_again_with_less_grace_the_guardian_hurries(tmp_path: Path) -> None:
    case = Case(tmp_path, "ignore-term")
    with case.launch() as server:
        server.wait_ready(60)
        tree = server.tree_pids
        first = threading.Thread(target=server.stop, args=(600,))
        first.start()
        time.sleep(0.2)
        assert server.root_pid in {pid for pid in tree if alive(pid)}
        report = server.stop(0)
        first.join(60)
    assert report.left == ()
    assert server.root_pid in report.killed
    assert report.took_s < 300
    assert not any(map(alive, tree))
    assert os.path.lexists(case.private_dir) is False
