"""The journal of a bisection: one JSON line a step, on disk before the next step begins.

The file is the only truth. ``kill -9`` at any moment loses at most the running trial; a torn last line is cut off.
"""

import json
import os
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter, ValidationError

from sparkdiag.errors import UsageError
from sparkdiag.evidence.base import SCHEMA, Value
from sparkdiag.evidence.bisection import Purpose, TrialResult


class Begun(Value):
    """The first line: everything that decides the answer, so that a resumed search is the same search."""

    event: Literal["begun"] = "begun"
    schema_version: int = Field(default=SCHEMA, alias="schema")
    at: str
    command: tuple[str, ...] = ()
    old_end: str
    new_end: str
    question: dict[str, object] = {}
    """Scenario after overrides, target, environment, history options: compared on resume."""


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


Step = Annotated[Begun | Started | Finished | Ended, Field(discriminator="event")]
_STEP: TypeAdapter[Begun | Started | Finished | Ended] = TypeAdapter(Step)


class Journal:
    """Appends, one writer at a time (the machine lock sees to that)."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, step: Begun | Started | Finished | Ended) -> None:
        """Flushed to the disk when this returns. Raises ``OSError``: a search that cannot keep its truth must stop."""
        line = json.dumps(step.model_dump(mode="json", by_alias=True), separators=(",", ":")) + "\n"
        fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            data = line.encode()
            while data:
                data = data[os.write(fd, data) :]
            os.fsync(fd)
        finally:
            os.close(fd)


def read_journal(path: Path) -> tuple[Begun | Started | Finished | Ended, ...]:
    """Every whole line. Raises ``UsageError`` for a file that is no journal, or is damaged before its last line."""
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise UsageError(f"cannot read the journal {path}: {error.strerror}", remedy="sparkdiag bisect") from error
    steps = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            steps.append(_STEP.validate_json(line))
        except ValidationError as error:
            if number == len(lines):
                break  # torn by a kill: the step it tells of is repeated
            raise UsageError(f"{path}, line {number}: not a step of a bisection", remedy="sparkdiag bisect") from error
    if not steps or not isinstance(steps[0], Begun):
        raise UsageError(f"{path} is no journal of a bisection", remedy="sparkdiag bisect")
    return tuple(steps)
