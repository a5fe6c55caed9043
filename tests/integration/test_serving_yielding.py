"""A lowered server and a burner that comes later, on the kernel that runs here."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pytest

from sparkdiag.evidence.run import ServerPriority
from sparkdiag.evidence.timeline import BUSY_SHARE, CpuPoint
from sparkdiag.observing.process_tree import ProcessTree
from sparkdiag.reproducing.yielding import Yielding
from sparkdiag.serving import priority
from sparkdiag.serving.priority import lower_priority, why_no_way_back
from tests.integration.autogroup_case import sessions_are_grouped

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not sessions_are_grouped(), reason="sessions are in no scheduling groups here"),
]

BURN = "while True: pass"
TREE = f"""
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", {BURN!r}])
print(child.pid, flush=True)
child.wait()
"""
WITHIN_S = 60


def nice_of(pid: int) -> str:
    return Path(f"/proc/{pid}/autogroup").read_text().split()[-1]


@contextmanager
def burner() -> Iterator[int]:
    with subprocess.Popen([sys.executable, "-c", BURN], start_new_session=True) as process:
        try:
            yield process.pid
        finally:
            process.kill()


@pytest.fixture
def server() -> Iterator[tuple[int, int]]:
    """(root, child) of a tree in a session of its own, whose child computes."""
    argv = [sys.executable, "-c", TREE]
    with subprocess.Popen(argv, start_new_session=True, stdout=subprocess.PIPE, text=True) as root:
        assert root.stdout is not None
        child = int(root.stdout.readline())
        try:
            yield root.pid, child
        finally:
            psutil.Process(child).kill()
            root.kill()


def test_what_is_lowered_here_can_be_taken_back() -> None:
    assert why_no_way_back() is None, "an autogroup's nice value of 0 needs no privilege"


def test_a_burner_that_comes_later_gets_the_group_put_back(
    server: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, child = server
    monkeypatch.setattr(priority, "busy_share", lambda _before, _after: 0.0)  # other tests may run beside this one
    lowered = lower_priority(root)
    assert lowered.nice == priority.NICE
    assert nice_of(child) == str(priority.NICE)
    notes: list[str] = []
    tree = ProcessTree(root)
    yielding = Yielding(root, priority=lowered, clock=time.monotonic, note=lambda _source, text: notes.append(text))
    points: list[CpuPoint] = []
    assert yielding.look(tree.look()) is None
    with ExitStack() as burning:
        for _ in range(psutil.cpu_count() or 1):
            burning.enter_context(burner())
        until_s = time.monotonic() + WITHIN_S
        while nice_of(child) != "0" and time.monotonic() < until_s:
            time.sleep(0.5)
            point = yielding.look(tree.look())
            points += [point] if point is not None else []
        assert nice_of(child) == nice_of(root) == "0"
        time.sleep(0.5)
        later = yielding.look(tree.look())
    assert [point.starving for point in points[-2:]] == [True, True]
    assert points[-1].others_share > BUSY_SHARE
    assert later is not None and later.server_nice == 0 and not later.starving
    assert yielding.priority is not None and yielding.priority.nice == 0
    assert len(notes) == 1 and "back at nice 0" in notes[0]


def test_the_servers_own_work_is_nobody_elses(server: tuple[int, int]) -> None:
    root, _child = server
    tree = ProcessTree(root)
    yielding = Yielding(root, priority=None, clock=time.monotonic, note=lambda _source, _text: None)
    yielding.look(tree.look())
    time.sleep(2)
    point = yielding.look(tree.look())
    assert point is not None
    assert point.server_share > 0
    assert point.server_share + point.others_share <= 1.1


def test_a_group_that_cannot_be_put_back_is_told_once(server: tuple[int, int]) -> None:
    def refused(_pid: int) -> None:
        raise PermissionError

    root, _child = server
    notes: list[str] = []
    yielding = Yielding(
        root,
        priority=ServerPriority(nice=10, because="lowered"),
        clock=time.monotonic,
        note=lambda _source, text: notes.append(text),
        restore=refused,
    )
    with ExitStack() as burning:
        for _ in range(psutil.cpu_count() or 1):
            burning.enter_context(burner())
        until_s = time.monotonic() + WITHIN_S
        while not notes and time.monotonic() < until_s:
            yielding.look(())
            time.sleep(0.5)
        yielding.look(())
    assert len(notes) == 1 and "could not be put back (PermissionError)" in notes[0]
    assert yielding.priority is not None and yielding.priority.nice == 10
