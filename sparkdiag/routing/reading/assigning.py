"""Assignments to names, tuples of names, and attributes of what is not known."""

import ast

from sparkdiag.routing.reading.binding import named, settled
from sparkdiag.routing.reading.context import Context, Frame
from sparkdiag.routing.reading.expressions import evaluate
from sparkdiag.routing.reading.names import reassigned
from sparkdiag.routing.values.domain import AnyValue, Items, ModuleRef, Tensor, Unknown, fresh, symbol_of
from sparkdiag.routing.values.state import State


def assign(context: Context, frame: Frame, target: ast.expr, value: AnyValue, state: State) -> State:
    """``target = value``."""
    match target:
        case ast.Name():
            return assign_name(context, frame, target.id, value, state)
        case ast.Tuple() | ast.List():
            for part, one in zip(target.elts, _parts(value, target.elts), strict=True):
                inner = part.value if isinstance(part, ast.Starred) else part
                state = assign(context, frame, inner, one, state)
            return state
        case ast.Attribute():
            found = evaluate(context, frame, target.value, state)
            if len(found) != 1:
                if found:
                    context.puzzled(frame, target, "what it assigns to is not one thing on every way")
                return state
            receiver, after = found[0]
            if isinstance(receiver, ModuleRef):
                reassigned(context, frame, target, receiver, target.attr)
            return after.bind(f"{symbol_of(receiver)}.{target.attr}", value)
        case ast.Subscript():
            found = evaluate(context, frame, target, state)
            return found[0][1] if len(found) == 1 else state
        case _:
            return state


def assign_name(context: Context, frame: Frame, name: str, value: AnyValue, state: State) -> State:
    """``name = value``; a global's new value is not followed (see ``modules.ModuleSource.replaced``)."""
    if name in frame.globals:
        return state
    return state.bind(name, settled(context, frame, name, named(name, value, sign=" = "), set_here=True))


def _parts(value: AnyValue, targets: list[ast.expr]) -> list[AnyValue]:
    """What each target gets when ``value`` is unpacked; a starred one gets a tuple, which nobody can change."""
    stars = [number for number, one in enumerate(targets) if isinstance(one, ast.Starred)]
    if isinstance(value, Items) and len(stars) == 1 and len(value.items) >= len(targets) - 1:
        after = len(targets) - stars[0] - 1
        middle = Items(value.items[stars[0] : len(value.items) - after])
        return [*value.items[: stars[0]], middle, *(value.items[len(value.items) - after :] if after else ())]
    if stars:
        return [fresh("part", "unpacked with a star") for _ in targets]
    return [_part(value, number, len(targets)) for number in range(len(targets))]


def _part(value: AnyValue, number: int, length: int) -> AnyValue:
    """One element of what is unpacked."""
    if isinstance(value, Items) and len(value.items) == length:
        return value.items[number]
    if isinstance(value, Unknown):
        return Unknown(f"{symbol_of(value)}[{number}]", value.because, tensor=value.tensor)
    if isinstance(value, Tensor):
        return Tensor()
    return fresh("part", "what is unpacked is not known")
