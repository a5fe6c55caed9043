"""The run folder, written as the run goes on. An error of the disk never ends a run: it is remembered and shown."""

import errno
import json
import os
import re
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sparkdiag.errors import ExitCode, RunFolderError
from sparkdiag.evidence.base import SCHEMA, Value
from sparkdiag.evidence.client import PromptSent, ResponseEnd, TokenChunk
from sparkdiag.evidence.run import RunRecord
from sparkdiag.harmless.documents import redact_document
from sparkdiag.harmless.secrets import redact_text
from sparkdiag.recording.events import STREAMS, Stream, routed
from sparkdiag.recording.in_use import hold
from sparkdiag.recording.reserve import Reserve
from sparkdiag.recording.stack_lines import StackLines

RECORD = "run.json"
SERVER_LOG = "server.log"
POSTED = "posted.json"
"""Which comments the run was posted as (``posting.posted``); in a bisection's folder too."""
_MOST_NAMES = 1000
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


def folder_name(*, scenario_name: str, short_sha: str | None, dcp: int, now: datetime) -> str:
    """``20260526T081502Z-lab-1a2b3c4d-dcp2``: sorts by time, holds no character a shell or a URL minds."""
    when = now.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    scenario = re.sub(r"[^A-Za-z0-9.-]+", "-", scenario_name).strip("-.")[:40] or "scenario"
    sha = re.sub(r"[^A-Za-z0-9]+", "", short_sha or "")[:12] or "norev"
    return f"{when}-{scenario}-{sha}-dcp{dcp}"


class _StreamFile:
    """One JSON-lines file: opened at first need, one ``write`` a line, whole again after a torn write."""

    def __init__(self, path: Path, stream: Stream) -> None:
        self._path = path
        self._stream = stream
        self._fd: int | None = None
        self._torn = False
        self._headed = False

    def open(self) -> None:
        """Starts the file with its header line. Raises ``OSError``; the next call tries again."""
        if self._fd is None:
            self._fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            hold(self._fd)
        if not self._headed:
            self._line(self._fd, {"schema": SCHEMA, "stream": self._stream})
            self._headed = True

    def write(self, document: dict[str, Any]) -> None:
        """Raises ``OSError``; the next call tries again."""
        self.open()
        if self._fd is not None:
            self._line(self._fd, document)

    def _line(self, fd: int, document: dict[str, Any]) -> None:
        data = json.dumps(document, separators=(",", ":"), ensure_ascii=True).encode() + b"\n"
        if self._torn:
            data = b"\n" + data
        self._torn = True
        while data:
            data = data[os.write(fd, data) :]
        self._torn = False

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


