"""Statements: every way through a function's body, joined again where nothing that a guard may ask for differs."""

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

from sparkdiag.routing.reading.assigning import assign, assign_name
from sparkdiag.routing.reading.bodies import decides, declared
from sparkdiag.routing.reading.closures import closure_of
from sparkdiag.routing.reading.context import Context, Evaluated, Frame, Raised, first_line
from sparkdiag.routing.reading.expressions import evaluate, truths
from sparkdiag.routing.reading.guards import guarded
from sparkdiag.routing.reading.handlers import catches, may_raise
from sparkdiag.routing.reading.loops import iterated, widened
from sparkdiag.routing.reading.matching import SUBJECT, matching_test
from sparkdiag.routing.reading.names import Missing, decorators, first_name, imported
from sparkdiag.routing.source.modules import assigned_names
from sparkdiag.routing.values.domain import NONE, AnyValue, Function, Known, Unknown, fresh
from sparkdiag.routing.values.state import State, merged

Kind = Literal["next", "return", "raise", "break", "continue"]


@dataclass(frozen=True, slots=True)
class Flow:
    """How one way leaves a statement or a block."""

    kind: Kind
    state: State
    value: AnyValue = NONE
    raised: Raised | None = None


def run_body(context: Context, frame: Frame, function: Function, state: State) -> Evaluated:
    """The values that a function returns, each with its way. Errors that leave it are noted in ``context.raising``."""
    if isinstance(function.node, ast.Lambda):
        return evaluate(context, frame, function.node.body, state)
    names, shared, _ = declared(function.node)
    own = replace(frame, globals=names, shared=shared)
    returned: Evaluated = []
    for flow in run(context, own, function.node.body, [state]):
        match flow.kind:
            case "return":
                returned.append((flow.value, flow.state))
            case "raise" if flow.raised is not None:
                context.raising.append(flow.raised)
            case _:
                returned.append((Known(None), flow.state))
    return returned


def run(context: Context, frame: Frame, body: Iterable[ast.stmt], states: list[State]) -> list[Flow]:
    """Every way through a block, from every way into it."""
    done: list[Flow] = []
    going = states
    for node in body:
        if not going:
            break
        flows = [flow for state in going for flow in _run_one(context, frame, node, state)]
        done += [flow for flow in flows if flow.kind != "next"]
        going = merged([flow.state for flow in flows if flow.kind == "next"])
    return [*_joined(done), *(Flow("next", state) for state in going)]


def _joined(flows: list[Flow]) -> list[Flow]:
    """Breaks and continues of the same kind as one where their ways join."""
    kept = [flow for flow in flows if flow.kind in ("return", "raise")]
    for kind in ("break", "continue"):
        states = [flow.state for flow in flows if flow.kind == kind]
        kept += [Flow(kind, state) for state in merged(states)]
    return kept


def _run_one(context: Context, frame: Frame, node: ast.stmt, state: State) -> list[Flow]:
    if not context.spend():
        context.puzzled(frame, node, "there is too much to follow")
        return [Flow("next", state)]
    outer_raising, outer_deciding = context.raising, context.deciding
    context.raising, context.deciding = [], decides(node)
    try:
        runner = _RUNNERS.get(type(node))
        flows = runner(context, frame, node, state) if runner else [Flow("next", state)]
        return [*flows, *(Flow("raise", raised.state, raised=raised) for raised in context.raising)]
    finally:
        context.raising, context.deciding = outer_raising, outer_deciding


def _expression(context: Context, frame: Frame, node: ast.Expr, state: State) -> list[Flow]:
    return [Flow("next", after) for _, after in evaluate(context, frame, node.value, state)]


def _return(context: Context, frame: Frame, node: ast.Return, state: State) -> list[Flow]:
    if node.value is None:
        return [Flow("return", state)]
    return [Flow("return", after, value) for value, after in evaluate(context, frame, node.value, state)]


