"""Expressions: what they may hold, on every way that they may go. What a guard asks is noted where it is asked."""

import ast
from collections.abc import Callable
from typing import Any

from sparkdiag.routing.reading.closures import closure_of
from sparkdiag.routing.reading.comparing import both, one_comparison
from sparkdiag.routing.reading.context import Condition, Context, Evaluated, Frame, first_line
from sparkdiag.routing.reading.events import runs_kernel
from sparkdiag.routing.reading.guards import guarded
from sparkdiag.routing.reading.names import Missing, environment_flag, look_up, member
from sparkdiag.routing.values import tensors
from sparkdiag.routing.values.domain import (
    AnyValue,
    External,
    Function,
    Items,
    Known,
    ModuleRef,
    PlatformRef,
    Tensor,
    Unknown,
    fresh,
    is_none,
    symbol_of,
    truth_of,
)
from sparkdiag.routing.values.sizes import calculated, negated
from sparkdiag.routing.values.state import State

MOST_WAYS = 16
"""Ways of one expression that are followed."""


def evaluate(context: Context, frame: Frame, node: ast.expr, state: State) -> Evaluated:
    """Every value that ``node`` may have, each with the way on which it has it."""
    if not context.spend():
        context.puzzled(frame, node, "there is too much to follow")
        return [(fresh("too much"), state)]
    reader = _READERS.get(type(node))
    if reader is not None:
        return reader(context, frame, node, state)
    return _unread(context, frame, node, state)


def evaluate_all(
    context: Context, frame: Frame, nodes: list[ast.expr], state: State
) -> list[tuple[tuple[AnyValue, ...], State]]:
    """Several expressions one after another."""
    ways: list[tuple[tuple[AnyValue, ...], State]] = [((), state)]
    for node in nodes:
        inner = node.value if isinstance(node, ast.Starred) else node
        longer = []
        for values, before in ways[:MOST_WAYS]:
            for value, after in evaluate(context, frame, inner, before):
                spread = isinstance(node, ast.Starred) and isinstance(value, Items)
                longer.append(((*values, *(value.items if spread else (value,))), after))  # type: ignore[union-attr]
        ways = longer
    return ways


def truths(context: Context, frame: Frame, node: ast.expr, state: State) -> list[tuple[bool, State]]:
    """Ways on which a test is true and ways on which it is false; its parts are noted as guards, once."""
    match node:
        case ast.BoolOp():
            return _bool_truths(context, frame, node, state)
        case ast.UnaryOp(op=ast.Not()) if isinstance(node.operand, ast.BoolOp | ast.UnaryOp):
            return [(not truth, after) for truth, after in truths(context, frame, node.operand, state)]
        case _:
            found = []
            for value, after in evaluate(context, frame, node, state):
                found += guarded(context, frame, node, value, after)
            return found


def _bool_truths(context: Context, frame: Frame, node: ast.BoolOp, state: State) -> list[tuple[bool, State]]:
    stops = isinstance(node.op, ast.Or)
    done: list[tuple[bool, State]] = []
    going = [state]
    for operand in node.values:
        further = []
        for way in going:
            for truth, after in truths(context, frame, operand, way):
                if truth is stops:
                    done.append((stops, after))
                else:
                    further.append(after)
        going = further
    return [*done, *((not stops, way) for way in going)]


def _constant(_context: Context, _frame: Frame, node: ast.Constant, state: State) -> Evaluated:
    return [(Known(node.value), state)]


def _name(context: Context, frame: Frame, node: ast.Name, state: State) -> Evaluated:
    if node.id in frame.shared:
        symbol = f"{frame.module.name}.{frame.function}.{node.id}"
        return [(Unknown(f"{symbol}#{node.lineno}", f"an inner function assigns {node.id}"), state)]
    if node.id in state.names and node.id not in frame.globals:
        return [(state.names[node.id], state)]
    for name, value in frame.enclosing:
        if name == node.id:
            return [(value, state)]
    return [(look_up(context, frame.module, node.id), state)]


