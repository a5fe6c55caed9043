"""The benchmarks are runnable: every name is one, and the one that needs no server really measures."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from benchmarks.__main__ import MODULES, benchmark_of
from benchmarks.autogroup import get_nice, may_lift
from benchmarks.latency import Dumps
from benchmarks.recorders import recording
from sparkdiag.errors import SamplingRefused
from sparkdiag.observing.pyspy import PySpy, find_pyspy

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", MODULES)
def test_every_name_asks_a_question_and_says_how_long_it_takes(name: str) -> None:
    benchmark = benchmark_of(name)
    assert benchmark.question
    assert 0 < benchmark.about_s <= 600


def test_start_up_is_measured_in_pairs_of_real_processes() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "cli", "--pairs", "1", "--anyway", "--json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    told = {entry["measured"]: entry for entry in document["comparisons"]}
    assert told["sparkdiag --help"]["goal"] == 2
    assert all(0 < figure < 120 for entry in told.values() for pair in entry["pairs"] for figure in pair)


def test_asking_whether_a_priority_can_be_lifted_leaves_it_as_it_was() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True)
    try:
        before = get_nice(child.pid)
        assert may_lift(child.pid) in (True, False)
        assert get_nice(child.pid) == before
    finally:
        child.communicate()
    assert child.returncode == 1  # end of file instead of a line: it ran until it was let go


@contextmanager
def counting() -> Iterator["subprocess.Popen[bytes]"]:
    """A Python process that is ours to record, and does something."""
    code = "import time\nprint('up', flush=True)\nwhile True: time.sleep(0.001)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=True) as child:
        try:
            assert child.stdout is not None and child.stdout.readline() == b"up\n"
            yield child
        finally:
            child.kill()


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


def test_a_recorded_process_is_recorded_and_runs_on_even_when_it_was_left_stopped(tmp_path: Path) -> None:
    with counting() as child:
        with recording([child.pid], folder=tmp_path):
            os.kill(child.pid, signal.SIGSTOP)
        assert state(child.pid) not in "Tt"
        assert child.poll() is None
        assert (tmp_path / f"record-{child.pid}.txt").is_file()


def test_a_recorder_that_ends_early_is_no_measurement(tmp_path: Path) -> None:
    with counting() as child, pytest.raises(SamplingRefused), recording([child.pid], folder=tmp_path):
        child.kill()
        child.wait()
        wait_until_no_recorder_runs()


def wait_until_no_recorder_runs() -> None:
    for _ in range(300):
        recorders = [process for process in psutil.Process().children() if process.name() == "py-spy"]
        if all(process.status() == psutil.STATUS_ZOMBIE for process in recorders):
            assert recorders
            return
        time.sleep(0.1)
    raise AssertionError("py-spy did not notice that its target ended")


def dumps_by(binary: Path, pids: list[int]) -> Dumps:
    return Dumps(PySpy(binary, clock=time.monotonic, timeout_s=30), pids)


def test_a_sample_is_timed_on_each_process_in_turn() -> None:
    binary = find_pyspy()
    assert binary is not None
    with counting() as one, counting() as other:
        dumps = dumps_by(binary, [one.pid, other.pid])
        figures = dumps.take(3)
    assert len(figures) == 3
    assert all(0 < figure < 30 for figure in figures)
    assert sum(dumps.faults.values()) <= 3


def script(path: Path, *, says: str) -> Path:
    path.write_text(f"#!/bin/sh\necho '{says}' >&2\nexit 1\n")
    path.chmod(0o755)
    return path


def test_failed_samples_are_counted_and_a_refusal_ends_it(tmp_path: Path) -> None:
    torn = dumps_by(script(tmp_path / "torn", says="Error: something new"), [os.getpid()])
    assert len(torn.take(2)) == 2
    assert sum(torn.faults.values()) == 2
    refused = dumps_by(script(tmp_path / "refused", says="Permission Denied: Try running again as root"), [os.getpid()])
    with pytest.raises(SamplingRefused):
        refused.take(2)
