"""What of a pasted stack is kept: names and paths made harmless, of the locals integers and booleans. Pure.

Who dumped the stack chose every one of these texts, so secrets go, unseen characters become visible and all is cut
before anything is kept. The same names come again and again: what a name becomes is remembered.
"""

import re
from collections.abc import Iterable
from functools import lru_cache

from sparkdiag.evidence.dump import DumpFrame
from sparkdiag.evidence.stacks import LocalValue
from sparkdiag.harmless.excerpt import excerpt, one_line
from sparkdiag.harmless.names import is_telling

NAME_CHARACTERS = 200
PATH_CHARACTERS = 400
TITLE_CHARACTERS = 300
MOST_LOCALS = 64
"""Per frame."""
MOST_FRAMES = 400
"""Per thread; the innermost are kept."""
MOST_THREADS = 1000
"""Per process."""
MOST_PROCESSES = 2000

_INTEGER = re.compile(r"-?[0-9]{1,12}")
"""Sizes up to a terabyte fit; a card's number, an address or a key does not."""
_IDENTIFIER = re.compile(r"[^\W\d]\w{0,99}")
_PLAIN = re.compile(r"(?:[A-Za-z]{1,24}+(?![A-Za-z0-9])|[A-Za-z0-9]{1,11}+(?![A-Za-z0-9])|[_./<>-])++")
"""Words of code and nothing that could be a secret (those have 12 letters and digits in a row, or a sign between a name
and a value) or unseen: what nearly every name and path is. It spares them the costly look."""
_BOOLEANS = {"True": True, "False": False, "true": True, "false": False}


@lru_cache(maxsize=16384)
def kept_name(text: str) -> str:
    """A function's or thread's name; ``?`` where there is none."""
    text = text.strip()
    if len(text) <= NAME_CHARACTERS and _PLAIN.fullmatch(text) is not None:
        return text
    return excerpt(text, limit=NAME_CHARACTERS) or "?"


@lru_cache(maxsize=16384)
def kept_path(text: str) -> str | None:
    """A file's path as printed, with forward slashes."""
    path = text.strip()
    if "\\" in path:
        path = path.replace("\\", "/")
    if len(path) <= PATH_CHARACTERS and _PLAIN.fullmatch(path) is not None:
        return path
    return excerpt(path, limit=PATH_CHARACTERS) or None


def kept_title(text: str) -> str | None:
    """A process's title or command line."""
    return one_line(text, limit=TITLE_CHARACTERS) or None


def kept_line(text: str | None) -> int | None:
    """A line number; 0, which tools print for "not known", is none."""
    if text is None or not text.isascii() or not text.isdigit() or len(text) > 9:
        return None
    return int(text) or None


def kept_id(text: str | None) -> int | None:
    """A process's or thread's id, decimal or ``0x``-hexadecimal."""
    if text is None or len(text) > 20 or not text.isascii():
        return None
    try:
        value = int(text, 16) if text[:2] in ("0x", "0X") else int(text)
    except ValueError:
        return None
    return value if 0 <= value < 2**64 else None


def kept_locals(pairs: Iterable[tuple[str, str]]) -> dict[str, LocalValue]:
    """Of names and printed values the integers and booleans."""
    kept: dict[str, LocalValue] = {}
    for name, shown in pairs:
        if len(kept) >= MOST_LOCALS:
            break
        value: LocalValue = _BOOLEANS.get(shown)
        if value is None and _INTEGER.fullmatch(shown):
            value = int(shown)
        if value is not None and _IDENTIFIER.fullmatch(name) and not is_telling(name):
            kept[name] = value
    return kept


def kept_frame(
    function: str,
    *,
    path: str | None = None,
    line: int | None = None,
    native: bool = False,
    local_values: dict[str, LocalValue] | None = None,
) -> DumpFrame:
    """A frame of texts as pasted. Not validated again: its parts are typed right here, and there are thousands."""
    return DumpFrame.model_construct(
        function=kept_name(function),
        path=None if path is None else kept_path(path),
        line=line,
        native=native,
        locals=local_values or {},
    )
