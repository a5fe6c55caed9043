"""Patterns over single frames, compiled so that one frame is looked at once however many patterns there are.

A pattern is one string, written as in ``signatures.toml``:

=====================  ================================================================================================
``acquire_read``       the bare function name, whatever class or namespace it stands in
``_fp8_*_torch``       the same with ``*`` for anything
``gloo::``             a C++ scope: anything whose full name holds ``gloo::``
``gc.collect``         as people write it: anything whose full name ends in it (``torch.``: holds it)
``wait@torch/cuda``    that function in a file whose path holds these whole components, in this order; a path that the
                       paste shortened (``pynccl.py`` for ``device_communicators/pynccl.py``) is taken as the same file
``wait@?torch/cuda``   the same, and also where the paste shows no path at all
``@torch/_inductor``   any function in such a file
``$jit``               whatever the set ``jit`` of the file holds
``!from_torch``        not this one, whatever else matches
=====================  ================================================================================================

Line numbers are no part of any pattern: they change with every release.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase, translate
from functools import lru_cache
from itertools import chain

SEEN_FRAMES = 20_000
"""Distinct (function, path) pairs whose answer is kept; a large server's own code has a few thousand."""

LONGEST = 400
"""Characters of a function's name or a path that are looked at: C++ templates run to thousands and say it in front."""

_SYNTAX = re.compile(r"!?(?:\$[a-z][a-z0-9-]*|[\w<>*~:?.\[\]-]*(?:@\??[\w<>*./+-]+)?)\Z", re.ASCII)
_TEMPLATE = re.compile(r"[(<\[]")
_SUFFIX = re.compile(r"(?:@@?[A-Z][\w.]*|\.(?:constprop|isra|part|cold|localalias|llvm)\b.*|_ptsz|_ptds)\Z")
_LIBRARY = re.compile(r"(\.so|\.dylib|\.dll)\b.*\Z")
_LIBRARY_VERSION = re.compile(r"-[\d.]+(?=\.so\Z)")

