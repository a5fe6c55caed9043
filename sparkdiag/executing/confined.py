"""Starts the confined child and talks with it: bounded in time and in what it may say, and surely gone afterwards.

The child can start no process (seccomp, or the interpreter's audit hook where that is not had), the kernel kills it
when this process dies, and its whole session is killed here in any case.
"""

import json
import os
import re
import secrets
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

MAIN = Path(__file__).parent / "inside" / "main.py"
LONGEST_LINE = 2 << 20
MOST_SAID_BYTES = 32 << 20
MOST_ASKED = 4000
MOST_GIVEN_BYTES = 96 << 20
START_S = 180.0
"""For loading torch, from a cold disk on a busy machine."""
TAIL_BYTES = 8192
READ_BYTES = 1 << 16
_PATH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]{0,400}\.py")

Said = Mapping[str, Any]


class Conversation:
    """One child's side of the talk, as it is heard."""

    def __init__(self, *, nonce: str, read: Callable[[str], str | None], heard: Callable[[Said], None]) -> None:
        self.nonce = nonce
        self.read = read
        self.heard = heard
        self.rest = b""
        self.said_bytes = self.given_bytes = self.asked = 0
        self.outgoing = b""
        self.ended = self.ready = False
        self.wrong = ""

    def take(self, data: bytes) -> None:
        """Hear what the child wrote; sets ``wrong`` where it is more than a child may say, or nothing that it may."""
        self.said_bytes += len(data)
        *lines, self.rest = (self.rest + data).split(b"\n")
        if self.said_bytes > MOST_SAID_BYTES or len(self.rest) > LONGEST_LINE:
            self.wrong = "it said more than an answer holds"
        for line in lines:
            if not self.wrong and not self.ended:
                self._line(line)

    def _line(self, line: bytes) -> None:
        nonce, _, text = line.partition(b" ")
        said: Any = None
        if secrets.compare_digest(nonce, self.nonce.encode()):
            with suppress(ValueError, RecursionError):
                said = json.loads(text)
        if not isinstance(said, dict):
            self.wrong = "what it said is no answer"
        elif "need" in said:
            self._need(said["need"])
        elif "end" in said:
            self.ended = True
        else:
            self.ready = self.ready or "ready" in said
            self.heard(said)

    def _need(self, path: object) -> None:
        self.asked += 1
        if self.asked > MOST_ASKED or not isinstance(path, str):
            self.wrong = "it asked for more files than a dispatch has"
            return
        text = self.read(path) if _PATH.fullmatch(path) and ".." not in path else None
        reply = json.dumps({"text": text}).encode() + b"\n"
        self.given_bytes += len(reply)
        if self.given_bytes > MOST_GIVEN_BYTES:
            self.wrong = "it asked for more source than a dispatch has"
        self.outgoing += reply


def converse(
    python: Path,
    order: Mapping[str, Any],
    *,
    read: Callable[[str], str | None],
    heard: Callable[[Said], None],
    timeout_s: float,
) -> str:
    """Run the child to its end, ``timeout_s`` after it is ready at the latest; ``heard`` gets what it says.

    Returns why it did not get there, in words, or nothing. Raises ``OSError`` where the interpreter cannot be started.
    Whatever ends the call, the child is gone.
    """
    nonce = secrets.token_hex(16)
    talk = Conversation(nonce=nonce, read=read, heard=heard)
    talk.outgoing = json.dumps({**order, "nonce": nonce}).encode() + b"\n"
    with ExitStack() as stack:
        folder = stack.enter_context(
            tempfile.TemporaryDirectory(prefix="sparkdiag-execute-", ignore_cleanup_errors=True)
        )
        answer, theirs = os.pipe()
        stack.callback(os.close, answer)
        try:
            child = subprocess.Popen(
                (str(python), "-I", "-S", str(MAIN), str(theirs), str(os.getpid())),
                cwd=folder,
                env={},
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                pass_fds=(theirs,),
                start_new_session=True,
            )
        finally:
            os.close(theirs)
        stack.callback(_end, child)
        return _pump(child, answer, talk, timeout_s=timeout_s)


def _pump(child: "subprocess.Popen[bytes]", answer: int, talk: Conversation, *, timeout_s: float) -> str:
    assert child.stdin is not None and child.stderr is not None  # noqa: S101 - asked for above
    tail = b""
    running, began, limit_s = False, time.monotonic(), START_S
    os.set_blocking(child.stdin.fileno(), False)
    with selectors.DefaultSelector() as wanted:
        wanted.register(answer, selectors.EVENT_READ, "answer")
        wanted.register(child.stderr, selectors.EVENT_READ, "errors")
        while not talk.ended and not talk.wrong:
            _wait_to_write(wanted, child, talk)
            if talk.ready and not running:
                running, began, limit_s = True, time.monotonic(), timeout_s
            left_s = began + limit_s - time.monotonic()
            if left_s <= 0:
                return f"it ran past {limit_s:g} s and was killed"
            for key, _ in wanted.select(left_s):
                if key.data == "input":
                    _write(child, talk)
                    continue
                data = os.read(key.fd, READ_BYTES)
                if not data:
                    wanted.unregister(key.fileobj)
                    if key.data == "answer":
                        return _how_it_ended(child, tail)
                elif key.data == "answer":
                    talk.take(data)
                else:
                    tail = (tail + data)[-TAIL_BYTES:]
    return talk.wrong


def _wait_to_write(wanted: selectors.DefaultSelector, child: "subprocess.Popen[bytes]", talk: Conversation) -> None:
    assert child.stdin is not None  # noqa: S101
    registered = child.stdin in wanted.get_map()
    if talk.outgoing and not registered:
        wanted.register(child.stdin, selectors.EVENT_WRITE, "input")
    elif registered and not talk.outgoing:
        wanted.unregister(child.stdin)


def _write(child: "subprocess.Popen[bytes]", talk: Conversation) -> None:
    assert child.stdin is not None  # noqa: S101
    try:
        talk.outgoing = talk.outgoing[os.write(child.stdin.fileno(), talk.outgoing[:READ_BYTES]) :]
    except BlockingIOError:
        return
    except OSError:
        talk.outgoing = b""  # it reads no more; the end of its answer tells why


def _how_it_ended(child: "subprocess.Popen[bytes]", tail: bytes) -> str:
    try:
        code = child.wait(5)
    except subprocess.TimeoutExpired:
        return "it closed its answer and went on"
    if code < 0:
        with suppress(ValueError):
            return f"its process was killed by {signal.Signals(-code).name}"
    last = tail.decode(errors="replace").strip().rpartition("\n")[2]
    return f"its process ended with exit status {code}" + (f": {last}" if last else "")


def _end(child: "subprocess.Popen[bytes]") -> None:
    """Kill the session, whatever is left of it, and collect the child."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    with suppress(ProcessLookupError):
        child.kill()
    for stream in (child.stdin, child.stderr):
        if stream is not None:
            with suppress(OSError):
                stream.close()
    child.wait()


if sys.platform != "linux":  # pragma: no cover - the rest of sparkdiag says so earlier
    raise ImportError("the confined child needs Linux")