def _assign(context: Context, frame: Frame, node: ast.Assign, state: State) -> list[Flow]:
    flows = []
    for value, way in evaluate(context, frame, node.value, state):
        after = way
        for target in node.targets:
            after = assign(context, frame, target, value, after)
        flows.append(Flow("next", after))
    return flows


def _annotated(context: Context, frame: Frame, node: ast.AnnAssign, state: State) -> list[Flow]:
    if node.value is None:
        return [Flow("next", state)]
    return [
        Flow("next", assign(context, frame, node.target, value, after))
        for value, after in evaluate(context, frame, node.value, state)
    ]


def _augmented(context: Context, frame: Frame, node: ast.AugAssign, state: State) -> list[Flow]:
    read = ast.copy_location(ast.BinOp(_read(node.target), node.op, node.value), node)
    return [
        Flow("next", assign(context, frame, node.target, value, after))
        for value, after in evaluate(context, frame, read, state)
    ]


def _read(target: ast.expr) -> ast.expr:
    if isinstance(target, ast.Name):
        return ast.copy_location(ast.Name(target.id, ast.Load()), target)
    return target


def _if(context: Context, frame: Frame, node: ast.If, state: State) -> list[Flow]:
    flows: list[Flow] = []
    ways = truths(context, frame, node.test, state)
    for truth, body in ((True, node.body), (False, node.orelse)):
        taken = merged([after for found, after in ways if found is truth])
        if taken:
            flows += run(context, frame, body, taken)
    return flows


def _while(context: Context, frame: Frame, node: ast.While, state: State) -> list[Flow]:
    flows: list[Flow] = []
    left: list[State] = []
    going = [state]
    for turn in range(3):
        further: list[State] = []
        for way in going:
            for truth, after in truths(context, frame, node.test, way):
                if not truth:
                    left.append(after)
                    continue
                for flow in run(context, frame, node.body, [after]):
                    if flow.kind in ("next", "continue"):
                        further.append(flow.state)
                    elif flow.kind == "break":
                        flows.append(Flow("next", flow.state))
                    else:
                        flows.append(flow)
        going = [widened(node, way) for way in merged(further)] if turn < 1 else merged(further)
        if not going:
            break
    return [*flows, *run(context, frame, node.orelse, merged(left))] if left else flows


def _for(context: Context, frame: Frame, node: ast.For, state: State) -> list[Flow]:
    flows: list[Flow] = []
    for elements, some, before in iterated(context, frame, node.iter, state):
        if elements is not None:
            flows += _unrolled(context, frame, node, elements, before)
        else:
            flows += _looped(context, frame, node, before, some=some)
    return flows


def _unrolled(
    context: Context, frame: Frame, node: ast.For, elements: tuple[AnyValue, ...], state: State
) -> list[Flow]:
    flows: list[Flow] = []
    going = [state]
    for element in elements:
        turn = [
            flow
            for way in going
            for flow in run(context, frame, node.body, [assign(context, frame, node.target, element, way)])
        ]
        flows += [_after_loop(flow) for flow in turn if flow.kind not in ("next", "continue")]
        going = merged([flow.state for flow in turn if flow.kind in ("next", "continue")])
    return [*flows, *run(context, frame, node.orelse, going)] if going else flows


def _after_loop(flow: Flow) -> Flow:
    return Flow("next", flow.state) if flow.kind == "break" else flow


def _looped(context: Context, frame: Frame, node: ast.For, state: State, *, some: bool) -> list[Flow]:
    """Once as it comes, and once more with what the first pass changed unknown: that stands for all later passes."""
    flows: list[Flow] = []
    ended = [] if some else [state]
    going = [state]
    for turn in range(2):
        further: list[State] = []
        for way in going:
            element = fresh(first_line(node.target), f"an element of {first_line(node.iter)}")
            for flow in run(context, frame, node.body, [assign(context, frame, node.target, element, way)]):
                if flow.kind in ("next", "continue"):
                    further.append(flow.state)
                else:
                    flows.append(_after_loop(flow))
        ended += further
        going = (
            merged([wide for way in further if (wide := widened(node, way)).names != way.names]) if turn == 0 else []
        )
        if not going:
            break
    return [*flows, *run(context, frame, node.orelse, merged(ended))] if ended else flows


