"""faulthandler's dumps of real children, read back: called, on a timer, on a signal, on a crash, one thread only."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sparkdiag.dumps.formats import faulthandler as reader
from sparkdiag.evidence.dump import ProcessDump

pytestmark = pytest.mark.integration

PROGRAM = """\
import faulthandler
import os
import signal
import sys
import threading
import time


def waiting():
    started.set()
    lock.acquire()


class Worker:
    def execute_model(self):
        return forward(sys.argv[1])


def forward(how):
    if how == "called":
        faulthandler.dump_traceback()
    elif how == "one thread":
        faulthandler.dump_traceback(all_threads=False)
    elif how == "timer":
        faulthandler.dump_traceback_later(0.2, exit=True)
        time.sleep(60)
    elif how == "signal":
        faulthandler.register(signal.SIGUSR1)
        print("ready", flush=True)
        time.sleep(60)
    elif how == "crash":
        faulthandler.enable()
        os.abort()
    os._exit(0)


started = threading.Event()
lock = threading.Lock()
lock.acquire()
threading.Thread(target=waiting, daemon=True).start()
started.wait()
Worker().execute_model()
"""
DEADLINE_S = 60
THREADS = ["waiting", "forward"]


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "engine.py"
    path.write_text(PROGRAM)
    return path


def dumped(program: Path, how: str) -> tuple[ProcessDump, ...]:
    run = subprocess.run(
        [sys.executable, str(program), how], capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )
    return reader.read(run.stderr.split("\n"))


def check(look: ProcessDump, program: Path, *, innermost: list[str] = THREADS) -> None:
    assert look.tool == "faulthandler"
    main = look.main_thread
    assert main is not None
    assert main.name == "MainThread"
    assert [frame.function for frame in main.frames][-3:] == ["forward", "execute_model", "<module>"]
    assert {frame.path for frame in main.frames} == {str(program)}
    lines = PROGRAM.split("\n")
    assert lines[(main.frames[-1].line or 0) - 1] == "Worker().execute_model()"
    others = [thread for thread in look.threads if thread is not main]
    assert [thread.frames[0].name for thread in others] == [name for name in innermost if name != "forward"]
    assert all(thread.whole for thread in look.threads)


@pytest.mark.parametrize(("how", "noted"), [("called", ""), ("timer", "Timeout ("), ("crash", "Fatal Python error: ")])
def test_all_threads_of_a_real_process(program: Path, how: str, noted: str) -> None:
    (look,) = dumped(program, how)
    check(look, program)
    assert [note[: len(noted)] for note in look.notes] == ([noted] if noted else [])


def test_the_calling_thread_alone(program: Path) -> None:
    (look,) = dumped(program, "one thread")
    check(look, program, innermost=["forward"])


def test_two_signals_are_two_looks(program: Path, tmp_path: Path) -> None:
    errors = tmp_path / "stderr.txt"
    with (
        errors.open("w") as stderr,
        subprocess.Popen(
            [sys.executable, str(program), "signal"], stdout=subprocess.PIPE, stderr=stderr, text=True
        ) as child,
    ):
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
            for dumps in (1, 2):
                signal_until(dumps, child=child, errors=errors)
        finally:
            child.kill()
    looks = reader.read(errors.read_text().split("\n"))
    assert len(looks) >= 2
    for look in looks[:2]:
        check(look, program)


def signal_until(dumps: int, *, child: subprocess.Popen[str], errors: Path) -> None:
    """A signal that comes while faulthandler still answers the last one is lost, so it is sent until it was heard."""
    deadline_s = time.monotonic() + DEADLINE_S
    while errors.read_text().count("in <module>\n") < dumps:
        assert child.poll() is None
        assert time.monotonic() < deadline_s, "faulthandler did not answer"
        child.send_signal(signal.SIGUSR1)
        time.sleep(0.3)
