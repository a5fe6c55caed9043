"""A watched process is never signalled, stopped or left with anything of ours, however its watchers end."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.integration.watch_case import Foreign, command, eventually

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

BYSTANDER = """
import os, signal, sys, threading
sys.path.insert(0, sys.argv[1])
import fake_process
log = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
    try:
        signal.signal(number, lambda got, _frame: os.write(log, f"{got}\\n".encode()))
    except (OSError, ValueError):
        pass
fake_process.set_title("VLLM::EngineCore")
os.write(log, b"ready\\n")
value = 0
while True:
    for step in range(100_000):
        value = (value * 31 + step) % 1_000_003
    threading.Event().wait(0.01)
"""


class Bystander(Foreign):
    """One process that writes down every signal it gets; its state is looked at all the time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "signals"
        fakes = Path(__file__).resolve().parents[1] / "fakes"
        self.process = subprocess.Popen(
            [sys.executable, "-c", BYSTANDER, str(fakes), str(self.log), "#" * 40],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._session = self.process.pid
        self.states: set[str] = set()
        self._over = threading.Event()
        self._looking = threading.Thread(target=self._look, daemon=True)

    def wait_up(self) -> "Bystander":
        eventually(lambda: self.log.exists() and "ready" in self.log.read_text(), "the bystander did not come up")
        self._looking.start()
        return self

    def _look(self) -> None:
        stat = Path(f"/proc/{self.process.pid}/stat")
        while not self._over.wait(0.002):
            self.states.add(stat.read_text().rpartition(")")[2].split()[0])

    def stop_looking(self) -> None:
        self._over.set()
        self._looking.join()


@pytest.fixture
def bystander(tmp_path: Path) -> Iterator[Bystander]:
    started = Bystander(tmp_path)
    try:
        yield started.wait_up()
    finally:
        started.stop_looking()
        started.end()


def test_neither_a_watch_nor_watchers_killed_at_any_moment_touch_it(bystander: Bystander) -> None:
    shared = set(Path("/dev/shm").iterdir())
    pid = str(bystander.process.pid)
    whole = bystander.start("--pid", pid, "--for-s", "10", "--json")
    seed = int.from_bytes(os.urandom(4))
    moments = random.Random(seed)
    for _ in range(4):
        killed = bystander.start("--pid", pid, "--for-s", "30")
        time.sleep(moments.uniform(0.3, 3.0))
        killed.send_signal(moments.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT]))
        killed.communicate(timeout=60)
    out, err = whole.communicate(timeout=120)
    assert whole.returncode in (0, 3), (out, err)
    assert '"EngineCore"' in out, "it was looked at"
    eventually(lambda: _ours(bystander) == [], f"nothing of ours still runs (seed {seed})", within_s=30)
    bystander.stop_looking()
    assert bystander.log.read_text() == "ready\n", f"no signal came (seed {seed})"
    assert bystander.states <= {"R", "S", "D"}, f"it was never stopped (seed {seed})"
    assert bystander.process.poll() is None
    assert list((bystander.folder / "t").iterdir()) == [], "no temporary file"
    assert {path.name for path in bystander.folder.iterdir()} <= {"runs", "signals", "t", "cache"}
    assert {path for path in set(Path("/dev/shm").iterdir()) - shared if "sparkdiag" in path.name} == set()


def _ours(bystander: Bystander) -> list[str]:
    """What still runs with the bystander's number among its arguments: a watcher, or a py-spy."""
    wanted = str(bystander.process.pid)
    commands = [command(process) for process in psutil.process_iter() if process.pid != os.getpid()]
    return [line for line in commands if ("py-spy" in line or "sparkdiag" in line) and wanted in line.split()]
