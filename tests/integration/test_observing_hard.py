"""Sampling on hard ground: a py-spy that is good for nothing, processes that end while they are looked at."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from sparkdiag.errors import SamplingRefused
from sparkdiag.evidence.base import Value
from sparkdiag.evidence.client import ClientOutcome, PromptSent
from sparkdiag.evidence.observation import Observation
from sparkdiag.evidence.processes import ProcessInfo
from sparkdiag.observing import permission
from sparkdiag.observing.log import ObservationLog
from sparkdiag.observing.observer import Observer
from sparkdiag.observing.pace import Pace
from sparkdiag.observing.permission import require_pyspy
from sparkdiag.observing.pyspy import PySpy, find_pyspy
from sparkdiag.observing.sampling import StackSampling
from sparkdiag.scenario.model import PromptSettings, Sampling, Scenario, ServerSettings, Signature

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

WITHIN_S = 60.0
BUSY = "import time\nprint('.', flush=True)\nuntil = time.monotonic() + {life_s}\nwhile time.monotonic() < until: pass"
SENT = PromptSent(t_s=0, kind="needle", tokens=9, depth=0, seed=0, nonce="n", expected="e", max_output_tokens=1)

FAILING = {
    "missing": (None, "py-spy is not installed"),
    "not executable": ("", "py-spy is not installed"),
    "too old": (
        'echo "error: Found argument --json which is new" >&2; exit 2',
        "(exit code 2): error: Found",
    ),
    "killed by a signal": ("kill -SEGV $$", "(exit code -11)"),
    "talks, but no dump": ("echo hello", "not JSON"),
    "another's dump": ("echo '[]'", "no thread"),
    "floods": ("exec cat /dev/zero", "printed more than"),
    "hangs and ignores TERM": (
        'trap "" TERM INT HUP; sleep 317.7 & sleep 317.7',
        "took longer than 1 s",
    ),
}


def eventually(condition: Callable[[], object], *, within_s: float = WITHIN_S) -> bool:
    until_s = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > until_s:
            return False
        time.sleep(0.05)
    return True


def scenario() -> Scenario:
    return Scenario(
        name="hard",
        title="hard",
        server=ServerSettings(),
        prompt=PromptSettings(tokens=4096),
        signatures=(Signature(function="f", kind="torch-fallback"),),
        sampling=Sampling(cpu_share=1.0, min_period_s=0.1, max_period_s=0.2, dump_timeout_s=1.0),
    )


@pytest.fixture
def server() -> Iterator[int]:
    """One idle process that looks like vLLM's API server."""
    code = "import sys\nprint('.', flush=True)\nsys.stdin.read()"
    argv = [sys.executable, "-c", code]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.read(1)
            yield child.pid
        finally:
            child.kill()


@pytest.fixture
def observe(server: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Observer]]:
    began_s = time.monotonic()
    made: list[Observer] = []
    monkeypatch.setattr("sparkdiag.observing.process_tree.classify", lambda _argv: ("worker", {}))

    def start(**options: object) -> Observer:
        found = Observer(
            server,
            scenario=scenario(),
            base_url="http://127.0.0.1:9",
            clock=lambda: time.monotonic() - began_s,
            sink=lambda _value: None,
            server_is_ours=True,
            **options,  # type: ignore[arg-type]
        )
        made.append(found)
        found.start()
        found.set_client(ClientOutcome(sent=SENT))
        return found

    yield start
    for found in made:
        found.stop()


def false_pyspy(folder: Path, body: str | None, *, name: str) -> Path:
    script = folder / "py-spy"
    if body is not None:
        script.write_text(f"#!/bin/sh\n{body}\n")
        script.chmod(0o644 if name == "not executable" else 0o755)
    return script


def sleepers() -> list[int]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.cmdline() == ["sleep", "317.7"] and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


@pytest.mark.parametrize("name", FAILING)
def test_a_pyspy_that_is_good_for_nothing_is_left_for_the_probe(
    name: str, observe: Callable[..., Observer], tmp_path: Path
) -> None:
    body, words = FAILING[name]
    folder = tmp_path / "probe"
    folder.mkdir()
    observer = observe(pyspy_binary=false_pyspy(tmp_path, body, name=name), in_process_dir=folder)
    assert eventually(lambda: observer.snapshot().sampling.mode == "in-process")
    sampling = observer.snapshot().sampling
    assert words in (sampling.reason or "")
    assert (folder / "sample.on").exists()
    observer.require_stacks()
    assert not any(key.startswith("internal") for key in sampling.errors)
    observer.stop()
    assert eventually(lambda: sleepers() == [], within_s=10), "a killed py-spy takes its children with it"


@pytest.mark.parametrize("name", FAILING)
def test_with_no_probe_either_it_is_refused(name: str, observe: Callable[..., Observer], tmp_path: Path) -> None:
    body, words = FAILING[name]
    observer = observe(pyspy_binary=false_pyspy(tmp_path, body, name=name))
    assert eventually(lambda: observer.snapshot().sampling.mode == "none")
    with pytest.raises(SamplingRefused, match="no stack can be taken") as raised:
        observer.require_stacks()
    assert words in raised.value.message
    assert raised.value.exit_code == 4


@pytest.mark.parametrize("name", ["missing", "too old", "killed by a signal"])
def test_a_pyspy_that_is_good_for_nothing_is_known_before_a_server_is_started(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body, words = FAILING[name]
    script = false_pyspy(tmp_path, body, name=name)
    monkeypatch.setattr(permission, "find_pyspy", lambda: script if body is not None else None)
    with pytest.raises(SamplingRefused) as raised:
        require_pyspy()
    assert words in raised.value.message
    assert (raised.value.remedy or "").startswith("leave out --no-probe")
    monkeypatch.undo()
    require_pyspy()


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="drops a capability: needs root")
def test_a_refusal_by_the_kernel_is_known_before_a_server_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = false_pyspy(tmp_path, f'exec setpriv --bounding-set=-sys_ptrace {find_pyspy()} "$@"', name="refused")
    monkeypatch.setattr(permission, "find_pyspy", lambda: script)
    with pytest.raises(SamplingRefused, match="permission denied"):
        require_pyspy()


