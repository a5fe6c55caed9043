"""Which errors a handler takes, and whether more than what is raised by name may go wrong."""

import ast
import builtins

from sparkdiag.routing.reading.bodies import stored_names
from sparkdiag.routing.reading.context import Context, Frame, first_line
from sparkdiag.routing.reading.names import absolute, first_name


def catches(handler: ast.ExceptHandler, kind: str) -> bool | None:
    """Whether a handler takes an error of that class; None where one of the classes is not Python's own."""
    if handler.type is None:
        return True
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    answers: list[bool | None] = []
    for one in caught:
        name = first_name(one).rpartition(".")[2]
        own, other = getattr(builtins, name, None), getattr(builtins, kind.rpartition(".")[2], None)
        if isinstance(own, type) and isinstance(other, type):
            answers.append(issubclass(other, own))
        else:
            answers.append(True if name == kind.rpartition(".")[2] or name in ("Exception", "BaseException") else None)
    return True if True in answers else None if None in answers else False


def may_raise(context: Context, frame: Frame, body: list[ast.stmt]) -> bool:
    """Whether more than what is raised by name may go wrong there."""
    for node in body:
        if isinstance(node, ast.Assign) and context.given.has_object(first_line(node.value)):
            continue
        if isinstance(node, ast.Import):
            if not all(context.program.has_package(alias.name) for alias in node.names):
                return True
        elif isinstance(node, ast.ImportFrom):
            if not context.program.has_package(absolute(frame.module, node)):
                return True
        elif any(_is_unbound(context, frame, one) for one in ast.walk(node)) or any(
            isinstance(one, ast.Call | ast.Subscript | ast.Attribute | ast.BinOp) for one in ast.walk(node)
        ):
            return True
    return False


def _is_unbound(context: Context, frame: Frame, node: ast.AST) -> bool:
    """Whether to load a name raises: nothing binds it."""
    if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load) or hasattr(builtins, node.id):
        return False
    inside = stored_names(context.chain[-1].node) if context.chain else {}
    return node.id not in inside and node.id not in frame.module.bindings and node.id not in dict(frame.enclosing)
