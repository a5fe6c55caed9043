"""The benchmark of route histories really measures, on the lab's history and on a clone that is named."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from sparkdiag.lab.history import ensure_lab_repo

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("named", [False, True])
def test_a_history_and_further_revisions_are_measured(tmp_path: Path, named: bool) -> None:
    repo = ("--repo", str(ensure_lab_repo(tmp_path))) if named else ()
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "route", "--pairs", "2", "--anyway", "--json", *repo],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    (told,) = document["comparisons"]
    assert len(told["pairs"]) == 2 and all(figure > 0 for pair in told["pairs"] for figure in pair)
    assert document["settings"]["commits"] > 5
    assert document["settings"]["changes"] > 0
    assert "goal" in document["notes"][-1]


def test_a_folder_that_is_no_clone_is_one_clear_line(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "route", "--anyway", "--repo", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 4
    assert "is no git clone" in done.stderr and "Traceback" not in done.stderr
