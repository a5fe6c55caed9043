"""Nothing of a launched tree survives, whoever is killed; nothing else is touched."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from sparkdiag.serving.launch import LaunchedServer
from tests.integration.serving_case import Case, alive, until

pytestmark = pytest.mark.integration
REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture
def bystander() -> Iterator[tuple[int, Path]]:
    """Somebody else's process, with a title like vLLM's and its own shared memory."""
    segment = Path(f"/dev/shm/psm_bystander_{os.getpid()}")
    code = f"import os,sys; f=open({str(segment)!r},'w'); print('up',flush=True); sys.stdin.read()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "VLLM::Worker_TP0_DCP0"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdout.readline()
    yield process.pid, segment
    assert alive(process.pid)
    assert segment.exists()
    process.stdin.close()
    process.stdout.close()
    process.wait()
    segment.unlink()


def tree_of(case: Case, server: LaunchedServer) -> set[int]:
    """Every pid of the tree, by the fake's own events and by descent; with the root."""
    told = {pid for what in ("api started", "engine up", "worker up", "worker orphan") for pid, _ in case.events(what)}
    return told | {child.pid for child in psutil.Process(server.root_pid).children(recursive=True)}


def assert_gone(case: Case, tree: set[int]) -> None:
    until(lambda: not any(map(alive, tree)), limit_s=5)
    segments = [Path(path) for _, path in case.events("worker shm")]
    until(lambda: not any(segment.exists() for segment in segments), limit_s=5)
    until(lambda: not case.private_dir.exists(), limit_s=5)


def test_stop_ends_orphans_in_their_own_session_and_sweeps(tmp_path: Path, bystander: tuple[int, Path]) -> None:
    case = Case(tmp_path, "orphan,shm")
    with case.launch() as server:
        server.wait_ready(30)
        (orphan,) = until(lambda: case.events("worker orphan"))
        assert os.getsid(orphan[0]) not in (os.getsid(0), os.getsid(server.root_pid))
        assert list(case.private_dir.glob("*-*-*"))  # its socket
        assert len(case.events("worker shm")) == 2
        tree = tree_of(case, server)
        assert len(tree) == 6  # with the resource tracker
        report = server.stop(5)
    assert report.left == ()
    assert orphan[0] in report.killed
    assert {Path(path).name for _, path in case.events("worker shm")} <= set(report.removed)
    assert server.poll() is None
    assert server.stop().removed == report.removed
    assert_gone(case, tree)


def test_processes_that_ignore_sigterm_are_killed(tmp_path: Path) -> None:
    case = Case(tmp_path, "ignore-term")
    with case.launch() as server:
        server.wait_ready(30)
        tree = tree_of(case, server)
        report = server.stop(0.5)
    assert report.left == ()
    assert set(report.killed) == tree
    assert_gone(case, tree)


def test_a_stopped_process_is_ended_too(tmp_path: Path) -> None:
    case = Case(tmp_path)
    with case.launch() as server:
        server.wait_ready(30)
        tree = tree_of(case, server)
        os.kill(case.events("worker up")[0][0], signal.SIGSTOP)
    assert_gone(case, tree)


@pytest.mark.parametrize("killed", ["guardian", "keeper and guardian"])
def test_the_guardian_killed(tmp_path: Path, killed: str, bystander: tuple[int, Path]) -> None:
    case = Case(tmp_path, "orphan,shm,ignore-term")
    with case.launch() as server:
        server.wait_ready(30)
        tree = tree_of(case, server)
        assert len(tree) == 6  # with the resource tracker
        until(lambda: tree <= server.tree_pids)
        guardian = psutil.Process(server.root_pid).parent()
        assert guardian is not None
        keeper = guardian.parent()
        assert keeper is not None and keeper.cmdline() == guardian.cmdline() and keeper.ppid() == os.getpid()
        for victim in [keeper, guardian] if killed == "keeper and guardian" else [guardian]:
            victim.kill()
        assert server.wait_gone(15)
        ended = until(server.poll, limit_s=5)
        assert ended.signal == "SIGKILL" and ended.guardian_killed
        assert ended.how == "sparkdiag's guardian was killed from outside; the server was ended with it"
    assert_gone(case, tree)