def test_nothing_is_sampled_in_a_control(observe: Callable[..., Observer], tmp_path: Path) -> None:
    script = false_pyspy(tmp_path, f"touch {tmp_path}/ran", name="control")
    folder = tmp_path / "probe"
    folder.mkdir()
    observer = observe(pyspy_binary=script, in_process_dir=folder, take_stacks=False)
    assert eventually(lambda: len(observer.snapshot().metrics) >= 4)
    observer.require_stacks()
    sampling = observer.snapshot().sampling
    assert (sampling.mode, sampling.taken, sampling.cpu_s, sampling.wanted) == ("none", 0, 0, False)
    assert "by request" in (sampling.reason or "")
    assert sampling.own_cpu_s > 0
    assert not (tmp_path / "ran").exists()
    assert list(folder.iterdir()) == []


def info(pid: int) -> ProcessInfo:
    return ProcessInfo(pid=pid, started_at_s=psutil.Process(pid).create_time(), role="worker", title="t")


class Follower:
    """Samplers alone, with real dumps at a high rate."""

    def __init__(self, pyspy: object) -> None:
        began_s = time.monotonic()
        self.sunk: list[Value] = []
        self.errors: list[Exception] = []
        self.log = ObservationLog(clock=lambda: time.monotonic() - began_s, sink=self.sunk.append)
        self.log.set_client(ClientOutcome(sent=SENT))
        self.sampling = StackSampling(
            log=self.log,
            pace=Pace(Sampling(cpu_share=1.0, min_period_s=0.05, max_period_s=0.05), cores=2),
            pyspy=pyspy,  # type: ignore[arg-type]
            in_process_dir=None,
            new_reader=lambda _folder: pytest.fail("there is no probe"),  # type: ignore[arg-type, return-value]
            late_after_s=60,
            on_error=self.errors.append,
        )

    def snapshot(self) -> Observation:
        return self.log.snapshot()


def test_processes_that_end_while_they_are_looked_at_are_no_error_of_the_run() -> None:
    binary = find_pyspy()
    assert binary is not None
    began_s = time.monotonic()
    follower = Follower(PySpy(binary, clock=lambda: time.monotonic() - began_s, timeout_s=20))
    pids = []
    for number in range(40):
        life_s = 0.02 + 0.005 * (number % 20)
        with subprocess.Popen([sys.executable, "-c", BUSY.format(life_s=life_s)], stdout=subprocess.PIPE) as child:
            assert child.stdout is not None
            assert child.stdout.read(1)
            pids.append(child.pid)
            follower.sampling.follow((info(child.pid),))
    follower.sampling.follow(())
    follower.sampling.stop(within_s=30)
    sampling = follower.snapshot().sampling
    assert follower.errors == []
    assert sampling.mode == "py-spy", "ended processes say nothing about py-spy"
    assert {sample.pid for sample in follower.snapshot().samples} <= set(pids)
    assert set(sampling.errors) <= {"torn", "no-such-process", "other", "not-python", "unreadable"}


RECYCLED = """
import json, subprocess, sys, time
from pathlib import Path
from tests.integration.test_observing_hard import BUSY, Follower, eventually, info
from sparkdiag.observing.pyspy import PySpy, find_pyspy

def child():
    found = subprocess.Popen([sys.executable, "-c", BUSY.format(life_s=60)], stdout=subprocess.PIPE)
    found.stdout.read(1)
    return found

class Recycling(PySpy):
    reused = 0
    def dump(self, pid):
        global living
        if self.reused < 3:
            time.sleep(0.05)  # two clock ticks: psutil tells start times apart by 10 ms
            living.kill()
            living.wait()
            Path("/proc/sys/kernel/ns_last_pid").write_text(str(pid - 1))
            living = child()
            self.reused += living.pid == pid
        return super().dump(pid)

living = child()
first = info(living.pid)
pyspy = Recycling(find_pyspy(), clock=time.monotonic, timeout_s=20)
follower = Follower(pyspy)
follower.sampling.follow((first,))
eventually(lambda: pyspy.reused >= 3)
eventually(lambda: follower.snapshot().sampling.cpu_s > 0)
time.sleep(0.5)
before = len(follower.snapshot().samples)
follower.sampling.follow((info(living.pid),))
eventually(lambda: any(s.usable for s in follower.snapshot().samples))
follower.sampling.stop(within_s=20)
living.kill()
after = [s for s in follower.snapshot().samples if s.usable]
errors = [repr(error) for error in follower.errors]
print(json.dumps({"reused": pyspy.reused, "before": before, "after": len(after), "errors": errors}))
"""


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("unshare") is None, reason="gives out a pid a second time: needs root"
)
def test_a_recycled_pid_gets_no_sample_of_the_process_it_was() -> None:
    done = subprocess.run(
        ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", sys.executable, "-c", RECYCLED],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    if "unshare:" in done.stderr or "ns_last_pid" in done.stderr:
        pytest.skip(f"no pid namespace here: {done.stderr.strip()[-200:]}")
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["reused"] == 3, "the kernel gave the pid out again"
    assert found["before"] == 0, "what was read after the first process's end is of another"
    assert found["after"] >= 1, "the new one is sampled under its own name"
    assert found["errors"] == []
