"""Reading ``run.json``, and the first line of a stream: bounded, never through a link or a pipe."""

import json
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import ValidationError

from sparkdiag.evidence.base import SCHEMA
from sparkdiag.evidence.run import RunRecord
from sparkdiag.recording.folder import RECORD

UNKNOWN_VERSION = "unknown"
LARGEST_RECORD = 32 * 1024 * 1024
LONGEST_HEADER = 4096


def open_regular(path: Path) -> BinaryIO:
    """``path`` for reading; raises ``OSError`` for whatever is no plain file: a pipe would never answer."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError("it is no plain file")
    return os.fdopen(fd, "rb")


def read_record(folder: Path, problems: list[str]) -> RunRecord:
    """``run.json``, and where fields of it do not fit, the rest of it; status ``unknown`` where there is none."""
    blank: dict[str, Any] = {
        "sparkdiag_version": UNKNOWN_VERSION,
        "started_at": "",
        "status": "unknown",
        "scenario": {},
        "command": (),
    }
    document, problem = record_document(folder)
    if document is None:
        problems.append(problem)
        return RunRecord.model_validate(blank)
    check_schema(document.get("schema"), RECORD, problems)
    while True:
        try:
            return RunRecord.model_validate(document)
        except ValidationError as error:
            wrong = {str(problem["loc"][0]) for problem in error.errors() if problem["loc"]}
            problems.append(f"{RECORD}: left out what does not fit: {', '.join(sorted(wrong))}")
            document = {key: value for key, value in document.items() if key not in wrong}
            document |= {key: blank[key] for key in wrong if key in blank}


def record_document(folder: Path) -> tuple[dict[str, Any] | None, str]:
    """The JSON object that ``run.json`` holds, or None and why there is none."""
    try:
        with open_regular(folder / RECORD) as file:
            content = file.read(LARGEST_RECORD + 1)
        if len(content) > LARGEST_RECORD:
            return None, f"{RECORD} cannot be read: it is larger than {LARGEST_RECORD} bytes"
        if not content.strip(b" \t\r\n\0"):
            return None, f"{RECORD} is empty"
        document = json.loads(content.decode("utf-8", errors="replace"))
    except FileNotFoundError:
        return None, f"{RECORD} is missing"
    except OSError as error:
        return None, f"{RECORD} cannot be read: {error.strerror or error}"
    except json.JSONDecodeError as error:
        return None, f"{RECORD} is not whole: no JSON from line {error.lineno} column {error.colno} on"
    except (ValueError, RecursionError) as error:
        return None, f"{RECORD} is not whole: {error}"
    return (document, "") if isinstance(document, dict) else (None, f"{RECORD} holds no JSON object")


def check_schema(schema: object, name: str, problems: list[str]) -> None:
    """Add a problem where ``schema`` is not the one this version writes."""
    if schema == SCHEMA:
        return
    if isinstance(schema, int) and not isinstance(schema, bool):
        age = "a newer" if schema > SCHEMA else "an older"
        problems.append(f"{name} was written by {age} sparkdiag (schema {schema}, this one reads {SCHEMA})")
    else:
        problems.append(f"{name} does not say which schema it has")


def header_lines(folder: Path, streams: Iterable[str]) -> dict[str, bytes]:
    """The first line of each stream that is a plain file and holds anything."""
    found: dict[str, bytes] = {}
    for stream in streams:
        path = folder / f"{stream}.jsonl"
        try:
            if path.is_symlink():
                continue
            with open_regular(path) as file:
                line = file.readline(LONGEST_HEADER)
        except OSError:
            continue
        if line:
            found[stream] = line
    return found


def is_header(line: bytes, stream: str) -> bool:
    """Whether ``line`` is what our writer begins ``stream`` with. Pure."""
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and document.get("stream") == stream and type(document.get("schema")) is int
