"""The lab's history searched for real at DCP 2: killed once, resumed, the gate commit found, the broken one skipped."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from sparkdiag.lab.history import FIX_COMMIT

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(2400)]

SUSPECT = "_fp8_mqa_logits_torch"
ENDS_WITHIN_S = 900
GONE_WITHIN_S = 10


def journal_of(folder: Path) -> list[dict[str, Any]]:
    """Every whole line of the one bisection below ``folder``."""
    found = [path.read_text(encoding="utf-8") for path in folder.glob("runs/*-bisect-*/journal.jsonl")]
    return [json.loads(line) for text in found for line in text.splitlines(keepends=True) if line.endswith("\n")]


def engines() -> list[str]:
    """Command lines of what belongs to a vLLM server."""
    titles = [" ".join(process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"])]
    return [title for title in titles if title.startswith("VLLM::") or "vllm.entrypoints" in title]


def shared_memory() -> list[str]:
    return [str(path) for path in Path("/dev/shm").glob("psm_*") if path.stat().st_uid == os.getuid()]


def bisect(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "sparkdiag", "bisect", *arguments]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("user")


@pytest.fixture(scope="module")
def killed(folder: Path) -> list[dict[str, Any]]:
    """The journal of a search that was killed -9 in the trial after its two ends."""
    with (folder / "talk").open("wb") as talk:
        searching = subprocess.Popen(
            bisect("--suspect", "does-not-start"), cwd=folder, stdin=subprocess.DEVNULL, stdout=talk, stderr=talk
        )
        try:
            until_s = time.monotonic() + ENDS_WITHIN_S
            while [step["event"] for step in journal_of(folder)].count("started") < 3:
                said = (folder / "talk").read_text(encoding="utf-8", errors="replace")[-3000:]
                assert searching.poll() is None, said
                assert time.monotonic() < until_s, said
                time.sleep(1)
            while not engines() and time.monotonic() < until_s:
                time.sleep(0.2)
        finally:
            os.kill(searching.pid, signal.SIGKILL)
            searching.wait(timeout=30)
    return journal_of(folder)


@pytest.fixture(scope="module")
def found(folder: Path, killed: list[dict[str, Any]]) -> dict[str, Any]:
    """What the resumed search says."""
    until_s = time.monotonic() + GONE_WITHIN_S
    while engines() and time.monotonic() < until_s:
        time.sleep(0.2)
    assert engines() == [], "a killed search leaves no server"
    done = subprocess.run(
        bisect("--resume", "--json"), cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=1500, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stderr[-4000:]}\n{done.stdout[-2000:]}"
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_the_gate_commit_is_found_as_the_fix(found: dict[str, Any]) -> None:
    assert (found["outcome"], found["direction"]) == ("found", "fix")
    assert [commit["sha"] for commit in found["commits"]] == [FIX_COMMIT]
    assert any(f"route: {SUSPECT} -> fp8_mqa_logits_triton" in note for note in found["notes"]), "it was predicted"
    assert engines() == []
    assert shared_memory() == []


def test_both_ends_were_run_once_although_the_search_was_killed(
    found: dict[str, Any], killed: list[dict[str, Any]], folder: Path
) -> None:
    assert [step["purpose"] for step in killed if step["event"] == "finished"] == ["end", "end"]
    assert [step["event"] for step in killed][-1] == "started"
    again = [step for step in journal_of(folder) if step["event"] == "started"]
    assert [step["purpose"] for step in again].count("end") == 2


def test_the_commit_that_does_not_start_is_skipped_with_its_reason(found: dict[str, Any]) -> None:
    (skipped,) = [trial for trial in found["trials"] if trial["outcome"] == "not-started"]
    assert "sparklab.top_k" in skipped["reason"]


def test_every_trial_that_ran_left_a_run_that_can_be_read(found: dict[str, Any], folder: Path) -> None:
    (kept,) = folder.glob("runs/*-bisect-*")
    runs = sorted(path.parent for path in kept.glob("trials/*/run.json"))
    assert len(runs) >= 5
    stalled = [json.loads((run / "run.json").read_text(encoding="utf-8")) for run in runs]
    named = {run["verdict"]["function"] for run in stalled if run["verdict"] and run["verdict"]["outcome"] == "stalled"}
    assert SUSPECT in named
    assert FIX_COMMIT[:10] in (kept / "report.md").read_text(encoding="utf-8")


def test_the_unwatched_controls_agree_with_the_ends(found: dict[str, Any]) -> None:
    controls = [trial["outcome"] for trial in found["trials"] if trial.get("purpose") == "control"]
    assert sorted(controls) == ["completed", "stalled"]
