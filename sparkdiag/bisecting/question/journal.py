"""The journal of a bisection: one JSON line a step, on disk before the next step begins.

The file is the only truth. ``kill -9`` at any moment loses at most the running trial: a line counts once its newline is
there, and what a kill tore off is cut away before the next line is written.
"""

import json
import os
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter, ValidationError

from sparkdiag.errors import UsageError
from sparkdiag.evidence.base import SCHEMA, Value
from sparkdiag.evidence.bisection import Purpose, TrialResult
from sparkdiag.recording.bisection import sync_folder

MOST_BYTES = 256 * 1024 * 1024
"""A journal of 17,000 commits takes 6 MB; what is larger than this is no journal of ours."""
_BLOCK = 4096
_ANEW = "sparkdiag bisect begins a new one"


class Begun(Value):
    """The first line: everything that decides the answer, so that a resumed search is the same search."""

    event: Literal["begun"] = "begun"
    schema_version: int = Field(default=SCHEMA, alias="schema")
    at: str
    command: tuple[str, ...] = ()
    old_end: str
    new_end: str
    question: dict[str, object] = {}
    """The ``BisectRequest`` without its secrets: compared on resume."""
    redacted: bool = False
    """Something was taken out of ``question``: only who types the same options again can resume."""


class Started(Value):
    """A trial begins."""

    event: Literal["started"] = "started"
    at: str
    sha: str
    purpose: Purpose


class Finished(Value):
    """A trial ended, or a result was reused."""

    event: Literal["finished"] = "finished"
    at: str
    purpose: Purpose
    result: TrialResult


class Ended(Value):
    """The search is over."""

    event: Literal["ended"] = "ended"
    at: str
    outcome: str


Step = Begun | Started | Finished | Ended
_STEP: TypeAdapter[Step] = TypeAdapter(Annotated[Step, Field(discriminator="event")])
_EVENTS = frozenset({"begun", "started", "finished", "ended"})


class Journal:
    """Appends, one writer at a time (``BisectionFolder.writing`` sees to that)."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, step: Step) -> None:
        """On the disk when this returns. Raises ``OSError``, for a symbolic link too (its file is another's): a search
        that cannot keep its truth must stop."""
        line = json.dumps(step.model_dump(mode="json", by_alias=True), separators=(",", ":"), ensure_ascii=True) + "\n"
        is_new = not self.path.exists()
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        fd = os.open(self.path, flags, 0o644)
        try:
            _cut_torn_tail(fd)
            data = line.encode()
            while data:
                data = data[os.write(fd, data) :]
            os.fsync(fd)
        finally:
            os.close(fd)
        if is_new:
            sync_folder(self.path.parent)


def _cut_torn_tail(fd: int) -> None:
    """Cut off what follows the last newline: a line glued to it would be lost with it."""
    size = end = os.fstat(fd).st_size
    while end:
        begin = max(0, end - _BLOCK)
        newline = os.pread(fd, end - begin, begin).rfind(b"\n")
        if newline >= 0:
            end = begin + newline + 1
            break
        end = begin
    if end < size:
        os.ftruncate(fd, end)


def read_journal(path: Path) -> tuple[Step, ...]:
    """Every whole line; none of a journal that holds no whole line yet.

    Steps that only a newer sparkdiag knows are passed over. Raises ``UsageError`` for a file that is no journal, is
    damaged, or asks a question in a newer format: a search that misread its own past would answer wrongly.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise UsageError(f"cannot read the journal {path}: {error.strerror or error}", remedy=_ANEW) from error
    if len(content) > MOST_BYTES:
        raise UsageError(f"{path} is larger than any journal of a bisection", remedy=_ANEW)
    whole, _, _torn = content.rpartition(b"\n")
    found = (
        _step(line, f"{path}, line {number}") for number, line in enumerate(whole.split(b"\n"), start=1) if line.strip()
    )
    steps = tuple(step for step in found if step is not None)
    if steps and not isinstance(steps[0], Begun):
        raise UsageError(f"{path} is no journal of a bisection", remedy=_ANEW)
    return steps


def _step(line: bytes, where: str) -> Step | None:
    """The step of one line; None for an event of a newer sparkdiag."""
    try:
        document = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{where}: not a step of a bisection", remedy=_ANEW) from error
    if not isinstance(document, dict) or not isinstance(document.get("event"), str):
        raise UsageError(f"{where}: not a step of a bisection", remedy=_ANEW)
    if document["event"] not in _EVENTS:
        return None
    schema = document.get("schema", SCHEMA)
    if isinstance(schema, int) and schema > SCHEMA:
        newer = f"{where}: written by a newer sparkdiag (schema {schema}, this one reads {SCHEMA})"
        raise UsageError(newer, remedy="resume it with that sparkdiag")
    try:
        return _STEP.validate_python(document)
    except ValidationError as error:
        wrong = ", ".join(sorted({".".join(map(str, problem["loc"][1:])) for problem in error.errors()}))
        raise UsageError(f"{where}: a step that does not fit: {wrong}", remedy=_ANEW) from error
