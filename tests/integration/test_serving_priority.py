"""The launched server's scheduling group, on the kernel that runs here."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkdiag.serving import priority
from sparkdiag.serving.priority import NO_GROUP, lower_priority, read_group
from tests.integration.autogroup_case import sessions_are_grouped
from tests.integration.serving_case import Case

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not sessions_are_grouped(), reason="sessions are in no scheduling groups here"),
]


def told_of(pid: int | str) -> str:
    """As the kernel has it: of the tests' own session this may be nothing, while a session made here gets a group."""
    return Path(f"/proc/{pid}/autogroup").read_text()


def group_of(pid: int) -> str:
    return told_of(pid).split(" ", 1)[0]


def nice_of(pid: int) -> str:
    return told_of(pid).split()[-1]


@pytest.fixture
def idle_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests may run beside this one."""
    monkeypatch.setattr(priority, "busy_share", lambda _before, _after: 0.0)


@pytest.fixture
def stranger() -> Iterator[int]:
    """A process in a session of its own whose parent is gone, as a server that somebody else started."""
    code = """
import os, time
pid = os.fork()
if pid == 0:
    os.setsid()
    os.close(1)
    time.sleep(60)
print(pid, flush=True)
os._exit(0)
"""
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True, timeout=30)
    pid = int(done.stdout.split()[-1])
    yield pid
    os.kill(pid, signal.SIGKILL)


@pytest.mark.usefixtures("idle_machine")
def test_a_launched_server_yields_and_nobody_else_does(tmp_path: Path) -> None:
    case = Case(tmp_path)
    own = told_of("self")
    with case.launch() as server:
        server.wait_ready(30)
        done = lower_priority(server.root_pid)
        assert done.nice == priority.NICE
        assert nice_of(server.root_pid) == str(priority.NICE)
        for pid in server.tree_pids:
            assert nice_of(pid) == str(priority.NICE) or group_of(pid) != group_of(server.root_pid)
        assert [pid for pid, _rest in case.events("worker up")]
        for pid, _rest in case.events("worker up"):
            assert nice_of(pid) == str(priority.NICE), "the workers are in the server's session"
    assert told_of("self") == own
    assert "--keep-priority" in done.because


@pytest.mark.usefixtures("idle_machine")
def test_a_child_in_our_own_session_is_left_alone() -> None:
    own = told_of("self")
    grouped = read_group(Path("/proc/self/autogroup")) is not None
    with subprocess.Popen(["sleep", "60"]) as child:
        try:
            done = lower_priority(child.pid)
            assert done.nice is None
            assert ("it shares its scheduling group with others" if grouped else NO_GROUP) in done.because
            assert told_of(child.pid) == told_of("self") == own
        finally:
            child.kill()


@pytest.mark.usefixtures("idle_machine")
def test_a_server_that_somebody_else_started_is_left_alone(stranger: int) -> None:
    done = lower_priority(stranger)
    assert done.nice is None
    assert "did not start it" in done.because
    assert nice_of(stranger) == "0"
