import os
import subprocess
import sys
from pathlib import Path

import pytest

from sparkdiag.errors import BusyError
from sparkdiag.serving.machine_lock import machine_lock

pytestmark = pytest.mark.integration
HOLD = """
import sys
from pathlib import Path
from sparkdiag.serving.machine_lock import machine_lock
with machine_lock(what="repro lab", folder=Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.readline()
"""


def hold(folder: Path) -> "subprocess.Popen[str]":
    repository = str(Path(__file__).resolve().parents[2])
    other = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": repository},
    )
    assert other.stdout is not None
    assert other.stdout.readline() == "held\n"
    return other


def test_a_second_run_waits_says_for_whom_and_goes_on(tmp_path: Path) -> None:
    with hold(tmp_path) as other:
        said: list[str] = []

        def on_wait(_waited_s: float, holder: str) -> None:
            said.append(holder)
            assert other.stdin is not None
            other.stdin.write("\n")
            other.stdin.flush()

        with machine_lock(what="mine", on_wait=on_wait, folder=tmp_path):
            assert said == [f"repro lab (pid {other.pid})"]


def test_without_waiting_it_is_refused(tmp_path: Path) -> None:
    with hold(tmp_path) as other:
        with pytest.raises(BusyError, match="repro lab"), machine_lock(what="mine", no_wait=True, folder=tmp_path):
            pytest.fail("it was held by another")
        other.kill()


def test_a_killed_holder_holds_nothing(tmp_path: Path) -> None:
    with hold(tmp_path) as other:
        other.kill()
        other.wait()
        with machine_lock(what="mine", no_wait=True, folder=tmp_path):
            pass
