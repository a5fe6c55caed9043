"""The benchmarks are runnable: every name is one, and the one that needs no server really measures."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.__main__ import MODULES, benchmark_of
from benchmarks.autogroup import get_nice, may_lift

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
