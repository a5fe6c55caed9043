"""The process tree looked at again and again: what is new, renamed or gone between two looks."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from sparkdiag.observing.process_tree import ALL_EVERY, ProcessTree
from tests.integration.serving_case import until

pytestmark = pytest.mark.integration

ROOT = """
import os, subprocess, sys
children = []
for line in sys.stdin:
    if line.strip() == "child":
        children.append(subprocess.Popen(["sleep", "60"], stdin=subprocess.DEVNULL))
    elif line.strip() == "end":
        children[-1].kill(); children.pop().wait()
    elif line.strip() == "rename":
        os.execv(sys.executable, ["VLLM::EngineCore", "-c", "import sys; sys.stdin.read()"])
    print("done", flush=True)
for child in children:
    child.kill()
"""


@pytest.fixture
def root() -> Iterator["subprocess.Popen[str]"]:
    argv = [sys.executable, "-c", ROOT]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        if process.stdin is not None:
            process.stdin.close()
        process.wait(30)


def ask(root: "subprocess.Popen[str]", what: str, *, answered: bool = True) -> None:
    assert root.stdin is not None
    assert root.stdout is not None
    root.stdin.write(f"{what}\n")
    root.stdin.flush()
    if answered:
        assert root.stdout.readline() == "done\n"


def test_children_that_come_and_go_between_looks_are_seen(root: "subprocess.Popen[str]") -> None:
    tree = ProcessTree(root.pid)
    assert [process.pid for process in tree.look()] == [root.pid]
    for count in range(1, 4):
        ask(root, "child")
        found = tree.look()
        assert len(found) == count + 1
        assert {process.parent_pid for process in found[1:]} == {root.pid}
    ask(root, "end")
    for _ in range(ALL_EVERY + 1):
        assert len(tree.look()) == 3


def test_a_process_that_takes_another_title_is_described_anew(root: "subprocess.Popen[str]") -> None:
    tree = ProcessTree(root.pid)
    assert [process.role for process in tree.look()] == ["other"]
    ask(root, "rename", answered=False)
    until(lambda: tree.look()[0].title.startswith("VLLM::EngineCore"))
