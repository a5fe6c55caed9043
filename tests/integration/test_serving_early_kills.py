"""kill -9 of two of sparkdiag, keeper and guardian while they come to be: no folder, no process is left."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

REPOSITORY = Path(__file__).resolve().parents[2]
DYING = Path(__file__).with_name("dying_guardian.py")
MOMENTS_MS = (0, 1, 2, 5, 10, 20, 40, 80)
"""After the guardian was started; it needs some 30 ms until the server runs."""
STEPS = 18
"""The last ones come when the server runs and is looked at."""
STAND_IN = """
# Forks a stand-in for sparkdiag for each trial, and waits as a subreaper for whatever that leaves.
import ctypes, json, os, shutil, signal, subprocess, sys, threading, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from sparkdiag.errors import SparkdiagError
from sparkdiag.serving import guardian, launch
from tests.integration.serving_case import Case

class KilledSoon(subprocess.Popen):
    def __init__(self, *args, **kept):
        super().__init__(*args, **kept)
        threading.Thread(target=self.kill_both).start()
    def kill_both(self):
        time.sleep(after_s)
        os.kill(self.pid, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)

def stand_in():
    try:
        case = Case(folder)
        (folder / "private").write_text(str(case.private_dir))
        with case.launch() as server:
            server.wait_gone(20)
    except SparkdiagError:
        pass

ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
for number, trial in enumerate(json.loads(sys.argv[3])):
    folder = Path(sys.argv[2], str(number))
    folder.mkdir()
    pid = os.fork()
    if pid == 0:
        if "after_ms" in trial:
            after_s, subprocess.Popen = trial["after_ms"] / 1000, KilledSoon
        else:
            os.environ["DIED_AT"], os.environ["DIE_AT"] = str(folder / "died"), trial["die_at"]
            guardian.__file__ = sys.argv[4]
        stand_in()
        os._exit(0)
    died = os.waitpid(pid, 0)[1]
    try:
        while True:
            os.wait()
    except ChildProcessError:
        pass
    at = (folder / "died").read_text().strip() if (folder / "died").exists() else None
    private = Path((folder / "private").read_text())
    left = sorted(path.name for path in private.rglob("*")) if private.exists() else None
    shutil.rmtree(private, ignore_errors=True)
    print(json.dumps({"trial": trial, "killed": os.WIFSIGNALED(died), "at": at, "left": left}), flush=True)
"""


def done(trials: list[dict[str, Any]], folder: Path) -> list[dict[str, Any]]:
    ran = subprocess.run(
        [sys.executable, "-c", STAND_IN, str(REPOSITORY), str(folder), json.dumps(trials), str(DYING)],
        stdout=subprocess.PIPE,
        check=True,
        timeout=280,
    )
    return [json.loads(line) for line in ran.stdout.splitlines()]


def test_a_kill_soon_after_the_guardian_was_started(tmp_path: Path) -> None:
    told = done([{"after_ms": ms} for ms in MOMENTS_MS], tmp_path)
    assert len(told) == len(MOMENTS_MS) and all(one["killed"] for one in told)
    assert [one for one in told if one["left"] is not None] == []


@pytest.mark.parametrize("victims", ["sparkdiag guardian", "sparkdiag keeper", "keeper guardian"])
def test_a_kill_between_any_two_steps_of_the_guardian(tmp_path: Path, victims: str) -> None:
    told = done([{"die_at": f"{step} {victims}"} for step in range(STEPS)], tmp_path)
    assert len(told) == STEPS and all(one["at"] for one in told)
    assert [one for one in told if one["left"] is not None] == []
    assert [one["killed"] for one in told] == ["sparkdiag" in victims] * STEPS
    reached = [one["at"].split(" ", 1)[0] for one in told]
    assert reached.count("os.mkdir") == 2 and reached.count("os.fork") == 2, "before, in and after the making"
