"""A vigil over the fake server: real processes, real py-spy, real HTTP; only its clock runs fifteen times as fast."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from sparkdiag.evidence.run import RunRecord
from sparkdiag.observing.metrics import MetricsReader
from sparkdiag.observing.pyspy import PySpy, find_pyspy
from sparkdiag.recording.read import read_run
from sparkdiag.watching.captures import RunFolderCaptures
from sparkdiag.watching.live_stacks import LiveStacks
from sparkdiag.watching.looks import judge_samples
from sparkdiag.watching.patience import Limits, Patience
from sparkdiag.watching.vigil import keep_vigil
from sparkdiag.watching.vigil_seams import VigilEvent, VigilSummary

pytestmark = pytest.mark.integration

FAKE = Path(__file__).parents[1] / "fakes" / "fake_vllm.py"
WITHIN_S = 90.0
SPEED = 15.0
PATIENT = Patience(gap_s=1e6, slow_answer_s=1e6)
"""What a busy machine does to a clock that runs fast is no suspend."""


class FastClock:
    """Runs ``SPEED`` times as fast as the system's, and ends the vigil as Ctrl-C does."""

    def __init__(self) -> None:
        self._began_s = time.monotonic()
        self.over = threading.Event()

    def now_s(self) -> float:
        return (time.monotonic() - self._began_s) * SPEED

    def sleep(self, seconds: float) -> None:
        if self.over.wait(seconds / SPEED):
            raise KeyboardInterrupt


