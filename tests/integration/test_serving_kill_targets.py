"""Whom ``scripts/kill_moments.py`` kills: its verdict is worth nothing when it kills somebody else than it says."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from sparkdiag.serving import guardian

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
pytestmark = [pytest.mark.integration, pytest.mark.timeout(60)]


def test_a_keeper_that_has_not_forked_is_not_killed_as_the_guardian(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It may fork between the look and the kill: then its guardian lives, and the run goes on as it should."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    from kill_processes import is_guardian, kept_by_another

    read_end, write_end = os.pipe()
    keeper = subprocess.Popen(
        [sys.executable, "-I", "-S", str(Path(guardian.__file__)), str(write_end)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        pass_fds=(write_end,),
        start_new_session=True,
    )
    try:
        assert keeper.stdin is not None and keeper.stdout is not None
        process = psutil.Process(keeper.pid)
        while not is_guardian(process):
            time.sleep(0.01)
        assert kept_by_another([process]) == []
        order = {"argv": ["sleep", "60"], "env": dict(os.environ), "private_dir": "", "marker": "m"}
        keeper.stdin.write(json.dumps(order).encode() + b"\n")
        keeper.stdin.flush()
        started = json.loads(keeper.stdout.readline())
        everybody = [process, *(child for child in process.children() if is_guardian(child))]
        assert [one.pid for one in kept_by_another(everybody)] == [started["guardian"][0]] != [keeper.pid]
    finally:
        keeper.communicate(timeout=30)
        os.close(read_end)
        os.close(write_end)
