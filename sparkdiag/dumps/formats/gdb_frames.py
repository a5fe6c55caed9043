"""One frame as gdb prints it, without its number. Every step is linear in the length of the line. Pure."""

import re
from collections.abc import Iterator

from sparkdiag.dumps.kept import kept_frame, kept_line, kept_locals
from sparkdiag.dumps.native_names import bare_native, without_brackets
from sparkdiag.evidence.dump import DumpFrame

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{1,16}(?: in)? ")
_AT = re.compile(r"(?P<path>\S{1,400}):(?P<line>\d{1,9})")
_FRAME = re.compile(
    r"Frame 0x[0-9a-fA-F]{1,16}, for file (?P<path>[^,]{1,400}), line (?P<line>\d{1,9}), in (?P<function>\S{1,200})"
)
_PAIRS = re.compile(
    r"'(?:[^'\\]|\\.)*+'(?!\.\.\.)|\"(?:[^\"\\]|\\.)*+\"(?!\.\.\.)|(?P<cut>['\"])"
    r"|(?<![\w.])(?P<name>[A-Za-z_]\w{0,99})=(?P<value>-?\d{1,12}|True|False)(?=[,)\s]|\Z)"
)
_NAME = re.compile(r"[A-Za-z_?~<($@]")
_MOST_CHARACTERS = 20_000


def python_frame(rest: str) -> DumpFrame | None:
    """A Python frame in a native one's arguments, or alone as ``py-bt-full`` prints it, with its integers."""
    at = rest.find("Frame 0x")
    if at < 0 or ", for file " not in rest:
        return None
    match = _FRAME.match(rest, at)
    if match is None:
        return None
    values = kept_locals(value_pairs(rest[match.end() :]))
    return kept_frame(match["function"], path=match["path"], line=kept_line(match["line"]), local_values=values)


def value_pairs(text: str) -> Iterator[tuple[str, str]]:
    """``name=number`` pairs of a list of arguments; what stands in quotes is none. Ends at a text that was cut."""
    for match in _PAIRS.finditer(text[:_MOST_CHARACTERS]):
        if match["cut"]:
            return
        if match["name"]:
            yield match["name"], match["value"]


def native_frame(rest: str, *, sure: bool) -> DumpFrame | None:
    """``0x7f in f (args) at file.c:12``, ``f (args) from /lib/x.so``. With ``sure`` only what has arguments, an address
    or a place: ``#1 Something`` is also a heading."""
    text = rest.strip()
    address = _ADDRESS.match(text)
    if address is not None:
        text = text[address.end() :].strip()
    text, path, line = _place(text)
    symbol = _without_arguments(text)
    if not symbol or (sure and address is None and path is None and symbol == text):
        return None
    if address is None and line is None and not _is_name(symbol):
        return None
    if symbol.startswith("<signal handler"):
        symbol = "<signal handler called>"
    return kept_frame(bare_native(symbol), path=path, line=line, native=True)


def _place(text: str) -> tuple[str, str | None, int | None]:
    """The frame without its place, and the file and line, or the library."""
    before, found, after = text.rpartition(" at ")
    if found and (match := _AT.match(after)):
        return before.rstrip(), match["path"].removeprefix("target:"), kept_line(match["line"])
    before, found, after = text.rpartition(" from ")
    if found and after and not after.startswith(("(", "<")):
        return before.rstrip(), after.split(" ", 1)[0].removeprefix("target:"), None
    return text, None, None


def _without_arguments(text: str) -> str:
    """Without the last pair of parentheses, where gdb puts the arguments' values."""
    text = text.rstrip()
    if not text.endswith(")"):
        opened = text.find(" (")
        return text if opened < 0 or text.startswith("(anonymous") else text[:opened]
    opened = text.rfind("(")
    if opened > 0 and text.find(")", opened) == len(text) - 1:
        return text[:opened].rstrip() or text  # nearly always: none within
    depth = 0
    for at in range(len(text) - 1, -1, -1):
        if text[at] == ")":
            depth += 1
        elif text[at] == "(":
            depth -= 1
            if depth == 0:
                return text[:at].rstrip() or text
    return text


def _is_name(symbol: str) -> bool:
    """Whether these are not words: ``#4 fixes this (comment) from me`` is no frame."""
    return _NAME.match(symbol) is not None and " " not in without_brackets(symbol)