_EDGE = 2
"""Characters at a name's edge by which patterns with ``*`` are found."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """One parsed pattern: one of ``name``, ``glob``, ``scope`` and ``of_set``, or none of them for any function."""

    text: str
    negative: bool = False
    of_set: str | None = None
    name: str | None = None
    glob: Callable[[str], object] | None = None
    scope: str | None = None
    path: tuple[str, ...] = ()
    path_may_lack: bool = False


def parse_pattern(text: str) -> Pattern:
    """Raises ``ValueError`` with one sentence where the text is no pattern."""
    if not _SYNTAX.match(text) or text in ("", "!", "*", "@"):
        raise ValueError(f"{text!r} is no pattern of functions and paths")
    negative, rest = text.startswith("!"), text.removeprefix("!")
    if rest.startswith("$"):
        return Pattern(text, negative=negative, of_set=rest[1:])
    function, _, path = rest.partition("@")
    may_lack, path = path.startswith("?"), path.removeprefix("?")
    parts = tuple(part for part in path.split("/") if part)
    if not function and not parts:
        raise ValueError(f"{text!r} names neither a function nor a path")
    if re.search(r"\.py:\d|:\d+\Z", rest):
        raise ValueError(f"{text!r} names a line; lines change with every release")
    if function.endswith("."):
        return Pattern(text, negative=negative, scope=function, path=parts, path_may_lack=may_lack)
    if "*" in function:
        glob = re.compile(translate(function)).match
        return Pattern(text, negative=negative, glob=glob, path=parts, path_may_lack=may_lack)
    if "::" in function or "." in function.strip("."):
        return Pattern(text, negative=negative, scope=function, path=parts, path_may_lack=may_lack)
    return Pattern(text, negative=negative, name=function or None, path=parts, path_may_lack=may_lack)


def bare_name(function: str) -> str:
    """``at::native::_local_scalar_dense_cuda(at::Tensor const&)`` -> ``_local_scalar_dense_cuda``;
    ``Worker.execute_model`` -> ``execute_model``; ``-[MTLCommandBuffer waitUntilCompleted]`` -> ``waitUntilCompleted``;
    ``<module>`` and ``<lambda>`` stay."""
    text = function[:LONGEST].strip()
    if text.startswith(("-[", "+[")):
        return text.rstrip("]").rsplit(" ", 1)[-1].partition(":")[0] or text
    if not text.startswith("<"):
        cut = _TEMPLATE.search(text, 1)
        text = text[: cut.start()] if cut else text
    text = _SUFFIX.sub("", text.strip())
    tail = text.rsplit("::", 1)[-1]
    if tail.startswith("<"):
        return tail
    return tail.rsplit(".", 1)[-1] or tail


def path_parts(path: str | None) -> tuple[str, ...]:
    """Whole components; ``/usr/lib/libcuda.so.550.54`` ends in ``libcuda.so``, ``libpthread-2.31.so`` in
    ``libpthread.so``, a library without its suffix (``libcuda``) too."""
    if not path:
        return ()
    parts = [part for part in path[-LONGEST:].replace("\\", "/").split("/") if part and part not in (".", "...")]
    if parts:
        last = _LIBRARY.sub(r"\1", parts[-1])
        last = _LIBRARY_VERSION.sub("", last)
        if last.startswith("lib") and "." not in last:
            last += ".so"
        parts[-1] = last
    return tuple(parts)


def _module_parts(function: str) -> tuple[tuple[str, ...], ...]:
    """Where a frame has no path, what its name tells of one: ``torch.cuda.synchronize`` stands in ``torch/cuda`` or in
    ``torch/cuda.py``; classes are no modules."""
    if "." not in function or "::" in function or len(function) > LONGEST:
        return ((),)
    modules = [part for part in function.partition("(")[0].split(".")[:-1] if part.isidentifier() and part.islower()]
    return (tuple(modules), (*modules[:-1], f"{modules[-1]}.py")) if modules else ((),)


def is_native(function: str, path: str | None, *, said: bool) -> bool:
    """Whether a frame is native: the tool said so, or its path is no Python file, or its name is C++ or an address."""
    if said:
        return True
    if path:
        return not (".py" in path[-6:] or path.startswith("<") or "<" in path[:1])
    return "::" in function or function.startswith(("0x", "??"))


def _holds(path: tuple[str, ...], wanted: tuple[str, ...], *, named: bool) -> bool:
    """Whether ``wanted`` stands in ``path``, or (with a function named too) ``path`` is the tail of ``wanted``."""
    width = len(wanted)
    for start in range(len(path) - width + 1):
        if all(_same(have, want) for have, want in zip(path[start : start + width], wanted, strict=True)):
            return True
    return named and bool(path) and len(path) < width and wanted[-len(path) :] == path and "." in path[-1]


def _same(have: str, want: str) -> bool:
    return fnmatchcase(have, want) if "*" in want else have == want


@dataclass(slots=True)
class _Set:
    index: int
    negative_atoms: int = 0
    positive_atoms: int = 0
    positive_sets: int = 0
    negative_sets: int = 0


@dataclass(slots=True)
class FrameIndex:
    """Every set of patterns, compiled: :meth:`sets_of` answers with one bit a set."""

    _by_name: dict[str, list[tuple[Pattern, int]]] = field(default_factory=dict)
    _by_tail: dict[str, list[tuple[Pattern, int]]] = field(default_factory=dict)
    _by_start: dict[str, list[tuple[Pattern, int]]] = field(default_factory=dict)
    _by_end: dict[str, list[tuple[Pattern, int]]] = field(default_factory=dict)
    """Names with ``*``, by the two characters that they begin or end with."""
    _scopes: list[tuple[Pattern, int]] = field(default_factory=list)
    _slow: list[tuple[Pattern, int]] = field(default_factory=list)
    _sets: list[_Set] = field(default_factory=list)
    _bits: dict[str, int] = field(default_factory=dict)
    look_up: Callable[[str, str | None, bool], tuple[int, bool]] = field(init=False)
    """``(function, path, native as the tool said) -> (bits of the sets it is in, is it native)``."""

    def __post_init__(self) -> None:
        self.look_up = lru_cache(maxsize=SEEN_FRAMES)(self._look_up)

    def bit(self, name: str) -> int:
        """The bit of the named set."""
        return self._bits[name]

    def _add(self, pattern: Pattern, bit: int) -> None:
        entry = (pattern, bit)
        literal = pattern.text.removeprefix("!").partition("@")[0]
        if pattern.name is not None:
            self._by_name.setdefault(pattern.name, []).append(entry)
        elif pattern.scope is not None:
            self._scopes.append(entry)
        elif pattern.glob is not None and "*" not in literal[:_EDGE] and len(literal) > _EDGE:
            self._by_start.setdefault(literal[:_EDGE], []).append(entry)
        elif pattern.glob is not None and "*" not in literal[-_EDGE:] and len(literal) > _EDGE:
            self._by_end.setdefault(literal[-_EDGE:], []).append(entry)
        elif pattern.glob is None and "*" not in pattern.path[-1]:
            self._by_tail.setdefault(pattern.path[-1], []).append(entry)
        else:
            self._slow.append(entry)

    def _look_up(self, function: str, path: str | None, said: bool) -> tuple[int, bool]:
        name, atoms = bare_name(function), 0
        for parts in (path_parts(path),) if path else _module_parts(function):
            atoms |= self._atoms_of(function, name, parts)
        return self._sets_of(atoms), is_native(function, path, said=said)

    def _atoms_of(self, function: str, name: str, parts: tuple[str, ...]) -> int:
        atoms = 0
        for pattern, bit in self._by_name.get(name, ()):
            if _path_fits(pattern, parts):
                atoms |= bit
        for part in set(parts):
            for pattern, bit in self._by_tail.get(part, ()):
                if _holds(parts, pattern.path, named=False):
                    atoms |= bit
        globs = (self._by_start.get(name[:_EDGE], ()), self._by_end.get(name[-_EDGE:], ()), self._slow)
        for pattern, bit in chain.from_iterable(globs):
            if (pattern.glob is None or pattern.glob(name)) and _path_fits(pattern, parts):
                atoms |= bit
        if "::" in function or "." in function:
            full = function[:LONGEST]
            for pattern, bit in self._scopes:
                if pattern.scope is not None and _in_scope(full, pattern.scope) and _path_fits(pattern, parts):
                    atoms |= bit
        return atoms

    def _sets_of(self, atoms: int) -> int:
        found = 0
        for each in self._sets:
            if (atoms & each.positive_atoms or found & each.positive_sets) and not (
                atoms & each.negative_atoms or found & each.negative_sets
            ):
                found |= 1 << each.index
        return found


def _in_scope(full: str, scope: str) -> bool:
    if "::" in scope:
        return scope in full
    dotted = f".{full}"
    return f".{scope}" in dotted if scope.endswith(".") else dotted.endswith(f".{scope}")


def _path_fits(pattern: Pattern, parts: tuple[str, ...]) -> bool:
    if not pattern.path:
        return True
    if not parts:
        return pattern.path_may_lack
    return _holds(parts, pattern.path, named=pattern.name is not None or pattern.glob is not None)


def compile_sets(sets: Mapping[str, Sequence[str]]) -> FrameIndex:
    """Named sets of patterns as one index. Raises ``ValueError``, one line a problem, for patterns that are none, sets
    that are not there, and sets that hold themselves."""
    problems: list[str] = []
    parsed = {name: tuple(_parsed(name, patterns, problems)) for name, patterns in sets.items()}
    order = _in_order(parsed, problems)
    if problems:
        raise ValueError("\n".join(problems))
    index = FrameIndex()
    atoms: dict[str, int] = {}
    for name in order:
        made = _Set(index=len(index._sets))
        for pattern in parsed[name]:
            _put(index, made, pattern, atoms)
        index._bits[name] = 1 << made.index
        index._sets.append(made)
    return index


def _put(index: FrameIndex, made: _Set, pattern: Pattern, atoms: dict[str, int]) -> None:
    if pattern.of_set is not None:
        bit = index._bits[pattern.of_set]
        made.negative_sets |= bit * pattern.negative
        made.positive_sets |= bit * (not pattern.negative)
        return
    text = pattern.text.removeprefix("!")
    if text not in atoms:
        atoms[text] = 1 << len(atoms)
        index._add(pattern, atoms[text])
    made.negative_atoms |= atoms[text] * pattern.negative
    made.positive_atoms |= atoms[text] * (not pattern.negative)


def _parsed(name: str, patterns: Iterable[str], problems: list[str]) -> Iterable[Pattern]:
    for text in patterns:
        try:
            yield parse_pattern(text)
        except ValueError as error:
            problems.append(f"{name}: {error}")


def _in_order(parsed: Mapping[str, tuple[Pattern, ...]], problems: list[str]) -> list[str]:
    """Sets after those that they hold."""
    order: list[str] = []
    open_now: list[str] = []

    def visit(name: str) -> None:
        if name in order:
            return
        if name in open_now:
            problems.append(f"{name}: holds itself")
            return
        open_now.append(name)
        for pattern in parsed[name]:
            if pattern.of_set is None:
                continue
            if pattern.of_set in parsed:
                visit(pattern.of_set)
            else:
                problems.append(f"{name}: there is no set {pattern.of_set!r}")
        open_now.pop()
        order.append(name)

    for name in parsed:
        visit(name)
    return order