def _with(context: Context, frame: Frame, node: ast.With, state: State) -> list[Flow]:
    ways = [state]
    suppresses = False
    for item in node.items:
        suppresses |= first_name(getattr(item.context_expr, "func", item.context_expr)).endswith("suppress")
        ways = [after for way in ways for _, after in evaluate(context, frame, item.context_expr, way)]
        if item.optional_vars is not None:
            ways = [assign(context, frame, item.optional_vars, fresh("with"), way) for way in ways]
    flows = run(context, frame, node.body, merged(ways))
    if not suppresses:
        return flows
    early = [Flow("next", way) for way in ways]
    return [*early, *(Flow("next", flow.state) if flow.kind == "raise" else flow for flow in flows)]


def _raise(_context: Context, frame: Frame, node: ast.Raise, state: State) -> list[Flow]:
    text = first_line(node.exc, limit=120) if node.exc is not None else "the error at hand"
    kind = first_name(getattr(node.exc, "func", node.exc)) if node.exc is not None else ""
    return [Flow("raise", state, raised=Raised(text, kind, frame.module.path, node.lineno, state))]


def _assert(context: Context, frame: Frame, node: ast.Assert, state: State) -> list[Flow]:
    """An unknown assertion is taken to hold from there on; it is no condition of the answer."""
    ways = truths(context, frame, node.test, state)
    if not ways:
        return []  # to ask it raises
    holds = [after for truth, after in ways if truth]
    if holds:
        new = [{symbol: one.assumed[symbol] for symbol in one.assumed.keys() - state.assumed.keys()} for one in holds]
        learnt = {symbol: value for symbol, value in new[0].items() if all(one.get(symbol) is value for one in new)}
        names = merged([State(one.names) for one in holds], force=True)[0].names
        return [Flow("next", State(names, state.assumed, state.trail, {**state.asserted, **learnt}))]
    error = Raised(
        f"AssertionError: {first_line(node.test, limit=100)}",
        "AssertionError",
        frame.module.path,
        node.lineno,
        ways[0][1],
    )
    return [Flow("raise", ways[0][1], raised=error)]


def _import(context: Context, frame: Frame, node: ast.Import | ast.ImportFrom, state: State) -> list[Flow]:
    for alias in node.names:
        try:
            value = imported(context, frame.module, node, alias)
        except Missing as error:
            raised = Raised(f"ImportError: {error}", "ImportError", frame.module.path, node.lineno, state)
            return [Flow("raise", state, raised=raised)]
        name = alias.asname or (alias.name if isinstance(node, ast.ImportFrom) else alias.name.split(".")[0])
        if name != "*":
            state = assign_name(context, frame, name, value, state)
    return [Flow("next", state)]


def _define(context: Context, frame: Frame, node: ast.FunctionDef | ast.AsyncFunctionDef, state: State) -> list[Flow]:
    closure = closure_of(context, frame, state)
    inner: AnyValue = Function(frame.module.name, f"{frame.function}.{node.name}", node, closure)
    if decorators(node):
        inner = fresh(node.name, f"{node.name} is decorated")
    return [Flow("next", state.bind(node.name, inner))]


def _class(_context: Context, _frame: Frame, node: ast.ClassDef, state: State) -> list[Flow]:
    return [Flow("next", state.bind(node.name, fresh(node.name, f"class {node.name}", tensor=False)))]


