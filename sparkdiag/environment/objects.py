"""Git objects by id from one long-lived ``git cat-file --batch``: a fraction of a millisecond each, bounded in time and
size."""

import os
import select
import subprocess
import time
from contextlib import suppress
from typing import Literal, NamedTuple

from sparkdiag.environment.clone import SHA, TIMEOUT_S, Clone

MAX_OBJECT_BYTES = 8 * 1024 * 1024
"""A 60,000-line file has two or three megabytes."""
_PIECE_BYTES = 1 << 18
_MAX_HEADER_BYTES = 200
_END_S = 1.0

Trouble = Literal["missing", "too large", "failed"]


class Found(NamedTuple):
    """One object."""

    kind: str
    """``blob``, ``tree``, ``commit`` or ``tag``."""
    content: bytes


class NotRead(NamedTuple):
    """Why an object could not be had."""

    trouble: Trouble
    size: int = 0


class _Silent(Exception):
    """Git ended, hung or said what was not asked."""


class ObjectReader:
    """Starts git at the first question, and again after a failure; ``close`` ends it. For one thread."""

    def __init__(self, clone: Clone, *, timeout_s: float = TIMEOUT_S, limit: int = MAX_OBJECT_BYTES) -> None:
        self._clone = clone
        self._timeout_s = timeout_s
        self._limit = limit
        self._child: subprocess.Popen[bytes] | None = None
        self._said = bytearray()

    def read(self, oid: str) -> Found | NotRead:
        """The object with this id of 40 digits: nothing else is ever written to git."""
        if not SHA.fullmatch(oid):
            return NotRead("missing")
        try:
            return self._answer(oid)
        except (_Silent, OSError, ValueError):
            self.close()
            return NotRead("failed")
        except BaseException:  # interrupted within an answer: the next one would begin with its rest
            self.close()
            raise

    def _answer(self, oid: str) -> Found | NotRead:
        child = self._started()
        deadline_s = time.monotonic() + self._timeout_s
        os.write(_descriptor(child.stdin), oid.encode() + b"\n")
        while (end := self._said.find(b"\n")) < 0:
            if len(self._said) > _MAX_HEADER_BYTES:
                raise _Silent
            self._more(child, deadline_s=deadline_s)
        words = self._said[:end].decode(errors="replace").split(" ")
        del self._said[: end + 1]
        if words == [oid, "missing"]:
            return NotRead("missing")
        if len(words) != 3 or words[0] != oid:
            raise _Silent
        size = int(words[2])
        if size > self._limit:
            self.close()  # sooner than to read it all
            return NotRead("too large", size)
        while len(self._said) <= size:
            self._more(child, deadline_s=deadline_s)
        content = bytes(self._said[:size])
        del self._said[: size + 1]
        return Found(words[1], content)

    def _started(self) -> "subprocess.Popen[bytes]":
        if self._child is None:
            self._said.clear()
            self._child = self._clone.child("cat-file", "--batch")
        return self._child

    def _more(self, child: "subprocess.Popen[bytes]", *, deadline_s: float) -> None:
        output = _descriptor(child.stdout)
        waiting = select.poll()
        waiting.register(output, select.POLLIN)
        if not waiting.poll(max(0.0, deadline_s - time.monotonic()) * 1000):
            raise _Silent
        piece = os.read(output, _PIECE_BYTES)
        if not piece:
            raise _Silent
        self._said += piece

    def close(self) -> None:
        """End git: by the end of its input, and where that does not help within a second by a signal."""
        child, self._child = self._child, None
        if child is None:
            return
        self._said.clear()
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        try:
            child.wait(_END_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def _descriptor(pipe: object) -> int:
    descriptor: int = pipe.fileno()  # type: ignore[attr-defined]
    return descriptor