def _attribute(context: Context, frame: Frame, node: ast.Attribute, state: State) -> Evaluated:
    given = context.given.of_text(first_line(node))
    if given is not None:
        return [(given, state)]
    found = []
    for value, after in evaluate(context, frame, node.value, state):
        if isinstance(value, Unknown) and node.attr in frame.module.properties and not context.quiet:
            context.puzzled(frame, node, f"{node.attr} may be a property, whose function is not followed")
        found.append((attribute_of(context, frame, value, node.attr, after), after))
    return found


def attribute_of(context: Context, frame: Frame, value: AnyValue, name: str, state: State) -> AnyValue:
    """``value.name``."""
    given = context.given.of(name, entry=frame.entry)
    match value:
        case Tensor():
            return tensors.attribute(value, name) or fresh(f"tensor.{name}", f"the tensor's {name} is not known")
        case ModuleRef():
            return _member(context, value, name)
        case External():
            size = tensors.itemsize(value.name) if name == "itemsize" else None
            return size or External(f"{value.name}.{name}")
        case Items(kind="capability") if name in ("major", "minor"):
            return value.items[0 if name == "major" else 1]
        case PlatformRef():
            return Unknown(f"current_platform.{name}", f"what current_platform.{name} is is not known", tensor=False)
        case _:
            stored = state.names.get(f"{symbol_of(value)}.{name}")
            return stored or given or _unknown_attribute(value, name)


def _unknown_attribute(value: AnyValue, name: str) -> AnyValue:
    plain = name.startswith(("num_", "max_", "is_", "has_", "use_", "skip_", "requires_"))
    symbol = f"{symbol_of(value)}.{name}"
    return Unknown(symbol, f"{symbol.rsplit('#')[0]} is not known from the source", tensor=not plain)


def _member(context: Context, value: ModuleRef, name: str) -> AnyValue:
    if name in context.given.insisted:
        return context.given.insisted[name]
    if context.program.is_module(value.name):
        try:
            return member(context, value.name, name)
        except Missing as error:
            flag = None
            module = context.program.module(value.name)
            if module is not None:
                flag = environment_flag(context, module, name)
            return flag or Unknown(f"{value.name}.{name}", str(error), tensor=False)
    return ModuleRef(f"{value.name}.{name}")


def _subscript(context: Context, frame: Frame, node: ast.Subscript, state: State) -> Evaluated:
    found = []
    for value, middle in evaluate(context, frame, node.value, state):
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        ways: list[tuple[tuple[object, ...], State]] = [((), middle)]
        for part in parts:
            ways = [
                ((*before, index), after) for before, way in ways for index, after in _index(context, frame, part, way)
            ]
        found += [(_indexed(value, indices, node), after) for indices, after in ways]
    return found


def _index(context: Context, frame: Frame, part: ast.expr, state: State) -> list[tuple[object, State]]:
    if isinstance(part, ast.Slice):
        ends = [end if end is not None else ast.Constant(None) for end in (part.lower, part.upper, part.step)]
        found = []
        for values, after in evaluate_all(context, frame, ends, state):
            plain = [None if is_none(value) else value for value in values]
            found.append((slice(*plain), after))
        return list(found)
    if isinstance(part, ast.Constant) and part.value in (None, Ellipsis):
        return [(part.value, state)]
    return [(value, after) for value, after in evaluate(context, frame, part, state)]


def _indexed(value: AnyValue, indices: tuple[object, ...], node: ast.Subscript) -> AnyValue:
    if isinstance(value, Tensor):
        return tensors.sliced(value, indices)
    one = indices[0] if len(indices) == 1 else None
    if isinstance(value, Items):
        if isinstance(one, slice):
            return _part(value, one)
        return tensors.item(value, one) if one is not None else fresh("item")  # type: ignore[arg-type]
    if isinstance(value, External):
        return External(f"{value.name}[{first_line(node.slice)}]")
    if isinstance(value, Unknown) and isinstance(one, Known):
        return Unknown(f"{symbol_of(value)}[{one.value!r}]", value.because, tensor=value.tensor)
    return fresh("item", f"{first_line(node)} is not known from the source")