class Server:
    """The fake tree, and requests to it."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.base_url = f"http://127.0.0.1:{self.port}"
        self.events = folder / "events"
        self.fifo = folder / "hang"
        own = {"FAKE_VLLM_EVENTS": str(self.events), "FAKE_VLLM_HANG": str(self.fifo)}
        self.process = subprocess.Popen(
            [sys.executable, str(FAKE), "--model", "x", "--port", str(self.port), "-tp", "2"],
            env={**os.environ, "FAKE_VLLM_MODE": "hang,tell-signals", **own},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.requests: list[threading.Thread] = []

    def is_up(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.base_url}/health", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def ask(self) -> None:
        """One request in a thread of its own."""
        self.requests.append(threading.Thread(target=self._ask, daemon=True))
        self.requests[-1].start()

    def _ask(self) -> None:
        body = json.dumps({"model": "fake", "prompt": "word " * 300, "max_tokens": 8, "stream": True}).encode()
        headers = {"Content-Type": "application/json"}
        with contextlib.suppress(OSError):
            request = urllib.request.Request(f"{self.base_url}/v1/completions", data=body, headers=headers)
            with urllib.request.urlopen(request, timeout=WITHIN_S) as answer:
                answer.read()

    def hang(self) -> None:
        os.mkfifo(self.fifo)
        self.ask()

    def let_go(self) -> None:
        """Whoever waits goes on, and nobody waits from now on."""
        held = os.open(self.fifo, os.O_WRONLY)
        self.fifo.unlink()
        os.close(held)
        self.requests[-1].join(WITHIN_S)

    def told(self) -> list[str]:
        return self.events.read_text().splitlines() if self.events.exists() else []

    def end(self) -> None:
        if self.process.poll() is not None:
            return
        members = psutil.Process(self.process.pid).children(recursive=True)
        for member in members:
            with contextlib.suppress(psutil.NoSuchProcess):
                member.kill()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def eventually(condition: Callable[[], object], *, within_s: float = WITHIN_S) -> bool:
    until_s = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > until_s:
            return False
        time.sleep(0.05)
    return True


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    found = Server(tmp_path)
    try:
        assert eventually(found.is_up)
        yield found
    finally:
        found.end()


def record() -> RunRecord:
    return RunRecord(
        sparkdiag_version="test",
        started_at="",
        status="running",
        scenario={"name": "watched"},
        command=("sparkdiag", "watch"),
        environment={"watched": True},
    )


class Vigil:
    """A real vigil in a thread of its own."""

    def __init__(self, server: Server, runs: Path, *, metrics: bool = True) -> None:
        binary = find_pyspy()
        assert binary is not None
        self.clock = FastClock()
        self.events: list[VigilEvent] = []
        self.summary: VigilSummary | None = None
        self._reader = MetricsReader(server.base_url, clock=self.clock.now_s) if metrics else None
        pyspy = PySpy(binary, clock=self.clock.now_s, timeout_s=20)
        stacks = LiveStacks((server.process.pid,), find_roots=lambda: (), pyspy=pyspy, late_after_s=1e6)
        self._stacks = stacks
        self._runs = runs
        self._thread = threading.Thread(target=self._keep, daemon=True)
        self._thread.start()

    def _keep(self) -> None:
        self.summary = keep_vigil(
            metrics=self._reader,
            stacks=self._stacks,
            clock=self.clock,
            judge=judge_samples,
            sink=RunFolderCaptures(self._runs, new_record=record, dcp=1),
            patience=PATIENT,
            limits=Limits(),
            tell=self.events.append,
        )

    def captured(self, label: str = "stalled") -> list[Path]:
        return [
            event.run_dir
            for event in tuple(self.events)
            if event.kind == "captured" and event.text.startswith(label) and event.run_dir is not None
        ]

    def heard(self, kind: str) -> int:
        return sum(event.kind == kind for event in tuple(self.events))

    def stop(self) -> VigilSummary:
        self.clock.over.set()
        self._thread.join(WITHIN_S)
        assert self.summary is not None, "Ctrl-C ends a vigil"
        if self._reader is not None:
            self._reader.close()
        return self.summary


def test_each_stall_is_kept_while_the_server_still_stands_and_nothing_is_done_to_it(
    server: Server, tmp_path: Path
) -> None:
    vigil = Vigil(server, tmp_path / "runs")
    for number in (1, 2):
        server.ask()
        server.requests[-1].join(WITHIN_S)
        server.hang()
        assert eventually(lambda number=number: len(vigil.captured()) == number), vigil.events  # type: ignore[misc]
        assert server.is_up()
        assert (vigil.captured()[-1] / "stacks.jsonl").stat().st_size > 1000
        server.let_go()
        assert eventually(lambda number=number: vigil.heard("over") >= number)  # type: ignore[misc]
    summary = vigil.stop()
    assert [one.label for one in summary.captures] == ["stalled", "stalled"]
    assert summary.ended == "interrupted"
    assert [line for line in server.told() if "signal" in line] == []
    check_folder(summary.captures[0].path, server)


def check_folder(path: Path, server: Server) -> None:
    """It reads as any run does: history from before the stall, stacks of the whole tree, diagnosis, how it ended."""
    stored = read_run(path)
    assert stored.problems == ()
    assert stored.record.status == "finished"
    assert stored.record.diagnosis is not None and stored.record.diagnosis.finding == "stalled"
    assert stored.record.verdict is not None and stored.record.verdict.outcome == "stalled"
    assert "kept as stalled" in stored.notes[0].text
    assert stored.notes[-1].text == "things move again"
    began_s = next(phase.t_s for phase in stored.phases if phase.phase == "observing")
    assert [point for point in stored.observation.metrics if point.t_s < began_s]
    pids = {sample.pid for sample in stored.observation.samples if sample.usable}
    assert server.process.pid in pids
    assert len(pids) == 4
    assert (path / "report.md").is_file()


def test_without_metrics_what_stands_is_kept_and_not_called_stalled(server: Server, tmp_path: Path) -> None:
    """Nothing but stacks, all alike: a server at work in a hot function looks so, too."""
    vigil = Vigil(server, tmp_path / "runs", metrics=False)
    server.hang()
    assert eventually(lambda: vigil.captured("unsettled")), vigil.events
    server.let_go()
    assert vigil.captured() == []
    assert len(vigil.stop().captures) == 1


def test_a_server_that_ends_is_said_to_be_gone_and_the_vigil_goes_on(server: Server, tmp_path: Path) -> None:
    vigil = Vigil(server, tmp_path / "runs")
    assert eventually(lambda: vigil.clock.now_s() > 20)
    server.end()
    assert eventually(lambda: vigil.heard("server")), vigil.events
    summary = vigil.stop()
    assert summary.captures == ()
    assert summary.ended == "interrupted"
