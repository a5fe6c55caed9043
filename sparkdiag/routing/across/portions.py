"""Which parts of a file a route can depend on, so that a change elsewhere in the file needs no new reading. Pure.

A file is cut into its top-level statements. Those that bind a name which is asked for are relevant, with every word in
them (names, attributes, text) more names are asked for, and so on over all files: more than any reading looks up. Two
revisions whose relevant statements are the same have the same route, but for the line numbers.

Each statement is parsed by itself, once for its text. That all of them parse proves that the cuts are right: what
follows a complete statement cannot be part of it. vLLM's table of environment variables, thousands of lines that change
with every second commit, is cut into its entries in the same way.
"""

import ast
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import TypeVar

TABLE = "environment_variables"
ALWAYS = "__getattr__"
"""A module that has one answers for names that it does not bind."""
_MOST_MERGED = 200
_WORD = re.compile(r"[^\W\d]\w*")
_GLOBAL = re.compile(r"\bglobal\b([^\n;]*)")
_CUT = re.compile(r"^(?![\s#)\]}]|(?:else|elif|except|finally)\b)", re.MULTILINE)
_TABLE = re.compile(rf"{TABLE}\s*(?::[^=\n]*)?=\s*{{[^\S\n]*(?:#[^\n]*)?\n")
_TYPES = re.compile(r"if (?:typing\.)?TYPE_CHECKING:[^\S\n]*(?:#[^\n]*)?\n")
_ENTRY = re.compile(r"^    (?=[\"'])", re.MULTILINE)
_INNER = re.compile(r"^    (?![\s#)\]}]|(?:else|elif|except|finally)\b)", re.MULTILINE)
_CLOSING = re.compile(r"^}[^\S\n]*\n(?:\s*(?:#[^\n]*)?\n)*\Z", re.MULTILINE)


Found = TypeVar("Found")


@dataclass(frozen=True)
class Portion:
    """One statement, or one entry of the table."""

    digest: bytes
    binds: frozenset[str]
    """The names it may bind; more where that is not plain."""
    words: frozenset[str]


@dataclass(frozen=True)
class FilePortions:
    """A file's portions in order."""

    portions: tuple[Portion, ...]
    by_name: Mapping[str, tuple[int, ...]]
    """Places of the portions that bind a name."""


@dataclass(frozen=True)
class Reach:
    """What a reading may have looked up: in these files, by path; None for a file that is not there."""

    asked: frozenset[str]
    """Every name."""
    digests: Mapping[str, tuple[bytes, ...] | None]
    """Of each file the portions that bind one of them, in order."""

    def same_in(self, path: str, file: FilePortions) -> bool:
        """Whether another version of a file has the same portions for these names, so that nothing new is asked for."""
        return self.digests.get(path) == _found(file, self.asked)


def reach(files: Mapping[str, FilePortions | None], *, roots: Iterable[str]) -> Reach:
    """What ``roots``, and all that they lead to, may look up in these files."""
    waiting = [*roots, ALWAYS, "*"]
    asked = set(waiting)
    while waiting:
        name = waiting.pop()
        for file in files.values():
            for place in file.by_name.get(name, ()) if file is not None else ():
                new = file.portions[place].words - asked if file is not None else ()
                asked.update(new)
                waiting.extend(new)
    return Reach(
        frozenset(asked), {path: None if file is None else _found(file, asked) for path, file in files.items()}
    )


def _found(file: FilePortions, asked: AbstractSet[str]) -> tuple[bytes, ...]:
    places = {place for name, places in file.by_name.items() if name in asked for place in places}
    return tuple(file.portions[place].digest for place in sorted(places))


@lru_cache(maxsize=128)
def cut(text: str) -> FilePortions | None:
    """The portions of a Python file; None where it cannot be cut (a syntax error, first of all)."""
    portions: list[Portion] = []
    for one in _statements(text if text.endswith("\n") else text + "\n"):
        if one is None:
            return None
        portions += one
    by_name: dict[str, list[int]] = {}
    for place, portion in enumerate(portions):
        for name in portion.binds:
            by_name.setdefault(name, []).append(place)
    return FilePortions(tuple(portions), {name: tuple(places) for name, places in by_name.items()})


