"""C and C++ functions as unwinders print them, reduced to the name that says where one is. Pure.

``void at::native::f<float>(at::Tensor const&)::{lambda()#1}::operator()() const [clone .isra.100]`` is in
``at::native::f``: argument lists, template arguments, return types, lambdas and the compiler's suffixes say little, and
with them neither a signature nor a person finds the function.
"""

import re
from functools import lru_cache

_LONGEST = 20_000
"""Longer symbols are cut before they are looked at; Eigen's and cutlass's reach some thousand characters."""
_VERSION = re.compile(r"@{1,2}[A-Z][\w.]*")
_SUFFIX = re.compile(r"(?:\.(?:constprop|isra|part|cold|lto_priv|localalias|llvm|clone|str|warm|hot)(?:\.\d+)*)+\Z")
_RUST_HASH = re.compile(r"::h[0-9a-f]{16}\Z")
"""At the end of every Rust symbol of the older mangling (tokenizers, py-spy)."""
_ANONYMOUS = "(anonymous namespace)"
_QUALIFIERS = (" const", " volatile", " &&", " &", " noexcept", " [inlined]", " (inlined)")


@lru_cache(maxsize=8192)
def bare_native(symbol: str) -> str:
    """The qualified name alone; ``?`` and names of other languages stay as they are."""
    name = symbol.strip()[:_LONGEST]
    if name.startswith("<") and name.endswith(">") and ">::" not in name:
        return name  # ``<module>``, ``<unknown function>``
    if "@" in name:
        name = _VERSION.sub("", name)
    if "(" in name or "<" in name or "[" in name:
        name = _without_brackets(name)
    name = _RUST_HASH.sub("", _SUFFIX.sub("", _without_qualifiers(name)).removeprefix("__GI_"))
    parts = name.split("::")
    while len(parts) > 1 and (parts[-1].startswith(("{lambda", "{closure", "{unnamed")) or parts[-1] == "operator()"):
        if parts[-1] == "operator()" and not parts[-2].startswith("{lambda"):
            break
        parts.pop()
    # A return type stands before the name; conversion operators have a blank of their own.
    name = "::".join(parts).removeprefix("::")
    if "operator" not in name:
        name = name.rsplit(" ", 1)[-1]
    return name.replace("\0", _ANONYMOUS) or symbol.strip()


def without_brackets(symbol: str) -> str:
    """``symbol`` without arguments, templates and what may follow them: a name with its return type, or words."""
    return _without_qualifiers(_without_brackets(symbol[:_LONGEST])).replace("\0", _ANONYMOUS.replace(" ", "_"))


def _without_qualifiers(name: str) -> str:
    before = ""
    while before != name:
        before = name
        name = name.strip()
        for qualifier in _QUALIFIERS:
            name = name.removesuffix(qualifier)
    return name


def _without_brackets(name: str) -> str:
    """Without balanced ``<...>``, ``(...)`` and ``[...]``; in one pass. An operator's own brackets stay."""
    name = name.replace(_ANONYMOUS, "\0").replace("operator()", "\1").replace("->", "\2")
    kept: list[str] = []
    depth = 0
    for char in name:
        if char in "<([":
            depth += 1
        elif char in ">)]":
            depth = max(depth - 1, 0)
        elif not depth:
            kept.append(char)
    return "".join(kept).replace("\1", "operator()").replace("\2", "->")
