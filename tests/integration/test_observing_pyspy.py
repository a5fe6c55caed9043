"""Real py-spy on real children, and false ones in its place."""

import os
import shutil
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from sparkdiag.observing.pyspy import PySpy, can_sample, find_pyspy

pytestmark = pytest.mark.integration

LOOP = """
import sys

def _fp8_mqa_logits_torch(seq_len, num_heads, seq_len_kv, clean_logits, k_cache_prefix, prompt):
    head_chunk_size, k_chunk_size = 1, 2048
    total = 0
    while True:
        for head_start in range(0, num_heads, head_chunk_size):
            head_end = head_start + head_chunk_size
            for k_start in range(0, seq_len_kv, k_chunk_size):
                k_end = k_start + k_chunk_size
                for number in range(20_000):
                    total += number
                if k_start == 0 and head_start == 0:
                    sys.stdout.write("."); sys.stdout.flush()

_fp8_mqa_logits_torch(8192, 64, 112640, False, "model.layers.5.indexer", "my prompt")
"""


@pytest.fixture
def pyspy_binary() -> Path:
    binary = find_pyspy()
    assert binary is not None, "py-spy is a dependency of sparkdiag"
    return binary


@pytest.fixture
def child() -> Iterator[Callable[[str], "subprocess.Popen[bytes]"]]:
    """Starts Python children that say one byte when they are where they should be."""
    children: list[subprocess.Popen[bytes]] = []

    def start(code: str) -> "subprocess.Popen[bytes]":
        process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE)
        children.append(process)
        assert process.stdout is not None
        assert process.stdout.read(1), "the child ended before it was ready"
        return process

    yield start
    for process in children:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def make(binary: Path, *, timeout_s: float = 20, kept: frozenset[str] = frozenset(), limit: int = 2**23) -> PySpy:
    return PySpy(binary, clock=time.monotonic, timeout_s=timeout_s, kept_names=kept, output_limit_bytes=limit)


def fake(folder: Path, body: str) -> Path:
    script = folder / "py-spy"
    script.write_text(f"#!/bin/sh\n{body}\n")
    script.chmod(0o755)
    return script


def our_children() -> list[psutil.Process]:
    return psutil.Process().children(recursive=True)


def test_the_loop_variables_of_a_running_loop_advance(
    pyspy_binary: Path, child: Callable[[str], "subprocess.Popen[bytes]"]
) -> None:
    process = child(LOOP)
    pyspy = make(pyspy_binary, kept=frozenset({"k_cache_prefix"}))
    places: set[tuple[object, object]] = set()
    for _ in range(40):
        dump = pyspy.dump(process.pid)
        assert dump.fault is None or dump.fault.cause in ("torn", "other", "unreadable"), dump.fault
        assert dump.cpu_s > 0
        assert dump.sample.ended_s > dump.sample.started_s
        thread = dump.sample.main_thread
        found = thread.find("_fp8_mqa_logits_torch") if thread else None
        if found is not None:
            _depth, frame = found
            assert "my prompt" not in dump.sample.model_dump_json()
            if "k_start" in frame.locals:
                assert frame.locals["num_heads"] == 64
                assert frame.locals["clean_logits"] is False
                assert frame.locals["k_cache_prefix"] == "model.layers.5.indexer"
                places.add((frame.locals["head_start"], frame.locals["k_start"]))
        if len(places) >= 3:
            break
    assert len(places) >= 3
    assert psutil.Process(process.pid).status() != psutil.STATUS_STOPPED


def test_a_child_that_is_gone(pyspy_binary: Path, child: Callable[[str], "subprocess.Popen[bytes]"]) -> None:
    process = child("print('x', flush=True)\nimport time\ntime.sleep(60)")
    process.kill()
    # A zombie still has its pid: nothing else can be meant by it.
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    dump = make(pyspy_binary).dump(process.pid)
    assert dump.fault is not None
    assert dump.fault.cause == "no-such-process"
    assert dump.sample.error == dump.fault.line
    assert not dump.sample.usable


def test_a_child_that_exits_while_it_is_sampled(
    pyspy_binary: Path, child: Callable[[str], "subprocess.Popen[bytes]"]
) -> None:
    pyspy = make(pyspy_binary)
    for delay_s in (0.0, 0.005, 0.01, 0.02):
        process = child(LOOP)
        timer = threading.Timer(delay_s, process.kill)
        timer.start()
        dump = pyspy.dump(process.pid)
        timer.join()
        if dump.fault is not None:
            assert dump.fault.cause in ("no-such-process", "torn", "other", "permission", "not-python", "unreadable")
            assert dump.sample.error is not None


