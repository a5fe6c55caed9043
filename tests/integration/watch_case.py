"""A fake server that somebody else started, for tests of ``watch``: real processes, no parent of ours above them."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import psutil

FAKE = Path(__file__).resolve().parents[1] / "fakes" / "fake_vllm.py"
WITHIN_S = 90.0


class Answer(NamedTuple):
    """What one ``sparkdiag`` printed."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out)
        return found


def eventually(condition: Callable[[], object], what: str, *, within_s: float = WITHIN_S) -> None:
    until_s = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < until_s, what
        time.sleep(0.05)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Foreign:
    """The server, and how a user would watch it."""

    def __init__(self, folder: Path, mode: str = "healthy", *, before: Sequence[str] = (), **env: str) -> None:
        self.folder = folder
        self.events = folder / "events"
        self.port = free_port()
        self.base_url = f"http://127.0.0.1:{self.port}"
        argv = [sys.executable, str(FAKE), "--model", "fake", "--port", str(self.port), "-tp", "2", "-dcp", "2"]
        self.process = subprocess.Popen(
            [*before, *argv],
            env={**os.environ, "FAKE_VLLM_MODE": mode, "FAKE_VLLM_EVENTS": str(self.events), **env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._session = self.process.pid

    def wait_up(self) -> "Foreign":
        eventually(lambda: " api ready" in self.told(), "the fake server did not come up")
        return self

    def told(self) -> str:
        return self.events.read_text(encoding="utf-8") if self.events.exists() else ""

    def members(self) -> list[psutil.Process]:
        """Everybody of the server's session, whoever is their parent by now."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(OSError):
                if os.getsid(process.pid) == self._session:
                    found.append(process)
        return found

    def titled(self, title: str) -> psutil.Process:
        """Its process with that title."""
        return next(one for one in self.members() if command(one).startswith(title))

    def ask(self, characters: int) -> threading.Thread:
        """Another client's prompt."""
        body = json.dumps({"model": "fake", "prompt": "a" * characters, "stream": True, "max_tokens": 4}).encode()
        request = urllib.request.Request(
            f"{self.base_url}/v1/completions", data=body, headers={"Content-Type": "application/json"}
        )
        thread = threading.Thread(target=_quietly, args=(request,), daemon=True)
        thread.start()
        return thread

    def end(self) -> None:
        for _ in range(20):
            members = self.members()
            if not members:
                break
            for member in members:
                with contextlib.suppress(psutil.Error):
                    member.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(1)
            time.sleep(0.05)

    def start(self, *args: str, before: Sequence[str] = (), **env: str) -> "subprocess.Popen[str]":
        return start_watch(self.folder, *args, before=before, **env)

    def watch(self, *args: str, before: Sequence[str] = (), **env: str) -> Answer:
        return _answer(self.start(*args, before=before, **env))


def start_watch(folder: Path, *args: str, before: Sequence[str] = (), **env: str) -> "subprocess.Popen[str]":
    """``sparkdiag watch`` as a user would type it in ``folder``."""
    temporary = folder / "t"
    temporary.mkdir(exist_ok=True)
    own = {"XDG_CACHE_HOME": str(folder / "cache"), "TMPDIR": str(temporary), "NO_COLOR": "1"}
    return subprocess.Popen(
        [*before, sys.executable, "-m", "sparkdiag", "watch", *args, "--out", str(folder / "runs")],
        cwd=folder,
        env={**os.environ, **own, **env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def watched_at(folder: Path, *args: str) -> Answer:
    """The same, until its end."""
    return _answer(start_watch(folder, *args))


def _answer(child: "subprocess.Popen[str]") -> Answer:
    out, err = child.communicate(timeout=2 * WITHIN_S)
    return Answer(child.returncode, out, err)


def command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def _quietly(request: urllib.request.Request) -> None:
    with contextlib.suppress(OSError), urllib.request.urlopen(request, timeout=2 * WITHIN_S) as answer:
        answer.read()


def can_unshare() -> bool:
    """Whether namespaces may be made here."""
    if shutil.which("unshare") is None or shutil.which("ip") is None:
        return False
    tried = ["unshare", "--net", "--pid", "--fork", "--mount-proc", "ip", "link", "set", "lo", "up"]
    return subprocess.run(tried, capture_output=True, check=False, timeout=30).returncode == 0


IN_A_CONTAINER = ("unshare", "--net", "--pid", "--fork", "--mount-proc", "--kill-child=KILL", "--")
WITH_LOOPBACK = ("sh", "-c", 'ip link set lo up; exec "$@"', "sh")
