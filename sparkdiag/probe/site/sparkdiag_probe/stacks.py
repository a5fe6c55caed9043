"""The in-process sampler, for machines where py-spy may not look: ``stacks-<pid>.jsonl``.

One line a sample (see ``Sampler.sample`` for the keys); ``threads`` has the shape of ``sparkdiag.evidence.stacks``,
innermost frame first, functions qualified as py-spy does it. The stamps are ``time.monotonic()``, one clock for the
whole machine on Linux. The sampler needs the GIL: a sample taken late says so by its stamps.

Locals are kept for the scenario's own functions only, and of those only integers, booleans and named ones.
"""

import contextlib
import json
import os
import sys
import threading
import time
from types import FrameType
from typing import Any

from . import trampoline

LARGEST_FILE_BYTES = 64 << 20
MOST_THREADS = 200
MOST_FRAMES = 100
MOST_FRAMES_OF_OTHERS = 20
"""Threads other than the main one: enough to see what they wait for."""
LONGEST_TEXT = 200
LARGEST_INTEGER = 10**12
"""Below: sizes, not keys, addresses or a card's number."""
CO_OPTIMIZED = 1


class Sampler:
    def __init__(self, folder: str, *, kept_locals: "frozenset[str]", functions: "frozenset[str]") -> None:
        self.folder = folder
        self.kept_locals = kept_locals
        self.functions = functions
        self.written = 0

    def sample(self) -> bool:
        """Append one sample. False once the file is full."""
        if self.written >= LARGEST_FILE_BYTES:
            return False
        began, cpu_before = time.monotonic(), time.thread_time()
        threads = self._threads()
        line: dict[str, Any] = {
            "schema": 1,
            "pid": os.getpid(),
            "started_monotonic_s": began,
            "ended_monotonic_s": time.monotonic(),
            "threads": threads,
            "cpu_s": round(time.thread_time() - cpu_before, 6),
        }
        self._append(line)
        if self.written >= LARGEST_FILE_BYTES:
            self._append({"schema": 1, "pid": os.getpid(), "full": True})
            return False
        return True

    def _append(self, line: "dict[str, Any]") -> None:
        data = json.dumps(line, separators=(",", ":")).encode() + b"\n"
        path = os.path.join(self.folder, f"stacks-{os.getpid()}.jsonl")  # noqa: PTH118
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(fd, data)
        finally:
            os.close(fd)
        self.written += len(data)

    def _threads(self) -> "list[dict[str, Any]]":
        known = {thread.ident: thread for thread in threading.enumerate()}
        own = threading.get_ident()
        found = []
        for ident, frame in list(sys._current_frames().items())[:MOST_THREADS]:
            if ident == own:
                continue
            thread = known.get(ident)
            most = MOST_FRAMES if thread is threading.main_thread() else MOST_FRAMES_OF_OTHERS
            os_id = thread.native_id if thread else None
            found.append(
                {
                    "thread_id": ident,
                    "os_thread_id": os_id,
                    "thread_name": thread.name[:LONGEST_TEXT] if thread else None,
                    "active": _running(os_id),
                    "owns_gil": False,
                    "frames": self._frames(frame, most=most),
                }
            )
        return found

    def _frames(self, innermost: FrameType, *, most: int) -> "list[dict[str, Any]]":
        frames: list[dict[str, Any]] = []
        frame: FrameType | None = innermost
        while frame is not None and len(frames) < most:
            code = frame.f_code
            if code.co_name == trampoline.NAME:
                frame = frame.f_back
                continue
            frames.append(
                {
                    "function": getattr(code, "co_qualname", code.co_name),
                    "filename": code.co_filename,
                    "short_filename": _short(code.co_filename),
                    "line": frame.f_lineno or 0,
                    "locals": self._locals(frame) if code.co_name in self.functions else {},
                }
            )
            frame = frame.f_back
        return frames

    def _locals(self, frame: FrameType) -> "dict[str, Any]":
        """What may be kept of a function's locals.

        Up to Python 3.12 ``f_locals`` fills a dict that lives as long as the frame and would hold on to its tensors: it
        is emptied at once. Left alone: a frame under a tracer (there the dict is written back), and a function that
        calls locals() itself (there it is the function's own dict).
        """
        code = frame.f_code
        if frame.f_trace is not None or not code.co_flags & CO_OPTIMIZED or "locals" in code.co_names:
            return {}
        values = frame.f_locals
        kept: dict[str, Any] = {}
        for name in list(values):
            with contextlib.suppress(KeyError):
                value = values[name]
                # The exact types: a subclass would run code of the server's when compared or cut.
                if type(value) in (int, bool):
                    if -LARGEST_INTEGER < value < LARGEST_INTEGER:
                        kept[name] = value
                elif name in self.kept_locals and type(value) is str:
                    kept[name] = value[:LONGEST_TEXT]
                del value
        if sys.version_info < (3, 13) and isinstance(values, dict):
            values.clear()
        return kept


def _short(filename: str) -> str:
    """The path from the folder below ``sys.path``'s entry on: ``vllm/v1/engine/core.py``, as py-spy has it."""
    for folder in sys.path:
        if folder and filename.startswith(folder.rstrip("/") + "/"):
            return filename[len(folder.rstrip("/")) + 1 :]
    return filename


def _running(os_id: "int | None") -> bool:
    if os_id is None:
        return False
    try:
        with open(f"/proc/self/task/{os_id}/stat", "rb") as file:  # noqa: PTH123
            return file.read().rsplit(b")", 1)[1].split()[0] == b"R"
    except (OSError, IndexError):
        return False
