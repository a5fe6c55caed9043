"""Assignments to names, tuples of names, and attributes of what is not known."""

import ast

from sparkdiag.routing.binding import settled
from sparkdiag.routing.context import Context, Frame
from sparkdiag.routing.expressions import evaluate
from sparkdiag.routing.state import State
from sparkdiag.routing.values import AnyValue, Items, Tensor, Unknown, fresh, symbol_of


def assign(context: Context, frame: Frame, target: ast.expr, value: AnyValue, state: State) -> State:
    """``target = value``."""
    match target:
        case ast.Name():
            return assign_name(context, frame, target.id, value, state)
        case ast.Tuple() | ast.List():
            for number, part in enumerate(target.elts):
                starred = any(isinstance(one, ast.Starred) for one in target.elts)
                state = assign(context, frame, part, _part(value, number, len(target.elts), starred), state)
            return state
        case ast.Starred():
            return assign(context, frame, target.value, fresh("rest"), state)
        case ast.Attribute():
            for receiver, after in evaluate(context, frame, target.value, state)[:1]:
                return after.bind(f"{symbol_of(receiver)}.{target.attr}", value)
            return state
        case ast.Subscript():
            found = evaluate(context, frame, target, state)
            return found[0][1] if len(found) == 1 else state
        case _:
            return state


def assign_name(context: Context, frame: Frame, name: str, value: AnyValue, state: State) -> State:
    """``name = value``; a global's new value is not followed (see ``modules.ModuleSource.replaced``)."""
    if name in frame.globals:
        return state
    return state.bind(name, settled(context, frame, name, value))


def _part(value: AnyValue, number: int, length: int, starred: bool) -> AnyValue:
    """One element of what is unpacked."""
    if starred:
        return fresh("part", "unpacked with a star")
    if isinstance(value, Items) and len(value.items) == length:
        return value.items[number]
    if isinstance(value, Unknown):
        return Unknown(f"{symbol_of(value)}[{number}]", value.because, tensor=value.tensor)
    if isinstance(value, Tensor):
        return Tensor()
    return fresh("part", "what is unpacked is not known")
