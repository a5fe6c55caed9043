"""What a loop goes over, and what its later passes know: nothing of what an earlier pass assigned."""

import ast
from dataclasses import replace

from sparkdiag.routing.reading.context import Context, Frame
from sparkdiag.routing.reading.expressions import evaluate, evaluate_all
from sparkdiag.routing.reading.guards import guarded
from sparkdiag.routing.reading.names import first_name
from sparkdiag.routing.source.modules import assigned_names
from sparkdiag.routing.values.domain import (
    AnyValue,
    Items,
    Known,
    Some,
    Tensor,
    Unknown,
    fresh,
    may_hold_tensor,
    symbol_of,
)
from sparkdiag.routing.values.state import State

MOST_UNROLLED = 8


def widened(node: ast.For | ast.While | ast.AsyncFor, state: State) -> State:
    """``state`` with everything that the loop assigns unknown."""
    names: dict[str, AnyValue] = dict(state.names)
    for name in assigned_names(node):
        if name in names:
            value = names[name]
            names[name] = (
                Tensor()
                if isinstance(value, Tensor)
                else fresh(name, f"{name} changes in a loop", tensor=may_hold_tensor(value))
            )
    for name in [name for name in names if "." in name]:
        del names[name]  # attributes of objects: of other objects in the next pass
    return replace(state, names=names)


def iterated(
    context: Context, frame: Frame, node: ast.expr, state: State
) -> list[tuple[tuple[AnyValue, ...] | None, bool, State]]:
    """(the elements where they are few and known, whether there is at least one, the way)."""
    if isinstance(node, ast.Call) and first_name(node.func) == "range":
        counted: list[tuple[tuple[AnyValue, ...] | None, bool, State]] = []
        for values, after in evaluate_all(context, frame, node.args, state):
            numbers = [value.value for value in values if isinstance(value, Known) and isinstance(value.value, int)]
            known = range(*numbers) if len(numbers) == len(values) and 0 not in numbers[2:] else None
            few = known is not None and len(known) <= MOST_UNROLLED
            elements = tuple(Known(number) for number in known) if known is not None and few else None
            counted.append((elements, bool(known), after))
        return counted
    found: list[tuple[tuple[AnyValue, ...] | None, bool, State]] = []
    for value, after in evaluate(context, frame, node, state):
        if isinstance(value, Items) and len(value.items) <= MOST_UNROLLED:
            found.append((value.items, True, after))
        elif isinstance(value, Some | Items):
            found.append((None, True, after))
        else:
            for some, way in _may_be_empty(context, frame, node, value, after):
                found.append((None if some else (), some, way))
    return found


def _may_be_empty(
    context: Context, frame: Frame, node: ast.expr, value: AnyValue, state: State
) -> list[tuple[bool, State]]:
    return guarded(context, frame, node, Unknown(f"{symbol_of(value)} has an element", "", tensor=False), state)
