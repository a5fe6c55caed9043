"""The lines of a stream, read one by one: bounded, and of a bad one nothing is lost but itself."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import from_json

from sparkdiag.recording.events import Stream
from sparkdiag.recording.record import check_schema, open_regular

LONGEST_LINE = 16 * 1024 * 1024
LARGEST_STREAM = 4 * 1024**3
"""What is beyond was not written by a run that anybody waits for."""
_BLOCK = 1024 * 1024
_LONGEST_PATTERN = 64


def read_stream(
    folder: Path,
    stream: Stream,
    problems: list[str],
    *,
    take: Callable[[bytes], object],
    wanted: Callable[[list[bytes]], Iterable[int]] | None = None,
) -> None:
    """Hands every line but the header to ``take``, which raises ``ValueError`` for one that cannot be read; what was
    wrong is added to ``problems``. ``wanted``: which of so many lines to take, by their indices."""
    name = f"{stream}.jsonl"
    bad: list[int] = []
    last = 0
    try:
        for lines in _lists_of_lines(folder / name, problems):
            for index in range(len(lines)) if wanted is None else wanted(lines):
                line = lines[index]
                if index + last == 0:
                    if _is_headed(line, name, problems):
                        continue
                    problems.append(f"{name} has no header line")
                try:
                    take(line)
                except ValueError:  # pydantic's among them
                    if line and not line.isspace():
                        bad.append(last + index + 1)
            last += len(lines)
        if last == 0:
            problems.append(f"{name} is empty")
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


def _lists_of_lines(path: Path, problems: list[str]) -> Iterator[list[bytes]]:
    """Lines without their ends, many at a time: of most lines of a long run nothing is wanted, and each step costs. A
    longer one than any of ours comes in pieces. Raises ``OSError``."""
    carried = b""
    for block in _blocks(path, problems):
        lines = (carried + block).split(b"\n")
        carried = lines.pop()
        yield lines
        if len(carried) > LONGEST_LINE:
            yield [carried]
            carried = b""
    if carried:
        yield [carried]


def count_of(path: Path, patterns: Iterable[bytes]) -> Counter[bytes]:
    """How often each of ``patterns`` (none longer than ``_LONGEST_PATTERN``) is in the file; nothing of what is no
    plain file."""
    counts: Counter[bytes] = Counter()
    wanted, tail = tuple(patterns), b""
    try:
        for block in _blocks(path, []):
            for pattern in wanted:
                seam = tail[-len(pattern) + 1 :] + block[: len(pattern) - 1] if len(pattern) > 1 else b""
                counts[pattern] += block.count(pattern) + seam.count(pattern)
            tail = block[-_LONGEST_PATTERN:]
    except OSError:
        pass
    return counts


def _blocks(path: Path, problems: list[str]) -> Iterator[bytes]:
    with open_regular(path) as file:
        left = LARGEST_STREAM
        while block := file.read(_BLOCK):
            left -= len(block)
            if left < 0:
                problems.append(f"{path.name} is larger than {LARGEST_STREAM} bytes: the rest was not read")
                return
            yield block


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