def _part(value: Items, part: slice) -> AnyValue:
    ends = [end.value if isinstance(end, Known) else end for end in (part.start, part.stop, part.step)]
    plain = [end for end in ends if end is None or isinstance(end, int)]
    if len(plain) == len(ends):
        start, stop, step = plain
        return Items(value.items[start:stop:step], value.kind)
    return fresh("part", "the slice's bounds are not known")


def _display(context: Context, frame: Frame, node: ast.Tuple | ast.List | ast.Set, state: State) -> Evaluated:
    kind = "tuple" if isinstance(node, ast.Tuple) else "display"
    return [(Items(values, kind), after) for values, after in evaluate_all(context, frame, node.elts, state)]  # type: ignore[arg-type]


def _compare(context: Context, frame: Frame, node: ast.Compare, state: State) -> Evaluated:
    """``a < b < c`` short-circuits like ``and``, with each operand evaluated once."""
    ways: list[tuple[AnyValue, AnyValue, State]] = []
    for left, after in evaluate(context, frame, node.left, state):
        ways.append((Known(True), left, after))
    for operator, right_node in zip(node.ops, node.comparators, strict=True):
        further: list[tuple[AnyValue, AnyValue, State]] = []
        for so_far, left, way in ways:
            if isinstance(so_far, Known) and not so_far.value:
                further.append((so_far, left, way))
                continue
            for right, after in evaluate(context, frame, right_node, way):
                answer = one_comparison(operator, left, right, given=context.given)
                if not (isinstance(so_far, Known) and so_far.value is True):
                    answer = answer if isinstance(answer, Known) and not answer.value else both(so_far, answer)
                further.append((answer, right, after))
        ways = further
    return [(answer, after) for answer, _, after in ways]


def _bool_op(context: Context, frame: Frame, node: ast.BoolOp, state: State) -> Evaluated:
    """As a value: the operand that decides. What is asked on the way are guards."""
    stops = isinstance(node.op, ast.Or)
    done: Evaluated = []
    going = [state]
    for number, operand in enumerate(node.values):
        last = number == len(node.values) - 1
        further = []
        for way in going:
            for value, middle in evaluate(context, frame, operand, way):
                if last:
                    done.append(_noted(context, frame, operand, value, middle))
                    continue
                for truth, after in guarded(context, frame, operand, value, middle):
                    if truth is stops:
                        done.append((_truthful(value, truth), after))
                    else:
                        further.append(after)
        going = further
    return done


def _noted(context: Context, frame: Frame, node: ast.expr, value: AnyValue, state: State) -> tuple[AnyValue, State]:
    """The last operand is no guard yet where it is unknown: who uses the value asks."""
    if isinstance(value, Known) and isinstance(value.value, bool):
        return value, guarded(context, frame, node, value, state)[0][1]
    return value, state


def _truthful(value: AnyValue, truth: bool) -> AnyValue:
    """An unknown truth value that is now known by assumption; any other value stays what it is."""
    if isinstance(value, Unknown) and not value.tensor:
        return Known(truth, value.because)
    return value


def _unary(context: Context, frame: Frame, node: ast.UnaryOp, state: State) -> Evaluated:
    if isinstance(node.op, ast.Not):
        if isinstance(node.operand, ast.BoolOp):
            return [(Known(not truth), after) for truth, after in truths(context, frame, node.operand, state)]
        return [(_not(value), after) for value, after in evaluate(context, frame, node.operand, state)]
    found: Evaluated = []
    for value, after in evaluate(context, frame, node.operand, state):
        if isinstance(value, Tensor):
            found.append((value, after))
        elif isinstance(node.op, ast.USub):
            found.append((calculated("Sub", Known(0), value), after))
        else:
            found.append((fresh("operator"), after))
    return found


def _not(value: AnyValue) -> AnyValue:
    truth = truth_of(value)
    return Known(not truth, value.because) if truth is not None else negated(value)