def test_the_keeper_is_not_needed(tmp_path: Path) -> None:
    case = Case(tmp_path, "orphan,shm")
    with case.launch() as server:
        server.wait_ready(30)
        tree = tree_of(case, server)
        guardian = psutil.Process(server.root_pid).parent()
        assert guardian is not None
        keeper = guardian.parent()
        assert keeper is not None
        keeper.kill()
        until(lambda: guardian.ppid() != keeper.pid)
        assert alive(server.root_pid) and server.poll() is None
        assert server.stop(5).left == ()
    assert_gone(case, tree)


@pytest.mark.parametrize("when", ["loading", "ready"])
def test_a_server_that_lingers_over_its_dead_engine_is_ended(tmp_path: Path, when: str) -> None:
    case = Case(tmp_path, "orphan,shm,linger", FAKE_VLLM_IMPORT_S="2" if when == "loading" else "0")
    with case.launch() as server:
        if when == "ready":
            server.wait_ready(30)
        root = psutil.Process(server.root_pid)
        engine = until(lambda: next(filter(is_engine, root.children()), None))
        engine.kill()
        ended = until(server.poll, limit_s=12)  # by itself it takes 15 s
        assert (ended.exit_code, ended.signal) == (None, None)
        assert ended.process == ("VLLM::EngineCore" if when == "ready" else "server, by its own last words,")
        assert server.wait_gone(5)


def is_engine(process: psutil.Process) -> bool:
    return any("fake_engine" in part or "::EngineCore" in part for part in process.cmdline())


def test_the_api_server_killed(tmp_path: Path, bystander: tuple[int, Path]) -> None:
    case = Case(tmp_path, "orphan,shm")
    with case.launch() as server:
        server.wait_ready(30)
        tree = tree_of(case, server)
        os.kill(server.root_pid, signal.SIGKILL)
        ended = until(server.poll, limit_s=5)
        assert (ended.signal, ended.exit_code) == ("SIGKILL", None)
        assert any("startup complete" in line for line in ended.last_log_lines)
        assert_gone(case, tree)


OWNER = """
import sys, signal
from pathlib import Path
sys.path.insert(0, {repository!r})
from tests.integration.serving_case import Case
case = Case(Path(sys.argv[1]), "orphan,shm,ignore-term")
server = case.launch()
server.wait_ready(30)
print(server.root_pid, case.private_dir, flush=True)
signal.pause()
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_sparkdiag_itself_killed(tmp_path: Path, number: signal.Signals, bystander: tuple[int, Path]) -> None:
    code = OWNER.format(repository=str(REPOSITORY))
    owner = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    try:
        root, private_dir = owner.stdout.readline().split()
        case = Case.__new__(Case)
        case.events_path, case.private_dir = tmp_path / "events", Path(private_dir)
        tree = {int(root), *(child.pid for child in psutil.Process(int(root)).children(recursive=True))}
        tree |= {pid for pid, _ in until(lambda: case.events("worker orphan"))}
        assert len(tree) == 6
        owner.send_signal(number)
        owner.wait(30)
    finally:
        owner.kill()
        owner.wait()
        owner.stdout.close()
    deadline_s = time.monotonic() + 5
    until(lambda: not any(map(alive, tree)), limit_s=5)
    assert time.monotonic() < deadline_s
    assert_gone(case, tree)


def test_the_log_does_not_hold_the_server_up_while_sparkdiag_is_stopped(tmp_path: Path) -> None:
    """The owner is frozen while the server writes far more than a pipe holds, and the server goes on."""
    code = OWNER.format(repository=str(REPOSITORY)).replace("orphan,shm,", "chatty,")
    owner = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    try:
        owner.stdout.readline()
        owner.send_signal(signal.SIGSTOP)
        (tmp_path / "chat").touch()
        case = Case.__new__(Case)
        case.events_path = tmp_path / "events"
        until(lambda: case.events("api chatted"))
    finally:
        owner.send_signal(signal.SIGCONT)
        owner.kill()
        owner.wait()
        owner.stdout.close()
