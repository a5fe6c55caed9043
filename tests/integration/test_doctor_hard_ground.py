"""Hanging and crashing checks, clones that lack something, and what earlier servers left."""

import contextlib
import mmap
import os
import secrets
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from sparkdiag.doctor.look_environment import clone
from sparkdiag.doctor.look_others import leftovers, residents, unheld
from sparkdiag.environment.clone import Clone
from sparkdiag.scenario.load import load_scenario
from sparkdiag.scenario.model import Scenario, Suspect
from tests.integration.doctor_case import LIMIT_S, Doctor, fake_environment

pytestmark = pytest.mark.integration
SHM = Path("/dev/shm")


@pytest.fixture
def doctor(tmp_path: Path) -> Iterator[Doctor]:
    yield Doctor(tmp_path)


def git(folder: Path, *words: str) -> str:
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0"}
    author = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "protocol.file.allow=always")
    done = subprocess.run(
        ["git", *author, *words], cwd=folder, env=env, capture_output=True, text=True, timeout=LIMIT_S, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def upstream(tmp_path: Path) -> Path:
    """Three commits; the middle one is the suspect."""
    folder = tmp_path / "upstream"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    git(folder, "config", "uploadpack.allowFilter", "true")
    for name in ("first", "suspect", "last"):
        (folder / "file.py").write_text(name)
        git(folder, "add", "file.py")
        git(folder, "commit", "-q", "-m", name)
    return folder


def scenario_about(commit: str, *twins: str) -> Scenario:
    return load_scenario("sm12x-mqa-prefill").model_copy(update={"suspect": Suspect(commit=commit, twins=twins)})


def judged(folder: Path, scenario: Scenario, *, revision: str | None = None) -> list[tuple[str, str]]:
    found = clone(scenario, folder=str(folder), revision=revision)
    return [(one.status, one.next_step or one.seen) for one in found]


def cloned(upstream: Path, *options: str) -> Path:
    folder = upstream.parent / "clone"
    git(upstream.parent, "clone", "-q", *options, f"file://{upstream}", str(folder))
    return folder


def test_a_whole_clone_that_holds_the_commit_or_its_twin(upstream: Path) -> None:
    suspect, head = git(upstream, "rev-parse", "HEAD~1"), git(upstream, "rev-parse", "HEAD")
    made = cloned(upstream)
    ((status, seen),) = judged(made, scenario_about(suspect), revision=head)
    assert status == "ok"
    assert f"holds the suspect commit {suspect[:10]}; {suspect[:10]} is an ancestor of {head[:10]}" in seen
    ((status, seen),) = judged(made, scenario_about("f" * 40, suspect[:12]))
    assert (status, suspect[:10] in seen) == ("ok", True)


def test_a_shallow_clone_lacks_the_commit_and_its_remedy_brings_it(upstream: Path) -> None:
    suspect = git(upstream, "rev-parse", "HEAD~1")
    made = cloned(upstream, "--depth", "1")
    assert judged(made, scenario_about(suspect)) == [
        ("warn", f"git -C {made} fetch --unshallow"),
        ("warn", f"git -C {made} fetch --all"),
    ]
    git(made, "fetch", "-q", "--unshallow")
    assert [status for status, _seen in judged(made, scenario_about(suspect))] == ["ok"]


def test_a_partial_clone_is_told_and_its_remedy_makes_it_whole(upstream: Path) -> None:
    suspect = git(upstream, "rev-parse", "HEAD~1")
    made = cloned(upstream, "--filter=blob:none", "--no-checkout")
    assert Clone(made).blob_sha256("HEAD", "file.py") is None
    ((status, step),) = judged(made, scenario_about(suspect))
    assert status == "warn"
    for command in step.split("; "):
        git(made, *command.removeprefix(f"git -C {made} ").split())
    assert [status for status, _seen in judged(made, scenario_about(suspect))] == ["ok"]
    assert Clone(made).blob_sha256("HEAD", "file.py") is not None


def test_a_folder_that_is_no_clone_and_one_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    for name in ("plain", "nowhere"):
        assert judged(tmp_path / name, scenario_about("f" * 40))[0][0] == "fail"


def test_the_clone_of_the_option_is_asked(doctor: Doctor, upstream: Path) -> None:
    made = fake_environment(doctor.folder / "venv")
    told = doctor.run("--env", f"existing:{made}", "--repo", str(upstream), CUDA_VISIBLE_DEVICES="")
    assert told.bad == {"gpu": "fail", "model": "fail", "clone": "warn"}
    assert "holds neither f8f18ce66b nor its twin f6c6e54f4" in told.one("clone")["seen"]
    assert told.one("git")["status"] == "ok"


def hanging_environment(folder: Path) -> tuple[Path, Path]:
    """An interpreter that never answers, and the file it writes its pid to."""
    python, pid = folder / "hang" / "bin" / "python", folder / "hang" / "pid"
    python.parent.mkdir(parents=True)
    python.write_text(f"#!/bin/sh\necho $$ > {pid}\nexec sleep 600\n")
    python.chmod(0o755)
    return python.parents[1], pid


def gone(pid: int, *, within_s: float = 20) -> bool:
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        with contextlib.suppress(psutil.TimeoutExpired):
            process.wait(within_s)
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    return True


def test_an_interpreter_that_hangs_is_a_finding_and_the_rest_is_checked(doctor: Doctor) -> None:
    made, pid = hanging_environment(doctor.folder)
    patch = "from sparkdiag.doctor import look_environment\nlook_environment.ASK_TIMEOUT_S = 1.5"
    told = doctor.run("--env", f"existing:{made}", patch=patch)
    assert (told.code, told.bad) == (4, {"environment": "fail", "model": "fail"})
    assert "no answer within 1.5 s" in told.one("environment")["seen"]
    assert told.one("port")["status"] == "ok"
    assert gone(int(pid.read_text()))


def test_a_check_that_hangs_beyond_its_own_bound_is_given_up_and_what_it_started_is_ended(doctor: Doctor) -> None:
    made, pid = hanging_environment(doctor.folder)
    told = doctor.run(
        "--env", f"existing:{made}", patch="from sparkdiag.doctor import diagnosis\ndiagnosis.ENVIRONMENT_LIMIT_S = 1.5"
    )
    assert (told.code, told.bad) == (4, {"environment": "fail", "model": "fail"})
    assert "the check was given up" in told.one("environment")["seen"]
    assert gone(int(pid.read_text()))


def test_ctrl_c_ends_an_interpreter_that_hangs(doctor: Doctor) -> None:
    made, pid = hanging_environment(doctor.folder)
    process = subprocess.Popen(
        doctor.argv("--env", f"existing:{made}"),
        cwd=doctor.folder, env=doctor.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        deadline_s = time.monotonic() + 30
        while not (pid.exists() and pid.read_text().strip()) and time.monotonic() < deadline_s:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _stdout, stderr = process.communicate(timeout=LIMIT_S)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "interrupted; everything started is stopped" in stderr
    assert gone(int(pid.read_text()))


def test_a_crash_inside_a_check_is_a_finding_and_no_traceback(doctor: Doctor) -> None:
    patch = """
from sparkdiag.doctor import look_machine
def broken():
    raise ZeroDivisionError("by \\x1b[31mnothing")
look_machine.clock = broken
"""
    told = doctor.run(patch=patch)
    assert (told.code, told.bad) == (4, {"clock": "crashed"})
    assert "ZeroDivisionError" in told.one("clock")["seen"]
    assert "report it" in told.one("clock")["next"]
    text = doctor.text(patch=patch)
    assert "CRASH  clock" in text.stdout
    assert "\x1b" not in text.stdout + text.stderr
    assert "Traceback" not in text.stderr


@contextmanager
def pretending(title: str) -> Iterator[int]:
    """A process of ours with vLLM's title."""
    with subprocess.Popen(["bash", "-c", f"exec -a '{title}' cat"], stdin=subprocess.PIPE) as process:
        try:
            deadline_s = time.monotonic() + 10
            while psutil.Process(process.pid).cmdline() != [title] and time.monotonic() < deadline_s:
                time.sleep(0.02)
            yield process.pid
        finally:
            process.kill()


def test_a_vllm_process_of_somebody_else_is_reported_and_left_alone() -> None:
    with pretending("VLLM::Worker_TP0_DCP0") as pid:
        (mine,) = (one for one in residents() if one.pid == pid)
        assert (mine.role, mine.ours, mine.orphan) == ("worker", False, False)
        assert any(f"{pid} VLLM::Worker_TP0_DCP0" in one.seen for one in leftovers())
        assert psutil.Process(pid).is_running()


def test_segments_that_nobody_holds_are_reported_and_left_alone() -> None:
    left, held = (SHM / f"psm_{secrets.token_hex(4)}" for _ in range(2))
    try:
        left.write_bytes(b"\0" * 8192)
        held.write_bytes(b"\0" * 8192)
        with held.open("r+b") as file, mmap.mmap(file.fileno(), 0):
            found = {one.name: one.bytes for one in unheld()}
        assert found.get(left.name) == 8192
        assert held.name not in found
        assert left.exists()
    finally:
        left.unlink(missing_ok=True)
        held.unlink(missing_ok=True)
