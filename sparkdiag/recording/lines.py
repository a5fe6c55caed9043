"""The lines of a stream, read one by one: bounded, and of a bad one nothing is lost but itself."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import from_json

from sparkdiag.recording.events import Stream
from sparkdiag.recording.record import check_schema, open_regular

LONGEST_LINE = 16 * 1024 * 1024
LARGEST_STREAM = 4 * 1024**3
"""What is beyond was not written by a run that anybody waits for."""
_BLOCK = 4 * 1024 * 1024


def read_stream(folder: Path, stream: Stream, problems: list[str], *, take: Callable[[bytes], object]) -> None:
    """Hands every line but the header to ``take``, which raises ``ValueError`` for one that cannot be read; what was
    wrong is added to ``problems``."""
    name = f"{stream}.jsonl"
    bad: list[int] = []
    last = 0
    try:
        for last, line in numbered_lines(folder / name, problems):
            if last == 1:
                if _is_headed(line, name, problems):
                    continue
                problems.append(f"{name} has no header line")
            try:
                take(line)
            except ValueError:  # pydantic's among them
                bad.append(last)
    except FileNotFoundError:
        problems.append(f"{name} is missing")
    except OSError as error:
        problems.append(f"{name} cannot be read: {error.strerror or error}")
    if bad == [last] and last > 1:
        problems.append(f"{name}: the last line is torn; it was left out")
    elif bad:
        problems.append(f"{name}: left out {len(bad)} of {last} lines that cannot be read (first: line {bad[0]})")


def _is_headed(line: bytes, name: str, problems: list[str]) -> bool:
    try:
        document = parsed(line)
    except ValueError:
        return False
    if not isinstance(document, dict) or "stream" not in document:
        return False
    check_schema(document.get("schema"), name, problems)
    return True


def numbered_lines(path: Path, problems: list[str]) -> Iterator[tuple[int, bytes]]:
    """Lines that hold anything, with their numbers. Raises ``OSError``."""
    with open_regular(path) as file:
        number, left = 0, LARGEST_STREAM
        while line := file.readline(LONGEST_LINE):
            number += 1
            left -= len(line)
            if left < 0:
                problems.append(f"{path.name} is larger than {LARGEST_STREAM} bytes: read up to line {number - 1}")
                return
            if not line.isspace():
                yield number, line


def line_count(path: Path) -> int:
    """How many lines ``path`` has, about; 0 for what is no plain file."""
    try:
        with open_regular(path) as file:
            count, left = 0, LARGEST_STREAM
            while left > 0 and (block := file.read(_BLOCK)):
                count += block.count(b"\n")
                left -= len(block)
            return count
    except OSError:
        return 0


def parsed(line: bytes) -> Any:
    """What the line holds. Raises ``ValueError`` for what is no JSON."""
    try:
        return from_json(line)
    except ValueError:
        pass  # the fast reader minds bytes that are no UTF-8, and lone surrogates: the slow one does not
    try:
        return json.loads(line.decode("utf-8", errors="replace"))
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def validated(line: bytes, adapter: TypeAdapter[Any]) -> Any:
    """The value that the line holds. Raises ``ValueError``, of which pydantic's error is one."""
    try:
        return adapter.validate_json(line)
    except ValueError:
        return adapter.validate_python(parsed(line))
