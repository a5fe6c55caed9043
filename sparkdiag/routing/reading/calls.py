"""Calls: functions of the repository are read in their turn; what lies outside is answered where it can be told."""

import ast
from collections.abc import Iterable
from dataclasses import replace

from sparkdiag.routing.reading import outside
from sparkdiag.routing.reading.binding import bound_parameters
from sparkdiag.routing.reading.bodies import declared
from sparkdiag.routing.reading.context import MOST_DEPTH, Condition, Context, Evaluated, Frame, first_line
from sparkdiag.routing.reading.events import (
    COMPUTING,
    is_compiled,
    is_outermost_kernel,
    is_support,
    note_kernel,
    runs_kernel,
)
from sparkdiag.routing.reading.expressions import attribute_of, evaluate, evaluate_all
from sparkdiag.routing.reading.names import first_name, look_up_in, reassigned
from sparkdiag.routing.reading.statements import run_body
from sparkdiag.routing.values import tensors
from sparkdiag.routing.values.domain import (
    AnyValue,
    External,
    Function,
    Items,
    Known,
    ModuleRef,
    PlatformRef,
    Span,
    Tensor,
    Unknown,
    fresh,
    joined,
    may_hold_tensor,
    symbol_of,
)
from sparkdiag.routing.values.platforms import asked
from sparkdiag.routing.values.state import RETURNED, State, Step, common, merged

TALK = ("logger.", "log.", "logging.", "warnings.")


def call(context: Context, frame: Frame, node: ast.Call, state: State) -> Evaluated:
    """What a call gives, on every way that it may go."""
    name = first_name(node.func)
    if name.startswith(TALK) or name == "print":
        return _passed_over(context, frame, node, state)
    if isinstance(node.func, ast.Subscript):
        return _launch(context, frame, node, state)
    if is_support(context, name):
        return _passed_over(context, frame, node, state)
    found: Evaluated = []
    for receiver, callee, before in _callees(context, frame, node.func, state):
        arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
        for values, after in evaluate_all(context, frame, arguments, before):
            plain = len(values) - len(node.keywords)
            keywords = _keywords(node, values[plain:])
            found += _dispatch(
                context,
                frame,
                node,
                after,
                receiver=receiver,
                callee=callee,
                arguments=values[:plain],
                keywords=keywords,
            )
    return found


def _passed_over(context: Context, frame: Frame, node: ast.Call, state: State) -> Evaluated:
    """What every route runs: not followed, not even to where it is defined; its arguments are."""
    tail = first_name(node.func).rpartition(".")[2]
    given = context.given.of(tail, entry=False)
    arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
    return [
        (given or fresh(tail, f"{tail} is not followed"), after)
        for _, after in evaluate_all(context, frame, arguments, state)
    ]


def _keywords(node: ast.Call, values: tuple[AnyValue, ...]) -> dict[str, AnyValue]:
    """Keyword arguments by name; ``**`` stands for those that are not known one by one."""
    found: dict[str, AnyValue] = {}
    for keyword, value in zip(node.keywords, values, strict=True):
        if keyword.arg is not None:
            found[keyword.arg] = value
        elif isinstance(value, Items) and value.kind == "keywords":
            pairs = [one.items for one in value.items if isinstance(one, Items)]
            found |= {str(name.value): one for name, one in pairs if isinstance(name, Known)}
        else:
            found["**"] = value
    return found


def _callees(
    context: Context, frame: Frame, node: ast.expr, state: State
) -> list[tuple[AnyValue | None, AnyValue, State]]:
    """(receiver, callee, way): the receiver of a method, None for a plain function."""
    if not isinstance(node, ast.Attribute):
        return [(None, callee, after) for callee, after in evaluate(context, frame, node, state)]
    found: list[tuple[AnyValue | None, AnyValue, State]] = []
    for receiver, after in evaluate(context, frame, node.value, state):
        plain = isinstance(receiver, ModuleRef | External)
        found.append((None if plain else receiver, attribute_of(context, frame, receiver, node.attr, after), after))
    return found


