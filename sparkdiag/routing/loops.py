"""What a loop's later passes know: nothing of what an earlier pass assigned. Pure."""

import ast
from dataclasses import replace

from sparkdiag.routing.modules import assigned_names
from sparkdiag.routing.state import State
from sparkdiag.routing.values import AnyValue, Tensor, fresh, may_hold_tensor


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
