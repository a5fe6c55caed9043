"""Where the source asks: a guard that is known goes one way, an unknown one both, each under its assumption."""

import ast

from sparkdiag.evidence.route import Truth
from sparkdiag.routing.reading.bodies import MATTERS_ALWAYS
from sparkdiag.routing.reading.context import Condition, Context, Frame, OpenGuard, first_line
from sparkdiag.routing.values.domain import AnyValue, Unknown, symbol_of, truth_of
from sparkdiag.routing.values.state import State, Step

WORDS: dict[bool, Truth] = {True: "true", False: "false"}


def guarded(context: Context, frame: Frame, node: ast.expr, value: AnyValue, state: State) -> list[tuple[bool, State]]:
    """The ways on from a guard, with what it is on each."""
    truth = truth_of(value)
    if truth is not None:
        return [(truth, _passed(context, frame, node, state, truth, because=value.because))]
    symbol, turned = _asked(value)
    if symbol in state.assumed or symbol in state.asserted:
        truth = state.assumed.get(symbol, state.asserted.get(symbol)) is not turned
        condition = context.conditions.get(symbol)
        because = f"as {condition.source} ({condition.place})" if condition else value.because
        return [(truth, _passed(context, frame, node, state, truth, because=because))]
    if isinstance(value, Unknown) and value.by_span:
        context.by_span.add(symbol)
        # Below a kernel guards are its own business; should one matter all the same, the whole reading shows it.
        below = any(one.name in context.settings.kernels for one in context.chain[:-1])
        if context.splits and MATTERS_ALWAYS in context.deciding and not context.quiet and not below:
            raise OpenGuard
    place = f"{frame.module.path}:{node.lineno}"
    context.conditions.setdefault(symbol, Condition(first_line(node), place, turned))
    why = value.because or "not known from the source"
    return [
        (
            truth,
            _passed(context, frame, node, state.assume(symbol, truth is not turned), truth, because=why, about=symbol),
        )
        for truth in (True, False)
    ]


def _asked(value: AnyValue) -> tuple[str, bool]:
    """The symbol that a guard on ``value`` assumes, and whether the guard asks for its opposite."""
    if isinstance(value, Unknown):
        return value.symbol, value.negated
    return symbol_of(value), False


def _passed(
    context: Context, frame: Frame, node: ast.expr, state: State, truth: bool, *, because: str, about: str = ""
) -> State:
    if context.quiet or isinstance(node, ast.Constant):
        return state
    key = (frame.module.path, node.lineno, first_line(node))
    context.passed.setdefault(key, {})[truth] = because
    step = Step(
        kind="guard",
        depth=frame.depth,
        function=frame.function,
        path=frame.module.path,
        line=node.lineno,
        source=first_line(node),
        value=WORDS[truth],
        because=because,
        assumed=bool(about),
        about=about,
        matters=context.deciding,
    )
    return state.passed(step)