def _launch(context: Context, frame: Frame, node: ast.Call, state: State) -> Evaluated:
    """``kernel[grid](...)``: a Triton launch, by the name of the kernel; of a table of functions nothing is known."""
    base = node.func.value if isinstance(node.func, ast.Subscript) else node.func
    name = first_name(base) or first_line(base)
    arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
    found: Evaluated = []
    for kernel, before in evaluate(context, frame, base, state):
        for _, after in evaluate_all(context, frame, arguments, before):
            if isinstance(kernel, Function | External):
                runs_kernel(context, frame, node, name, after, external=isinstance(kernel, External))
            elif not context.quiet:
                context.puzzled(frame, node, f"what {name}[…] calls is not known")
            found.append((fresh("launch"), after))
    return found


def _dispatch(
    context: Context,
    frame: Frame,
    node: ast.Call,
    state: State,
    *,
    receiver: AnyValue | None,
    callee: AnyValue,
    arguments: tuple[AnyValue, ...],
    keywords: dict[str, AnyValue],
) -> Evaluated:
    name = first_name(node.func) or first_line(node.func)
    tail = name.rpartition(".")[2]
    given = context.given.of(tail, entry=False)
    if given is not None and not isinstance(callee, Known):
        return [(given, state)]
    if isinstance(receiver, PlatformRef):
        return [(asked(context.config, tail, arguments), state)]
    if isinstance(receiver, Tensor):
        if tail in COMPUTING:
            runs_kernel(context, frame, node, tail, state, external=False)
        return [(tensors.method(receiver, tail, arguments), state)]
    if isinstance(receiver, Items) and receiver.kind == "capability" and tail in ("to_int", "as_version_str"):
        return [(outside.capability_number(receiver) if tail == "to_int" else fresh("text", tensor=False), state)]
    if isinstance(callee, Unknown) and callee.symbol.startswith("current_platform.") and receiver is None:
        return [(asked(context.config, callee.symbol.partition(".")[2], arguments), state)]
    if isinstance(callee, External) and callee.name == "builtins.getattr":
        return [(_got(context, frame, arguments, state), state)]
    if isinstance(callee, Function):
        return _followed(context, frame, node, state, function=callee, arguments=arguments, keywords=keywords)
    if isinstance(callee, Unknown) and callee.slot:
        return _slot(context, frame, node, state, callee=callee, arguments=arguments, keywords=keywords)
    if isinstance(callee, External):
        return [(_external(context, frame, node, state, callee, arguments, keywords), state)]
    values = (*arguments, *keywords.values())
    _handed_on(context, frame, node, state, values)
    return [(_unknown(context, frame, node, callee, values), state)]


def _got(context: Context, frame: Frame, arguments: tuple[AnyValue, ...], state: State) -> AnyValue:
    """``getattr(value, "name"[, default])``."""
    name = arguments[1].value if len(arguments) > 1 and isinstance(arguments[1], Known) else None
    if not isinstance(name, str):
        return fresh("getattr", "which attribute is not known")
    found = attribute_of(context, frame, arguments[0], name, state)
    if len(arguments) > 2 and isinstance(found, Unknown):
        return fresh(name, f"whether {name} is there is not known")
    return found


def _slot(
    context: Context,
    frame: Frame,
    node: ast.Call,
    state: State,
    *,
    callee: Unknown,
    arguments: tuple[AnyValue, ...],
    keywords: dict[str, AnyValue],
) -> Evaluated:
    """A module-level variable that is filled at run time: with functions of the repository, or from outside."""
    module = context.program.module(callee.symbol.rpartition(".")[0]) or frame.module
    filled = [look_up_in(context, module, value) for value in module.fillings.get(callee.slot, ())]
    if callee.slot in module.functions:
        filled.append(Function(module.name, callee.slot, module.functions[callee.slot]))
    functions = [value for value in filled if isinstance(value, Function)]
    found: Evaluated = []
    going = state
    for function in functions:
        symbol = f"{callee.symbol} is {function.symbol}"
        text = f"{callee.slot} is {function.name}"
        context.conditions.setdefault(symbol, Condition(text, f"{frame.module.path}:{node.lineno}", False))
        way = going.assume(symbol, True)
        going = going.assume(symbol, False)
        found += _followed(context, frame, node, way, function=function, arguments=arguments, keywords=keywords)
    if len(functions) < len(filled) or not filled:
        runs_kernel(context, frame, node, callee.slot, going, external=True)
        found.append((Tensor(), going))
    return found