def _binary(context: Context, frame: Frame, node: ast.BinOp, state: State) -> Evaluated:
    found: Evaluated = []
    for (left, right), after in evaluate_all(context, frame, [node.left, node.right], state):
        if isinstance(node.op, ast.MatMult):
            runs_kernel(context, frame, node, "@", after, external=False)
            found.append((Tensor(), after))
        elif isinstance(left, Tensor) or isinstance(right, Tensor):
            found.append((_elementwise(left, right), after))
        else:
            found.append((calculated(type(node.op).__name__, left, right), after))
    return found


def _elementwise(left: AnyValue, right: AnyValue) -> Tensor:
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Tensor) and not isinstance(other, Tensor | Unknown):
            return Tensor(one.shape, None)
    return Tensor()


def _conditional(context: Context, frame: Frame, node: ast.IfExp, state: State) -> Evaluated:
    found: Evaluated = []
    for truth, after in truths(context, frame, node.test, state):
        because = after.trail[-1].because if len(after.trail) > len(state.trail) else ""
        for value, way in evaluate(context, frame, node.body if truth else node.orelse, after):
            plain = isinstance(value, Known) and not value.because
            found.append((Known(value.value, because) if isinstance(value, Known) and plain else value, way))
    return found


def _named(context: Context, frame: Frame, node: ast.NamedExpr, state: State) -> Evaluated:
    return [(value, after.bind(node.target.id, value)) for value, after in evaluate(context, frame, node.value, state)]


def _called(context: Context, frame: Frame, node: ast.Call, state: State) -> Evaluated:
    return context.call(context, frame, node, state)


def _lambda(context: Context, frame: Frame, node: ast.Lambda, state: State) -> Evaluated:
    closure = closure_of(context, frame, state)
    return [(Function(frame.module.name, f"{frame.function}.<lambda>", node, closure), state)]


def _text(context: Context, frame: Frame, node: ast.JoinedStr, state: State) -> Evaluated:
    inner = [part.value for part in node.values if isinstance(part, ast.FormattedValue)]
    ways = [after for _, after in evaluate_all(context, frame, inner, state)]
    return [(fresh("text", "a text made at run time", tensor=False), after) for after in ways]


def _unread(context: Context, frame: Frame, node: ast.expr, state: State) -> Evaluated:
    """Comprehensions, dicts, await and the like: their calls are followed, what they make is unknown."""
    inner = [one for one in ast.walk(node) if isinstance(one, ast.Call)]
    names = {
        name.id
        for one in ast.walk(node)
        if isinstance(one, ast.comprehension)
        for name in ast.walk(one.target)
        if isinstance(name, ast.Name)
    }
    way = state
    for name in names:
        way = way.bind(name, fresh(name))
    if inner and not context.quiet and any(_may_skip(one) for one in ast.walk(node)):
        symbol = f"{frame.module.path}:{node.lineno}:{node.col_offset} gets to its calls"
        text = f"{first_line(node, limit=80)} gets to its calls"
        context.conditions.setdefault(symbol, Condition(text, f"{frame.module.path}:{node.lineno}", False))
        way = way.assume(symbol, True)
    for one in inner:
        for _value, _after in evaluate(context, frame, one, way):
            pass
    return [(fresh(type(node).__name__.lower(), "made at run time"), state)]


def _may_skip(node: ast.AST) -> bool:
    """Whether what stands inside may not run at all: a condition, or a generator that nobody asks."""
    return isinstance(node, ast.GeneratorExp | ast.BoolOp | ast.IfExp) or bool(getattr(node, "ifs", ()))


_Reader = Callable[[Context, Frame, Any, State], Evaluated]
_READERS: dict[type[ast.expr], _Reader] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Subscript: _subscript,
    ast.Tuple: _display,
    ast.List: _display,
    ast.Set: _display,
    ast.Compare: _compare,
    ast.BoolOp: _bool_op,
    ast.UnaryOp: _unary,
    ast.BinOp: _binary,
    ast.IfExp: _conditional,
    ast.NamedExpr: _named,
    ast.Call: _called,
    ast.Lambda: _lambda,
    ast.JoinedStr: _text,
}