def test_a_process_that_runs_no_python(pyspy_binary: Path) -> None:
    sleeper = subprocess.Popen(["sleep", "60"])
    try:
        pyspy = make(pyspy_binary)
        until_s = time.monotonic() + 10
        while psutil.Process(sleeper.pid).name() != "sleep" and time.monotonic() < until_s:
            time.sleep(0.01)
        finding = can_sample(pyspy, sleeper.pid)
        assert finding.allowed is None
        assert finding.fault is not None
        assert finding.fault.cause == "not-python"
    finally:
        sleeper.kill()
        sleeper.wait()


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="drops a capability: needs root")
def test_a_real_refusal_is_a_missing_permission(
    tmp_path: Path, pyspy_binary: Path, child: Callable[[str], "subprocess.Popen[bytes]"]
) -> None:
    process = child(LOOP)
    without = fake(tmp_path, f'exec setpriv --bounding-set=-sys_ptrace {pyspy_binary} "$@"')
    finding = can_sample(make(without), process.pid)
    assert finding.allowed is False
    assert finding.fault is not None
    assert finding.fault.cause == "permission"
    assert "SYS_PTRACE" in finding.fault.line
    assert can_sample(make(pyspy_binary), process.pid).allowed is True


def test_a_hung_pyspy_is_killed_with_all_it_started(tmp_path: Path) -> None:
    hung = fake(tmp_path, "sleep 317.5 & sleep 317.5")
    dump = make(hung, timeout_s=0.5).dump(os.getpid())
    assert dump.fault is not None
    assert dump.fault.cause == "timeout"
    assert gone_within(lambda: our_children() == [] and not sleepers(), 10)


def test_a_child_that_closes_its_output_and_stays_is_killed(tmp_path: Path) -> None:
    silent = fake(tmp_path, "exec >&- 2>&-; sleep 317.5")
    dump = make(silent, timeout_s=20).dump(os.getpid())
    assert dump.fault is not None
    assert gone_within(lambda: our_children() == [] and not sleepers(), 10)


def test_a_flood_is_cut_off(tmp_path: Path) -> None:
    dump = make(fake(tmp_path, "exec cat /dev/zero"), limit=2**20).dump(os.getpid())
    assert dump.fault is not None
    assert dump.fault.cause == "flooded"
    assert our_children() == []


def test_a_flood_of_complaints_does_not_fill_the_memory(tmp_path: Path) -> None:
    dump = make(fake(tmp_path, "head -c 20000000 /dev/zero >&2; exit 3")).dump(os.getpid())
    assert dump.fault is not None
    assert dump.fault.cause == "other"
    assert len(dump.fault.line) < 400


@pytest.mark.parametrize("output", ["not json", "{}", "[]", "[{]", "\\033]0;title\\007"])
def test_garbage_is_a_failed_look_not_an_error(tmp_path: Path, output: str) -> None:
    dump = make(fake(tmp_path, f"printf '%b' '{output}'")).dump(os.getpid())
    assert dump.fault is not None
    assert dump.fault.cause == "unreadable"
    assert dump.sample.error is not None
    assert "\x1b" not in dump.sample.error


def test_no_pyspy_at_all(tmp_path: Path) -> None:
    finding = can_sample(make(tmp_path / "absent"), os.getpid())
    assert finding.allowed is False
    assert finding.fault is not None
    assert finding.fault.remedy == "pip install py-spy"


def test_cancelling_ends_what_runs_and_what_would_come(tmp_path: Path) -> None:
    pyspy = make(fake(tmp_path, f"touch {tmp_path}/on; sleep 300"), timeout_s=60)
    found = []
    thread = threading.Thread(target=lambda: found.append(pyspy.dump(os.getpid())))
    thread.start()
    assert gone_within((tmp_path / "on").exists, 10)
    pyspy.cancel()
    thread.join(10)
    assert [dump.fault.cause for dump in found] == ["cancelled"]
    assert pyspy.dump(os.getpid()).fault.cause == "cancelled"  # type: ignore[union-attr]
    assert our_children() == []


def test_pyspy_sees_no_secret_of_our_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "s3cr3t")
    make(fake(tmp_path, f"env > {tmp_path}/env")).dump(os.getpid())
    assert "s3cr3t" not in (tmp_path / "env").read_text()


def sleepers() -> list[int]:
    """The ``sleep 317.5`` of this test's false py-spies, orphans included."""
    session = {process.pid for process in psutil.process_iter() if command(process) == ["sleep", "317.5"]}
    return sorted(session)


def command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline() if process.status() != psutil.STATUS_ZOMBIE else []
    except psutil.Error:
        return []


def gone_within(condition: Callable[[], bool], timeout_s: float) -> bool:
    until_s = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > until_s:
            return False
        time.sleep(0.05)
    return True