def _statements(text: str) -> Iterator[tuple[Portion, ...] | None]:
    return _complete(text, _CUT, _cut_finely)


def _complete(text: str, at: re.Pattern[str], read: Callable[[str], Found | None]) -> Iterator[Found | None]:
    """What ``read`` makes of the text between two cuts, or of as many of them as are complete; None at the end where
    something is left over, or stands in front of the first."""
    starts = [found.start() for found in at.finditer(text)]
    front = text[: starts[0]] if starts else text
    if any(not line.lstrip().startswith("#") for line in front.splitlines() if line.strip()):
        yield None
    held: list[str] = []
    for first, last in zip(starts, [*starts[1:], len(text)], strict=True):
        held.append(text[first:last])
        found = read("".join(held))
        if found is not None:
            yield found
            held = []
        elif len(held) > _MOST_MERGED:
            break
    if held:
        yield None


@lru_cache(maxsize=20_000)
def _cut_finely(text: str) -> tuple[Portion, ...] | None:
    """The portions of one statement; None where it is not complete, or wrong."""
    if (header := _TABLE.match(text)) and (closing := _CLOSING.search(text)):
        parts = _parts(text, header.end(), closing.start(), at=_ENTRY, around=("{\n", "'': 0}"))
    elif header := _TYPES.match(text):
        parts = _parts(text, header.end(), len(text), at=_INNER, around=("if 0:\n", "\n"))
    else:
        parts = None
    if parts is not None:
        return parts
    body = _parsed(text)
    return None if body is None else (_portion(text, body),)


def _parts(
    text: str, start: int, end: int, *, at: re.Pattern[str], around: tuple[str, str]
) -> tuple[Portion, ...] | None:
    header = text[:start]
    found = [Portion(_digest(header), words(header), words(header))]
    for part in _complete(text[start:end], at, lambda piece: _part(piece, around)):
        if part is None:
            return None
        found.append(part)
    return tuple(found)


@lru_cache(maxsize=20_000)
def _part(text: str, around: tuple[str, str]) -> Portion | None:
    body = _parsed(text.join(around))
    match body:
        case [ast.Expr(ast.Dict(keys=[ast.Constant(str(key)), _]))]:
            return Portion(_digest(text), frozenset({key}), words(text))
        case [ast.If(body=inner, orelse=[])]:
            return _portion(text, inner)
        case _:
            return None


def _parsed(text: str) -> list[ast.stmt] | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _portion(text: str, body: Sequence[ast.stmt]) -> Portion:
    binds = {word for found in _GLOBAL.finditer(text) for word in _WORD.findall(found[1])}
    for node in body:
        binds |= _bound_by(node, text)
    return Portion(_digest(text), frozenset(binds), words(text))


def _bound_by(node: ast.stmt, text: str) -> set[str]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return {node.name}
        case ast.Import() | ast.ImportFrom():
            return {word for alias in node.names for word in (alias.asname or alias.name, alias.name.split(".")[0])}
        case ast.Assign(targets=targets) if all(isinstance(target, ast.Name) for target in targets):
            return {target.id for target in targets if isinstance(target, ast.Name)}
        case ast.AnnAssign(target=ast.Name(id=name)) | ast.AugAssign(target=ast.Name(id=name)):
            return {name}
        case ast.Expr(value=ast.Constant()) | ast.Pass():
            return set()
        case _:
            return {*_WORD.findall(text), *("*" for _ in re.finditer(r"import\s*\(?\s*\*", text))}


def words(text: str) -> frozenset[str]:
    """Everything in ``text`` that could be a name."""
    return frozenset(_WORD.findall(text))


def _digest(text: str) -> bytes:
    return sha256(text.encode(errors="surrogatepass")).digest()[:16]
