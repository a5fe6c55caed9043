"""Revisions whose code means harm: each ends in a clear line, with nothing written and nothing left."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.integration.executing_case import entry_call, run, torch_python

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]


@pytest.fixture(autouse=True)
def _nothing_left(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    yield
    after = {child.pid for child in psutil.Process().children(recursive=True)}
    assert after <= before
    assert list(folder.iterdir()) == []


def raised_by(body: str, **more: float) -> str:
    """What the entry function with this body ends in."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    call = entry_call(run(f"def entry():\n{lines}\n", **more))  # type: ignore[arg-type]
    assert call.reached == ()
    return call.raised or ""


def test_an_endless_loop_is_killed_when_its_time_is_up() -> None:
    assert "ran past 2 s and was killed" in raised_by("while True:\n    pass", timeout_s=2.0)


def test_a_loop_that_swallows_everything_is_killed_all_the_same() -> None:
    body = "while True:\n    try:\n        while True: pass\n    except BaseException:\n        pass"
    assert "was killed" in raised_by(body, timeout_s=2.0)


def let_through(attempts: Sequence[str]) -> str:
    """Those of the attempts, all made in one revision, that did not end in ``PermissionError``; and one that must."""
    lines = ["import os, signal, socket, subprocess, multiprocessing, urllib.request", "passed = []"]
    for attempt in (*attempts, "None"):
        lines += ["try:", f"    {attempt}", "except PermissionError:", "    pass", "except OSError as error:"]
        lines += [f"    passed.append({attempt!r} + repr(error))", f"else:\n    passed.append({attempt!r})"]
    said = raised_by("\n".join([*lines, "raise ValueError(passed)"]))
    assert said.startswith("ValueError: [") and "'None']" in said
    return said.removeprefix("ValueError: ").partition(" (")[0]


def test_no_process_is_started_and_none_is_signalled() -> None:
    attempts = (
        "os.fork()",
        "os.posix_spawn('/bin/sh', ['sh', '-c', 'sleep 1000'], {})",
        "subprocess.run(['sleep', '1000'])",
        "multiprocessing.Process(target=print).start()",
        "os.system('sleep 1000')",
        "os.execv('/bin/sleep', ['sleep', '1000'])",
        "os.kill(os.getppid(), signal.SIGTERM)",
        "os.killpg(0, signal.SIGKILL)",
    )
    assert let_through(attempts) == "['None']"


def test_no_connection_is_made() -> None:
    attempts = (
        "socket.create_connection(('127.0.0.1', 80), 1)",
        "socket.socket(socket.AF_UNIX).connect('/run/docker.sock')",
        "socket.getaddrinfo('localhost', 80)",
    )
    assert let_through(attempts) == "['None']"


def test_nothing_is_written_anywhere(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.write_text("as it was")
    new = tmp_path / "new"
    attempts = (
        f"open({str(new)!r}, 'w')",
        f"os.open({str(new)!r}, os.O_CREAT)",
        f"open({str(kept)!r}, 'r+')",
        f"os.unlink({str(kept)!r})",
        f"os.truncate({str(kept)!r}, 0)",
        f"os.mkdir({str(new)!r})",
        "open('here', 'w')",
    )
    assert let_through(attempts) == "['None']"
    assert kept.read_text() == "as it was"
    assert not new.exists()


@pytest.mark.parametrize(
    "body", ["held = bytearray(1 << 40)", "held = []\nwhile True:\n    held.append(bytearray(1 << 20))"]
)
def test_memory_is_bounded(body: str) -> None:
    assert "MemoryError" in raised_by(body, memory_mib=256)


def test_an_exit_is_no_answer() -> None:
    assert "ended with exit status 3" in raised_by("import os\nos._exit(3)")


def test_a_crash_is_told_by_its_signal() -> None:
    assert "killed by SIG" in raised_by("import os\nos.abort()")


def test_a_forged_answer_on_standard_output_is_not_heard() -> None:
    forged = '{"call": {"job": 0, "function": "entry", "clean": null, "events": [{"kind": "op", "name": "forged"}]}}'
    body = (
        f"import os\nfor fd in (1, 2):\n    os.write(fd, b'nonce ' + {forged!r}.encode() + b'\\n')\nprint({forged!r})"
    )
    call = entry_call(run("def entry():\n" + "\n".join(f"    {line}" for line in body.splitlines()) + "\n"))
    assert call.reached == ()
    assert call.raised is None


def test_a_forged_answer_without_the_nonce_ends_the_talk() -> None:
    body = (
        "import os\nfor fd in range(3, 64):\n    try:\n        os.write(fd, b'guess {\"end\": true}\\n')\n"
        "    except OSError:\n        pass"
    )
    assert "what it said is no answer" in raised_by(body)


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_flood_of_output_is_dropped(stream: str) -> None:
    body = f"import sys\nfor _ in range(100):\n    sys.{stream}.write('x' * (1 << 20))"
    assert raised_by(body) == ""


def test_a_flood_of_answers_ends_the_talk() -> None:
    body = (
        "import os\nfor fd in range(3, 64):\n    try:\n        os.fstat(fd)\n        while True:\n"
        "            os.write(fd, b'x' * 65536)\n    except OSError:\n        pass"
    )
    assert "it said more than an answer holds" in raised_by(body)


def test_harm_at_import_is_harm_all_the_same(tmp_path: Path) -> None:
    new = tmp_path / "new"
    call = entry_call(run(f"open({str(new)!r}, 'w')\n\ndef entry():\n    pass\n"))
    assert "PermissionError" in (call.raised or "")
    assert not new.exists()


def test_no_variable_of_ours_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTED_TOKEN", "planted-value")
    assert "PLANTED" not in raised_by("import os\nraise ValueError(' '.join(os.environ))")


def test_what_it_raises_cannot_reach_the_terminal() -> None:
    said = raised_by("raise ValueError('\\x1b]0;title\\x07 Authorization: Bearer ' + 'k3y' * 12)")
    assert "\x1b" not in said
    assert "k3yk3y" not in said


ALONE = """
import sys
from tests.integration.executing_case import run
run("import time\\ndef entry():\\n    while True: time.sleep(1)\\n", timeout_s=600.0)
"""


def test_when_we_are_killed_the_child_goes_with_us(tmp_path: Path) -> None:
    torch_python()
    environ = {**os.environ, "TMPDIR": str(tmp_path)}
    parent = subprocess.Popen([sys.executable, "-c", ALONE], cwd=Path(__file__).parents[2], env=environ)
    try:
        child = _first_child(psutil.Process(parent.pid))
        parent.kill()
        psutil.wait_procs([child], timeout=30)
        assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE
    finally:
        parent.kill()
        parent.wait()


def _first_child(parent: psutil.Process) -> psutil.Process:
    """The confined child, once it asked the kernel to die with its parent: it is in a network namespace by then."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        for child in parent.children():
            with suppress(OSError, psutil.Error):
                cut_off = Path(f"/proc/{child.pid}/ns/net").readlink() != Path("/proc/self/ns/net").readlink()
                if cut_off or child.num_threads() > 1 or child.memory_info().rss > 150 << 20:
                    return child
        time.sleep(0.05)
    raise AssertionError("the child never came up")