class _Answer:
    """The answer's text, held back until its end: it comes token by token, and no token alone looks like the secret
    that an answer may repeat. The time of every token is written at once."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._last_s = 0.0

    def held_back(self, value: Value) -> tuple[Value, ...]:
        """What to write in place of ``value``."""
        match value:
            case TokenChunk(t_s=t_s, text=text):
                self._texts.append(text)
                self._last_s = t_s
                return (TokenChunk(t_s=t_s, text=""),)
            case ResponseEnd() if self._texts:
                whole = TokenChunk(t_s=self._last_s, text="".join(self._texts))
                self._texts.clear()
                return whole, value
            case PromptSent():
                self._texts.clear()
        return (value,)


class RunFolder:
    """One run on disk. ``append`` and ``write_record`` may be called from any thread and never raise ``OSError``.

    Room for the run's end is reserved from its beginning: with the record that says how it ended the room is given
    back, and a stream that the full disk had refused gets none of it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._streams: dict[Stream, _StreamFile] = {}
        self._failures: dict[str, tuple[str, int]] = {}
        self._closed = False
        self._full = False
        self._ending = False
        self._reserve: Reserve | None = None
        self._answer = _Answer()
        self._stack_lines = StackLines()

    @classmethod
    def create(
        cls,
        runs_dir: Path,
        *,
        scenario_name: str,
        short_sha: str | None,
        dcp: int,
        now: datetime,
    ) -> "RunFolder":
        """Makes the folder, unique even when two runs start in one second.

        Raises ``RunFolderError`` when it cannot be made or not be written to: better now than after the run.
        """
        name = folder_name(scenario_name=scenario_name, short_sha=short_sha, dcp=dcp, now=now)
        try:
            path = make_unique(runs_dir, name)
            folder = cls(path.resolve())
            for stream in STREAMS:
                folder._stream(stream).open()
        except OSError as error:
            raise _unwritable(runs_dir, error) from error
        folder._reserve = Reserve(folder.path)
        return folder

    @property
    def server_log(self) -> Path:
        """Where the server's output goes, each line through ``harmless.secrets.LineRedactor`` first."""
        return self.path / SERVER_LOG

    @property
    def problems(self) -> tuple[str, ...]:
        """What could not be written: the first error of each file, with how often it failed."""
        with self._lock:
            return tuple(text if count == 1 else f"{text} ({count} times)" for text, count in self._failures.values())

    def append(self, value: Value) -> None:
        """Adds one line to the stream ``value`` belongs to, redacted, handed to the system before it returns."""
        for one in self._answer.held_back(value):
            stream, written = routed(one)
            document = written.model_dump(mode="json", by_alias=True)
            if stream == "stacks":
                self._append_sample(redact_document(document))
            else:
                self.append_document(stream, document)

    def append_document(self, stream: Stream, document: dict[str, Any]) -> None:
        """Like ``append`` for a record that has no type here, such as the probe's (``dispatch``)."""
        clean = redact_document(document)
        self._guarded(f"{stream}.jsonl", lambda: self._stream(stream).write(clean))

    def _append_sample(self, sample: dict[str, Any]) -> None:
        def write() -> None:
            line = self._stack_lines.line(sample)
            try:
                self._stream("stacks").write(line)
            except BaseException:
                self._stack_lines.lost()
                raise

        self._guarded("stacks.jsonl", write)

    def write_record(self, record: RunRecord) -> None:
        """Replaces ``run.json`` at once: a reader sees the old one or the new one, never half of either."""
        document = redact_document(record.model_dump(mode="json", by_alias=True))
        text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
        if record.status != "running":
            self._release()
        self._guarded(RECORD, lambda: replace(self.path / RECORD, text))

    def write_report(self, name: str, text: str) -> Path:
        """Keeps a rendered report beside the evidence and returns its path (which may be missing: see ``problems``)."""
        path = self.path / name
        self._release()
        self._guarded(name, lambda: replace(path, redact_text(text)))
        return path

    def close(self) -> None:
        """Closes the streams. Safe to call twice; later appends are noted, not written."""
        with self._lock:
            self._closed = True
            for stream in self._streams.values():
                with suppress(OSError):
                    stream.close()
        self._release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _stream(self, stream: Stream) -> _StreamFile:
        if stream not in self._streams:
            self._streams[stream] = _StreamFile(self.path / f"{stream}.jsonl", stream)
        return self._streams[stream]

    def _release(self) -> None:
        with self._lock:
            self._ending = True
            if self._reserve is not None:
                self._reserve.release()

    def _guarded(self, name: str, write: Callable[[], object]) -> None:
        is_stream = name.endswith(".jsonl")
        with self._lock:
            try:
                if is_stream and self._closed:
                    raise OSError("the run folder was closed already")
                if is_stream and self._full and self._ending:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                write()
                if not is_stream:  # replaced as a whole: what failed before is lost no more
                    self._failures.pop(name, None)
            except (OSError, UnicodeError, ValueError) as error:
                self._full |= is_stream and isinstance(error, OSError) and error.errno in _NO_ROOM
                text, count = self._failures.get(name, (f"{name}: {error}", 0))
                self._failures[name] = (text, count + 1)


def make_unique(runs_dir: Path, name: str) -> Path:
    """A new folder, of a name like ``name``. Raises ``OSError``."""
    if not runs_dir.exists():
        runs_dir.mkdir(parents=True)
        # Runs often start inside a checkout; its status should not fill up with them.
        (runs_dir / ".gitignore").write_text("*\n", encoding="utf-8")
    for number in range(1, _MOST_NAMES):
        path = runs_dir / (name if number == 1 else f"{name}-{number}")
        with suppress(FileExistsError):
            path.mkdir(mode=0o755)
            return path
    raise FileExistsError(f"{runs_dir / name} and {_MOST_NAMES} like it exist")


def replace(path: Path, text: str) -> None:
    """Write ``path`` at once: a reader sees the old text or the new one. Raises ``OSError``."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode("utf-8", errors="backslashreplace"))
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(temporary).unlink()
        raise


def _unwritable(runs_dir: Path, error: OSError) -> RunFolderError:
    failure = RunFolderError(
        f"cannot make a run folder in {runs_dir}: {error.strerror or error}",
        remedy="name a folder you may write to: --out DIR",
    )
    failure.exit_code = ExitCode.ENVIRONMENT
    return failure