def _external(
    context: Context,
    frame: Frame,
    node: ast.Call,
    state: State,
    callee: External,
    arguments: tuple[AnyValue, ...],
    keywords: dict[str, AnyValue],
) -> AnyValue:
    _handed_on(context, frame, node, state, (*arguments, *keywords.values()))
    if callee.name == "builtins.setattr" and len(arguments) == 3 and isinstance(arguments[0], ModuleRef):
        reassigned(context, frame, node, arguments[0], getattr(arguments[1], "value", None))
    answer = outside.answered(context.given.insisted, callee.name, arguments, keywords)
    if answer is not None:
        return answer
    values = (*arguments, *keywords.values())
    if outside.is_kernel(callee.name, any(may_hold_tensor(value) for value in values)):
        runs_kernel(
            context,
            frame,
            node,
            callee.name,
            state,
            external=not callee.name.startswith("torch.") or callee.name.startswith("torch.ops."),
        )
        return Tensor()
    if callee.name.startswith("torch."):
        return outside.torch_value(callee.name, arguments, keywords)
    return fresh(callee.name, f"what {callee.name}() gives is not known", tensor=any(map(may_hold_tensor, values)))


def _unknown(
    context: Context, frame: Frame, node: ast.Call, callee: AnyValue, values: tuple[AnyValue, ...]
) -> AnyValue:
    name = first_name(node.func) or first_line(node.func)
    tail = name.rpartition(".")[2]
    if isinstance(callee, Unknown) and callee.because.startswith("class "):
        return fresh(tail, f"an object of {callee.because}")
    if isinstance(node.func, ast.Attribute) and outside.is_tensor_method(tail):
        return tensors.method(Tensor(), tail, values)
    if not context.quiet:
        why = callee.because or symbol_of(callee).partition("#")[0]
        context.puzzled(frame, node, f"what {name} calls is not known: {why}")
    return fresh(tail, f"what {name}() gives is not known")


def _followed(
    context: Context,
    frame: Frame,
    node: ast.Call,
    state: State,
    *,
    function: Function,
    arguments: tuple[AnyValue, ...],
    keywords: dict[str, AnyValue],
) -> Evaluated:
    """Read the body of a function with these arguments; its ways come back with the caller's names."""
    if outside.wraps_ops(function.module):
        runs_kernel(context, frame, node, f"ops.{function.name}", state, external=True)
        return [(Tensor(), state)]
    if is_compiled(function.node):
        runs_kernel(context, frame, node, function.name, state, external=False)
        return [(Tensor(), state)]
    if len(context.chain) >= MOST_DEPTH or any(function == other for other in context.chain):
        context.puzzled(frame, node, "a recursion" if function in context.chain else "calls nested too deeply")
        return [(fresh(function.name, "it is not followed so far"), state)]
    module = context.program.module(function.module)
    if module is None:
        return [(fresh(function.name, f"{function.module} cannot be read"), state)]
    inner = Frame(function.name, module, frame.depth + 1, enclosing=function.closure)
    context.chain.append(function)  # a default may call the very function whose default it is
    try:
        names = bound_parameters(context, inner, function, arguments, keywords)
    finally:
        context.chain.pop()
    step = Step("call", frame.depth, frame.function, frame.module.path, node.lineno, shown(node, arguments, keywords),
                about=function.symbol)  # fmt: skip
    trail = state.trail if context.quiet else (*state.trail, step)
    entered = State(names, state.assumed, trail, state.asserted)
    if declared(function.node)[2]:
        return _generator(context, inner, node, function, entered, state)
    context.chain.append(function)
    try:
        before = len(context.events)
        ways = run_body(context, inner, function, entered)
        found = _returned(context, function, ways, state)
        if is_outermost_kernel(context):
            note_kernel(context, inner, function, entered, since=before, one_end=len(found) == 1)
        return found
    finally:
        context.chain.pop()


