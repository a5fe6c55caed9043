"""The code that stands in for a watched function's own.

A function's ``__code__`` is swapped, not the function: every reference to it, whoever took it and when (a top-level
import, a table, a registered torch op), leads here. The stand-in has the same parameters, file and first line, so
that binding, defaults, ``inspect.signature`` and ``inspect.getsource`` stay right and vLLM's compile cache, which
hashes the files of traced code, sees no other file. Its name is its own: on a stack the watched name stands once, at
the original's frame.

It finds what it calls among the globals of the watched function, because dynamo can trace a global and no constant that
is an object. While torch traces, it is nothing but a call of the original.

What stays different: one frame more (``refusing.py`` leaves alone what would see it; not seen by it are functions that
call each other in turns, and a helper that looks at the caller of its caller); the arguments live until the call
returns, in the stand-in's own locals, so a function that drops one early to make room for its result frees nothing
before it returns; ``__code__.co_name``, by which profilers name a frame, is the stand-in's; and scanners of a module's
globals (doctest, ``inspect.getmembers``) find the original a second time, under a name with the prefix.
"""

import ast
from types import CodeType, FunctionType
from typing import Any

from . import refusing
from .refusing import PREFIX

NAME = "sparkdiag_recorded"
"""Name of the stand-in's frames."""
CO_VARARGS, CO_VARKEYWORDS = 0x04, 0x08

SOURCE = """
def outer({free}):
    def {name}({parameters}):
        if 0:
            ({free})
        if {prefix}compiling{number}():
            return {prefix}original{number}({passed})
        try:
            {prefix}call = {prefix}begin{number}(({values}))
        except {prefix}exception{number}:
            {prefix}call = None
        try:
            {prefix}result = {prefix}original{number}({passed})
        except:
            {prefix}raised{number}({prefix}call)
            raise
        {prefix}returned{number}({prefix}call, {prefix}result)
        return {prefix}result
"""


def why_not(function: FunctionType) -> "str | None":
    """Why this function cannot be recorded; None where it can."""
    if refusing.nameless(parameters(function.__code__)):
        return "its parameters have no names"
    return refusing.why_not(function)


def parameters(code: CodeType) -> "tuple[str, ...]":
    """Names of all parameters in the order of the values that ``begin`` gets: ``*args`` and ``**kwargs`` last."""
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + sum(stars(code))]


def stars(code: CodeType) -> "tuple[bool, bool]":
    """Whether it takes ``*args``, and ``**kwargs``."""
    return bool(code.co_flags & CO_VARARGS), bool(code.co_flags & CO_VARKEYWORDS)


def clone(function: FunctionType) -> FunctionType:
    """The original under the same names, with the same cells; the keyword defaults are one and the same dict."""
    made = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    made.__qualname__ = function.__qualname__
    made.__kwdefaults__ = function.__kwdefaults__
    made.__module__ = function.__module__
    return made


def stand_in(code: CodeType, number: int) -> CodeType:
    """Code with the parameters and free variables of ``code``. Raises ``ValueError`` where it would not fit."""
    tree = ast.parse(_source(code, number))
    for node in ast.walk(tree):
        if hasattr(node, "lineno"):
            where: Any = node
            where.lineno = where.end_lineno = max(1, code.co_firstlineno)
            where.col_offset = where.end_col_offset = 0
    found = _inner(_inner(compile(tree, code.co_filename, "exec", dont_inherit=True), "outer"), NAME)
    shape = ("co_argcount", "co_posonlyargcount", "co_kwonlyargcount", "co_freevars")
    if any(getattr(found, name) != getattr(code, name) for name in shape) or parameters(found) != parameters(code):
        raise ValueError("a stand-in of another shape")
    qualified: Any = {"co_qualname": NAME} if hasattr(found, "co_qualname") else {}
    return found.replace(co_firstlineno=code.co_firstlineno, **qualified)


def _source(code: CodeType, number: int) -> str:
    names = parameters(code)
    plain = code.co_argcount + code.co_kwonlyargcount
    positional, only, extra = names[: code.co_argcount], names[code.co_argcount : plain], list(names[plain:])
    star = [f"*{extra.pop(0)}"] if code.co_flags & CO_VARARGS else []
    rest = [f"**{name}" for name in extra]
    declared = [*positional[: code.co_posonlyargcount], *(["/"] if code.co_posonlyargcount else [])]
    declared += [*positional[code.co_posonlyargcount :], *(star or (["*"] if only else [])), *only, *rest]
    passed = [*positional, *star, *(f"{name}={name}" for name in only), *rest]
    return SOURCE.format(
        name=NAME,
        prefix=PREFIX,
        number=number,
        free=", ".join(code.co_freevars) or "",
        parameters=", ".join(declared),
        passed=", ".join(passed),
        values="".join(f"{name}, " for name in names),
    )


def _inner(code: CodeType, name: str) -> CodeType:
    for constant in code.co_consts:
        if isinstance(constant, CodeType) and constant.co_name == name:
            return constant
    raise ValueError("no stand-in")
