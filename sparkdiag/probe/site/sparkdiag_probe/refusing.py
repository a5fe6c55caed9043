"""Which functions are better left alone, because a stand-in's frame would change what they do. By their code alone."""

import dis
import keyword
from collections.abc import Iterator
from types import CodeType, FunctionType

PREFIX = "_sparkdiag_"
"""With which the names of the stand-ins' own begin."""
GENERATES = 0x20 | 0x80 | 0x100 | 0x200
"""CO_GENERATOR, CO_COROUTINE, CO_ITERABLE_COROUTINE, CO_ASYNC_GENERATOR."""
LOOKS_AT_CALLER = frozenset(
    {"_getframe", "_getframemodulename", "currentframe", "getouterframes", "extract_stack", "format_stack"}
    | {"print_stack", "walk_stack", "findCaller"}
)
LOOKS_BY_MODULE = (("inspect", "stack"), ("warnings", "warn"))
"""``torch.stack`` is another matter."""
STACK_LEVEL = "stacklevel"
MOST_WRAPPED = 10
MOST_DEPTH = 8


def why_not(function: FunctionType) -> "str | None":
    """Why this function is not to be recorded; None where it may be."""
    code = function.__code__
    if code.co_flags & GENERATES:
        return "a generator or coroutine: a call of it does not run it"
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + 2]
    if any(name.startswith(PREFIX) for name in (*names, *code.co_freevars)):
        return "its names are like those of the probe"
    if any(_looks_at_caller(one) for one in _inside(code)):
        return "it looks at its caller's frame"
    for one in chain(function):
        if any(_calls_itself(part, one) for part in _inside(one.__code__)):
            return "it calls itself, and a stand-in's frames would reach the recursion limit earlier"
    return None


def nameless(parameters: "tuple[str, ...]") -> bool:
    """Whether a parameter has no name that source can have (``.0`` of a comprehension)."""
    return not all(name.isidentifier() and not keyword.iskeyword(name) for name in parameters)


def chain(function: FunctionType) -> "Iterator[FunctionType]":
    """The function and those it wraps, by ``functools.wraps``."""
    for _ in range(MOST_WRAPPED):
        yield function
        inner = function.__dict__.get("__wrapped__")
        if type(inner) is not FunctionType:
            return
        function = inner


def _inside(code: CodeType, depth: int = 0) -> "Iterator[CodeType]":
    """The code and that of its lambdas, comprehensions and inner functions."""
    yield code
    if depth < MOST_DEPTH:
        for constant in code.co_consts:
            if type(constant) is CodeType:
                yield from _inside(constant, depth + 1)


def _looks_at_caller(code: CodeType) -> bool:
    """By the names that it uses; the names of a call's keywords lie among its constants."""
    names = frozenset(code.co_names)
    return (
        bool(LOOKS_AT_CALLER & names)
        or any(module in names and function in names for module, function in LOOKS_BY_MODULE)
        or any(type(one) is tuple and STACK_LEVEL in one for one in code.co_consts)
    )


def _calls_itself(code: CodeType, function: FunctionType) -> bool:
    """By its global name, its name in the function around it, or as a method of its own first parameter.

    Not ``module.name(...)``: that is how a function hands on to another of the same name.
    """
    own = {function.__name__, function.__code__.co_name}
    if not own.intersection((*code.co_names, *code.co_freevars)):
        return False
    itself = function.__code__.co_varnames[0] if function.__code__.co_argcount else None
    before = None
    for step in dis.get_instructions(code):
        if step.argval in own:
            if step.opname in {"LOAD_GLOBAL", "LOAD_NAME"}:
                return True
            # A decorator's wrapper has the name of the function that it holds.
            if step.opname == "LOAD_DEREF" and step.argval == function.__code__.co_name:
                return True
            on_itself = before is not None and before.opname.startswith("LOAD_FAST") and before.argval == itself
            if step.opname in {"LOAD_ATTR", "LOAD_METHOD"} and itself is not None and on_itself:
                return True
        before = step
    return False