def _try(context: Context, frame: Frame, node: ast.Try, state: State) -> list[Flow]:
    """Errors that are raised by name go to their handlers; where more may go wrong, it does and it does not."""
    handled: list[Flow] = []
    going = [state]
    if node.handlers and may_raise(context, frame, node.body):
        handled, going = _perhaps_handled(context, frame, node, state)
    flows = run(context, frame, node.body, going)
    done = [flow for flow in flows if flow.kind not in ("raise", "next")]
    ended = merged([flow.state for flow in flows if flow.kind == "next"])
    done += run(context, frame, node.orelse, ended) if ended else []
    for flow in flows:
        if flow.kind == "raise":
            done += _handled(context, frame, node, flow)
    done += handled
    if not node.finalbody:
        return done
    return [last for flow in done for last in _finally(context, frame, node, flow)]


def _finally(context: Context, frame: Frame, node: ast.Try, flow: Flow) -> list[Flow]:
    return [
        Flow(flow.kind, last.state, flow.value, flow.raised) if last.kind == "next" else last
        for last in run(context, frame, node.finalbody, [flow.state])
    ]


def _handled(context: Context, frame: Frame, node: ast.Try, flow: Flow) -> list[Flow]:
    for handler in node.handlers:
        takes = catches(handler, flow.raised.kind if flow.raised is not None else "")
        if takes is not False:
            state = flow.state.bind(handler.name, fresh("error", tensor=False)) if handler.name else flow.state
            found = run(context, frame, handler.body, [state])
            return found if takes else [*found, flow]
    return [flow]


def _perhaps_handled(context: Context, frame: Frame, node: ast.Try, state: State) -> tuple[list[Flow], list[State]]:
    """The handlers' ways, should something go wrong that the source does not tell; the ways on which nothing does."""
    changed = state
    for statement in node.body:
        for name in assigned_names(statement):
            changed = changed.bind(name, fresh(name, "an error may have come before it was assigned"))
    symbol = f"{frame.module.path}:{node.lineno} goes wrong#{len(context.conditions)}"
    test = Unknown(symbol, "what goes wrong at run time is not known", tensor=False)
    probe = ast.copy_location(ast.Name("an_error_is_raised_here", ast.Load()), node)
    flows: list[Flow] = []
    fine: list[State] = []
    for truth, way in guarded(context, frame, probe, test, state):
        if not truth:
            fine.append(way)
            continue
        for handler in node.handlers:
            names = {**changed.names, **({handler.name: fresh("error", tensor=False)} if handler.name else {})}
            flows += run(context, frame, handler.body, [replace(way, names=names)])
    return flows, fine


def _match(context: Context, frame: Frame, node: ast.Match, state: State) -> list[Flow]:
    flows: list[Flow] = []
    for subject, after in evaluate(context, frame, node.subject, state):
        going = [after.bind(SUBJECT, subject)]
        for case in node.cases:
            test = matching_test(case, node)
            captured = [name for one in ast.walk(case.pattern) for name in (getattr(one, "name", None),) if name]
            further: list[State] = []
            for way in going:
                for truth, then in truths(context, frame, test, way):
                    if not truth:
                        further.append(then)
                        continue
                    inside = replace(then, names={**then.names, **dict.fromkeys(captured, subject)})
                    flows += run(context, frame, case.body, [inside])
            going = merged(further)
        flows += [Flow("next", way) for way in going]
    return flows


def _leave(kind: Kind) -> "_Runner":
    return lambda _context, _frame, _node, state: [Flow(kind, state)]


_Runner = Callable[[Context, Frame, Any, State], list[Flow]]
_RUNNERS: dict[type[ast.stmt], _Runner] = {
    ast.Expr: _expression,
    ast.Return: _return,
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.If: _if,
    ast.While: _while,
    ast.For: _for,
    ast.AsyncFor: _for,
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.Raise: _raise,
    ast.Assert: _assert,
    ast.Import: _import,
    ast.ImportFrom: _import,
    ast.FunctionDef: _define,
    ast.AsyncFunctionDef: _define,
    ast.ClassDef: _class,
    ast.Try: _try,
    ast.Match: _match,
    ast.Break: _leave("break"),
    ast.Continue: _leave("continue"),
}
