"""py-spy allowed, refused by the kernel, missing, hanging; and nothing left of the processes that were looked at."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from sparkdiag.doctor import look_sampling, specimen
from sparkdiag.doctor.look_machine import look_at_priority
from sparkdiag.observing.pyspy import find_pyspy
from tests.integration.doctor_case import LIMIT_S, Doctor, unprivileged

pytestmark = pytest.mark.integration
PR_SET_DUMPABLE = 4
CLOSED = f"""
import ctypes
ctypes.CDLL(None).prctl({PR_SET_DUMPABLE}, 0, 0, 0, 0)
{specimen.SOURCE}
"""
CLOSE_SPECIMENS = f"""
import functools
from sparkdiag.doctor import specimen
specimen.child = functools.partial(specimen.child, source={CLOSED!r})
specimen.stranger = functools.partial(specimen.stranger, source={CLOSED!r})
"""


@pytest.fixture
def doctor(tmp_path: Path) -> Iterator[Doctor]:
    yield Doctor(tmp_path)


def specimens() -> set[int]:
    """Living specimens of any sparkdiag on this machine."""
    found = set()
    for process in psutil.process_iter():
        try:
            if any(specimen.FUNCTION in part for part in process.cmdline()):
                found.add(process.pid)
        except psutil.Error:
            continue
    return found


def until(done: Callable[[], bool], *, within_s: float = 20.0) -> bool:
    deadline_s = time.monotonic() + within_s
    while not done():
        if time.monotonic() > deadline_s:
            return False
        time.sleep(0.05)
    return True


def test_a_stranger_is_nobodys_child_and_is_gone_afterwards() -> None:
    with specimen.stranger() as process:
        assert process.parent_pid not in (os.getpid(), process.pid)
        assert process.pid not in {child.pid for child in psutil.Process().children(recursive=True)}
        assert psutil.pid_exists(process.pid)
    assert not psutil.pid_exists(process.pid) or psutil.Process(process.pid).status() == psutil.STATUS_ZOMBIE


def test_a_specimen_that_does_not_follow_its_input_is_killed() -> None:
    deaf = specimen.SOURCE.replace("os._exit(0)\n\nsignal", "pass\n\nsignal")
    assert deaf != specimen.SOURCE
    with specimen.stranger(source=deaf) as stranger, specimen.child(source=deaf) as child:
        pass
    assert until(lambda: not {stranger.pid, child.pid} & specimens())


@pytest.mark.parametrize(
    ("python", "said"),
    [("/nonexistent/python", "No such file"), ("/bin/false", "ended at once"), ("/bin/echo", "does not answer")],
)
def test_an_interpreter_that_is_none_is_said_so(python: str, said: str) -> None:
    with pytest.raises(specimen.SpecimenError, match=said), specimen.child(python):
        pass


def test_the_priority_of_a_child_is_lowered_and_read_back() -> None:
    found = look_at_priority()
    assert found.child_nice == 10 or found.own_nice > 10
    if found.autogroup_enabled:
        assert found.autogroup_nice == 10 or found.refusal or not found.grouped
    else:
        assert found.autogroup_nice is None


def test_without_any_capability_a_child_can_still_be_sampled(doctor: Doctor) -> None:
    told = doctor.run(before=unprivileged())
    scope = Path("/proc/sys/kernel/yama/ptrace_scope")
    if scope.exists() and scope.read_text().strip() not in ("0", "1"):
        pytest.skip("this kernel's Yama allows nobody without a capability")
    assert told.one("sample-child")["status"] == "ok"
    assert told.one("sample-environment")["status"] == "ok"


def test_as_another_user_without_any_capability(doctor: Doctor) -> None:
    told = doctor.run(before=unprivileged(nobody=True))
    assert told.code == 0
    assert told.one("sample-child")["status"] == "ok"


def test_a_real_refusal_of_the_kernel_warns_and_names_the_way_out(doctor: Doctor) -> None:
    """The specimens make themselves unreadable, and the capability that would read them anyway is gone."""
    told = doctor.run(before=unprivileged(), patch=CLOSE_SPECIMENS)
    assert told.code == 0
    for name in ("sample-child", "sample-other", "sample-environment"):
        found = told.one(name)
        assert found["status"] == "warn", found
        assert "permission denied (CAP_SYS_PTRACE is missing" in found["seen"]
        assert "SYS_PTRACE" in found["next"]
    assert "the probe inside the server samples instead" in told.one("sample-child")["why"]
    assert "only a server that sparkdiag did not start" in told.one("sample-other")["why"]


def test_the_capability_reads_even_what_made_itself_unreadable(doctor: Doctor) -> None:
    if os.getuid() != 0:
        pytest.skip("needs root")
    told = doctor.run(patch=CLOSE_SPECIMENS)
    assert told.one("sample-child")["status"] == "ok"


def test_no_pyspy_is_said_once(doctor: Doctor) -> None:
    patch = "from sparkdiag.doctor import look_sampling\nlook_sampling.find_pyspy = lambda: None"
    told = doctor.run(patch=patch)
    assert (told.code, told.bad) == (0, {"sample-child": "warn"})
    assert told.one("sample-child")["next"] == "pip install py-spy"


def test_a_pyspy_that_does_not_know_this_python_fails(tmp_path: Path) -> None:
    old = tmp_path / "py-spy"
    old.write_text("#!/bin/sh\necho 'Error: Failed to find python version from target process' >&2\nexit 1\n")
    old.chmod(0o755)
    (found,) = look_sampling.sample_environment(sys.executable, pyspy=old)
    assert found.status == "fail"
    assert "pip install -U py-spy" in (found.next_step or "")


def test_a_hanging_pyspy_is_a_warning_in_time(tmp_path: Path) -> None:
    slow = tmp_path / "py-spy"
    slow.write_text("#!/bin/sh\nexec sleep 600\n")
    slow.chmod(0o755)
    began_s = time.monotonic()
    (found,) = look_sampling.sample_child(pyspy=slow)
    assert found.status == "warn"
    assert "was killed" in found.seen
    assert time.monotonic() - began_s < 30


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_whatever_ends_the_doctor_ends_the_specimens(doctor: Doctor, tmp_path: Path, number: int) -> None:
    """In the middle of a look at a process that is not even a child."""
    slow = tmp_path / "py-spy"
    slow.write_text("#!/bin/sh\nexec sleep 5\n")
    slow.chmod(0o755)
    patch = f"""
import pathlib
from sparkdiag.doctor import look_sampling
look_sampling.sample_child = tuple
look_sampling.DUMP_TIMEOUT_S = 60
look_sampling.find_pyspy = lambda: pathlib.Path({str(slow)!r})
"""
    before = specimens()
    process = subprocess.Popen(
        doctor.argv("--json", patch=patch),
        cwd=doctor.folder, env=doctor.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert until(lambda: bool(specimens() - before))
        process.send_signal(number)
        stdout, stderr = process.communicate(timeout=LIMIT_S)
    finally:
        process.kill()
    assert "Traceback" not in stderr
    assert process.returncode == {signal.SIGINT: 130, signal.SIGTERM: 143}.get(signal.Signals(number), -number)
    assert until(lambda: not specimens() - before)
    if number != signal.SIGKILL:
        assert '"interrupted"' in stdout


def test_pyspy_is_there() -> None:
    assert find_pyspy() is not None