def _generator(
    context: Context, frame: Frame, node: ast.AST, function: Function, entered: State, state: State
) -> Evaluated:
    """A generator's body runs when somebody iterates over it, if anybody does."""
    _perhaps_run(context, frame, node, function, entered, what="is iterated over")
    return [(fresh(function.name, f"what {function.name} yields is not known"), state)]


def _perhaps_run(
    context: Context, frame: Frame, node: ast.AST, function: Function, entered: State, *, what: str
) -> None:
    """Read a function that may be called, at some time, by somebody who is not read."""
    symbol = f"{function.symbol} {what}#{len(context.conditions)}"
    place = f"{frame.module.path}:{getattr(node, 'lineno', 0)}"
    context.conditions[symbol] = Condition(f"{function.name} {what}", place, False)
    raising, context.raising = context.raising, []
    context.chain.append(function)
    try:
        run_body(context, frame, function, entered.assume(symbol, True))
    finally:
        context.chain.pop()
        context.raising = raising


def _handed_on(context: Context, frame: Frame, node: ast.Call, state: State, values: Iterable[AnyValue]) -> None:
    """Functions that are arguments of what is not read may be called there."""
    for value in values:
        module = context.program.module(value.module) if isinstance(value, Function) else None
        if isinstance(value, Function) and module is not None and not context.quiet and value not in context.chain:
            inner = Frame(value.name, module, frame.depth + 1, enclosing=value.closure)
            names = bound_parameters(context, inner, value, (), {"**": fresh("arguments")})
            entered = State(names, state.assumed, state.trail, state.asserted)
            _perhaps_run(context, inner, node, value, entered, what="is called")


def _returned(context: Context, function: Function, ways: Evaluated, state: State) -> Evaluated:
    """Ways that give the same come back as one."""
    if any(isinstance(value, Known) and isinstance(value.value, bool) for value, _ in ways):
        context.returned.add(function.symbol)
    back = [
        replace(way, names={**state.names, RETURNED: _with_unset(value, way.trail[len(state.trail) :])})
        for value, way in ways
    ]
    if function.name in context.settings.kernels:
        return _from_kernel(context, function, merged(back), state)
    return [(one.names[RETURNED], replace(one, names=state.names)) for one in merged(back)]


def _with_unset(value: AnyValue, passed: tuple[Step, ...]) -> AnyValue:
    """A number says which flags were taken to be unset on the way to it."""
    unset = [step.because for step in passed if step.because.endswith(outside.NOT_SET)]
    if not unset or not isinstance(value, Known | Span):
        return value
    told = dict.fromkeys((*([value.because] if value.because else []), *unset))
    return replace(value, because=", ".join(told))


def _from_kernel(context: Context, function: Function, ways: list[State], state: State) -> Evaluated:
    """What goes on inside a kernel is its own business: outside only what it returns is asked about."""
    grouped: list[tuple[AnyValue, State]] = []
    for way in ways:
        value = way.names[RETURNED]
        place = next((n for n, (other, _) in enumerate(grouped) if joined(other, value) is not None), None)
        if place is None:
            grouped.append((value, way))
        else:
            one, other = grouped[place]
            grouped[place] = joined(one, value) or value, State({}, {}, common(other.trail, way.trail))
    if len(grouped) == 1:
        return [(grouped[0][0], replace(state, trail=grouped[0][1].trail))]
    found: Evaluated = []
    for value, way in grouped:
        symbol = f"{function.symbol} returns {symbol_of(value)}#{len(context.conditions)}"
        text = f"{function.name} returns {value.value if isinstance(value, Known) else 'something else'}"
        module = context.program.module(function.module)
        place_text = f"{module.path if module else function.module}:{function.node.lineno}"
        context.conditions[symbol] = Condition(text, place_text, False)
        found.append((value, replace(state, assumed={**state.assumed, symbol: True}, trail=way.trail)))
    return found


def shown(node: ast.Call, arguments: tuple[AnyValue, ...], keywords: dict[str, AnyValue]) -> str:
    """The call with those arguments that say something: constants that were written or known."""
    written = [f"{name}={value.value!r}" for name, value in keywords.items() if isinstance(value, Known)]
    plain = [repr(value.value) for value in arguments if isinstance(value, Known) and value.value is None]
    return f"{first_name(node.func) or first_line(node.func)}({', '.join([*plain, *written])})"
