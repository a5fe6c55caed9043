"""What ``py-spy dump --json --locals`` printed, as a sample. Pure, and wary: the text comes from another process.

The target chooses function names, file names, thread names and values, so all of them are stripped of control
characters and bounded, and of the locals only what may be kept leaves this module: a prompt or a key that happens to
be a local of some frame is dropped here, before anything is written.
"""

import json
import re
from collections.abc import Iterable
from typing import Any

from sparkdiag.evidence.stacks import Frame, LocalValue, StackSample, ThreadStack
from sparkdiag.harmless.excerpt import excerpt
from sparkdiag.harmless.names import is_telling

MOST_THREADS = 512
MOST_FRAMES = 400
"""Per thread; the innermost are kept."""
MOST_LOCALS = 64
"""Per frame, after those that may not be kept were dropped."""
RECORDED = "sparkdiag_recorded"
"""Name of the probe's own frames around a watched function: left out, the function's own frame stays."""
NAME_CHARACTERS = 200
PATH_CHARACTERS = 400
KEPT_TEXT_CHARACTERS = 200

MOST_DIGITS = 12
"""Of an integer: sizes up to a terabyte fit, a card's number, an address or a key does not."""

_INTEGER = re.compile(rf"-?[0-9]{{1,{MOST_DIGITS}}}")
_IDENTIFIER = re.compile(r"[^\W\d]\w{0,99}")
_BOOLEANS = {"True": True, "False": False}


class DumpFormatError(ValueError):
    """The text is no py-spy dump; the message says what is wrong with it, and quotes none of it."""


def parse_dump(
    text: str | bytes, *, pid: int, started_s: float, ended_s: float, kept_names: frozenset[str] = frozenset()
) -> StackSample:
    """The sample that ``text`` holds. Raises ``DumpFormatError``."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DumpFormatError("py-spy's output is not JSON") from error
    if not isinstance(document, list):
        raise DumpFormatError("py-spy's output is not a list of threads")
    threads = tuple(_thread(raw, kept_names) for raw in document[:MOST_THREADS] if isinstance(raw, dict))
    if not threads:
        raise DumpFormatError("py-spy saw no thread")
    return StackSample(pid=pid, started_s=started_s, ended_s=ended_s, threads=threads)


def kept_value(shown: str, *, by_name: bool) -> LocalValue:
    """The value behind py-spy's ``repr``: an integer or a boolean, text where ``by_name``; None: not to be kept."""
    if shown in _BOOLEANS:
        return _BOOLEANS[shown]
    if _INTEGER.fullmatch(shown):
        return int(shown)
    if by_name and len(shown) >= 2 and shown[0] == shown[-1] and shown[0] in "\"'":
        return kept_text(shown[1:-1])
    return None


def kept_text(text: str) -> str:
    """The text of a local that the scenario names, without secrets, made visible, cut."""
    return excerpt(text, limit=KEPT_TEXT_CHARACTERS)


def _thread(raw: dict[str, Any], kept_names: frozenset[str]) -> ThreadStack:
    frames = raw.get("frames")
    name = raw.get("thread_name")
    return ThreadStack(
        thread_id=_whole(raw.get("thread_id")),
        os_thread_id=_whole(raw.get("os_thread_id")),
        thread_name=excerpt(name, limit=NAME_CHARACTERS) if isinstance(name, str) else None,
        active=raw.get("active") is True,
        owns_gil=raw.get("owns_gil") is True,
        frames=tuple(
            _frame(frame, kept_names)
            for frame in (frames[:MOST_FRAMES] if isinstance(frames, list) else ())
            if isinstance(frame, dict) and frame.get("name") != RECORDED
        ),
    )


def _frame(raw: dict[str, Any], kept_names: frozenset[str]) -> Frame:
    short = raw.get("short_filename")
    variables = raw.get("locals")
    return Frame(
        function=_text(raw.get("name"), limit=NAME_CHARACTERS),
        filename=_text(raw.get("filename"), limit=PATH_CHARACTERS),
        short_filename=excerpt(short, limit=PATH_CHARACTERS) if isinstance(short, str) else None,
        line=_whole(raw.get("line")) or 0,
        locals=_locals(variables, kept_names) if isinstance(variables, list) else {},
    )


def _locals(variables: Iterable[Any], kept_names: frozenset[str]) -> dict[str, LocalValue]:
    kept: dict[str, LocalValue] = {}
    for variable in variables:
        if not isinstance(variable, dict):
            continue
        name, shown = variable.get("name"), variable.get("repr")
        if not isinstance(name, str) or not isinstance(shown, str) or not _IDENTIFIER.fullmatch(name):
            continue
        if is_telling(name):
            continue
        if len(kept) >= MOST_LOCALS and name not in kept_names:
            continue
        value = kept_value(shown, by_name=name in kept_names)
        if value is not None:
            kept[name] = value
    return kept


def _text(value: object, *, limit: int) -> str:
    return excerpt(value, limit=limit) if isinstance(value, str) and value else "?"


def _whole(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value < 2**63 else None
