"""Where a kernel runs, and whose it is."""

import ast
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import lru_cache

from sparkdiag.routing.reading.context import Context, Event, Frame
from sparkdiag.routing.reading.names import first_name
from sparkdiag.routing.values.domain import Function
from sparkdiag.routing.values.state import State

COMPUTING = frozenset({
    "matmul", "mm", "bmm", "mv", "addmm", "baddbmm", "einsum", "topk", "sort", "argsort", "softmax", "log_softmax",
    "conv1d", "conv2d", "_scaled_mm", "scaled_dot_product_attention", "linear", "cumsum", "kthvalue", "tensordot",
})  # fmt: skip
"""Torch functions that are a kernel of their own; shape, allocation and pointwise ones are not counted."""


def is_support(context: Context, name: str) -> bool:
    """Whether the scenario says that every route runs it."""
    tail = name.rpartition(".")[2]
    return any(fnmatchcase(name, one) or fnmatchcase(tail, one) for one in context.settings.support)


def runs_kernel(context: Context, frame: Frame, node: ast.expr, name: str, state: State, *, external: bool) -> None:
    """Note that an op named ``name`` runs at ``node``. Its kernel is the outermost of the scenario's kernels that holds
    it, else the function that runs it, else, in the entry function or outside the repository, the op itself."""
    if context.quiet or is_support(context, name) or not context.chain:
        return
    if name.rpartition(".")[2] in context.settings.kernels:
        _note(context, frame, node, name.rpartition(".")[2], state, external=external)
        return
    for function in context.chain:
        if function.name in context.settings.kernels:
            module = context.program.module(function.module)
            path = module.path if module is not None else frame.module.path
            _add(context, Event(function.name, path, function.node.lineno, False, state, _chain(context)))
            return
    own = context.chain[-1]
    if external or len(context.chain) == 1:
        _note(context, frame, node, name, state, external=external)
    elif not is_support(context, own.name):
        _add(context, Event(own.name, frame.module.path, own.node.lineno, False, state, _chain(context)))


def is_compiled(function: ast.AST) -> bool:
    """Whether a function is handed to a compiler (``@triton.jit``, ``@numba.njit(...)``): an op of its own."""
    names = [first_name(getattr(one, "func", one)) for one in getattr(function, "decorator_list", ())]
    return any(name.rpartition(".")[2] in ("jit", "njit", "vectorize", "guvectorize") for name in names)


def is_outermost_kernel(context: Context) -> bool:
    """Whether the function at hand is one of the scenario's kernels, and called by none of them."""
    names = [function.name in context.settings.kernels for function in context.chain]
    return names[-1] and not any(names[:-1])


def note_kernel(context: Context, frame: Frame, function: Function, state: State, *, since: int, one_end: bool) -> None:
    """A kernel that returns but one thing was reached by being called, whatever it asked of its sizes inside; so was
    one whose op is nowhere in its body (another compiler's). ``since``: events before it was called."""
    if context.quiet:
        return
    own = [event for event in context.events[since:] if event.function == function.name]
    if not own and not _has_op(function.node, context.settings.kernels):
        _add(context, Event(function.name, frame.module.path, function.node.lineno, False, state, _chain(context)))
    elif own and one_end:
        first = own[0]
        context.events[since:] = [event for event in context.events[since:] if event not in own]
        trail = first.state.trail
        _add(context, replace(first, state=State(state.names, state.assumed, trail)))


@lru_cache(maxsize=2_000)
def _has_op(function: ast.AST, kernels: tuple[str, ...]) -> bool:
    """Whether an op stands in a function's own body, or a call of another kernel."""
    for node in ast.walk(function):
        if isinstance(node, ast.MatMult) or (isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript)):
            return True
        if isinstance(node, ast.Call):
            name = first_name(node.func)
            if name.startswith("torch.ops.") or name.rpartition(".")[2] in (*COMPUTING, *kernels):
                return True
    return False


def _note(context: Context, frame: Frame, node: ast.expr, name: str, state: State, *, external: bool) -> None:
    _add(context, Event(name, frame.module.path, node.lineno, external, state, _chain(context)))


def _chain(context: Context) -> tuple[str, ...]:
    return tuple(function.symbol for function in context.chain)


def _add(context: Context, event: Event) -> None:
    """Once for each kernel and set of assumptions: a loop runs it many times."""
    for other in context.events:
        if (other.function, other.path, other.state.assumed) == (event.function, event.path, event.state.assumed):
            return
    context.events.append(event)
