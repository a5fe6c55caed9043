"""One way through the source: what its names hold, what was assumed, which guards it passed; and how two ways join."""

from dataclasses import dataclass, field, replace
from typing import Literal

from sparkdiag.evidence.route import Truth
from sparkdiag.routing.values.domain import AnyValue, joined

MOST_STATES = 48
"""Ways that are kept apart; beyond it they are joined, and what differs between them is unknown."""
MOST_ASSUMED = 64
"""Assumptions that a way remembers one by one; what is forgotten may be assumed again, either way."""
MOST_STEPS = 1_000
SEVERAL = "one of several conditions that were not kept apart"
RETURNED = " returned"
"""A name that no source can use: what a function returns, while its ways are joined."""


@dataclass(frozen=True, slots=True)
class Step:
    """A guard or a call on the way, see ``evidence.route.TrailStep``."""

    kind: Literal["guard", "call"]
    depth: int
    function: str
    """Dotted name of the function whose body holds the line."""
    path: str
    line: int
    source: str
    value: Truth = "unknown"
    because: str = ""
    assumed: bool = False
    about: str = ""
    """Of a call: dotted name of the called function. Of an assumed guard: the symbol that is assumed."""
    matters: tuple[str, ...] = ()
    """Of a guard: names of functions called in what it decides; ``*`` where it decides whether the function goes on."""


@dataclass(frozen=True, slots=True)
class State:
    """A way through the source so far. Frozen: who goes on makes a new one."""

    names: dict[str, AnyValue]
    """What the names of the current function hold."""
    assumed: dict[str, bool] = field(default_factory=dict)
    """What was taken for true or false because it is unknown, by symbol."""
    trail: tuple[Step, ...] = ()
    asserted: dict[str, bool] = field(default_factory=dict)
    """What the source asserts, by symbol: known from there on, and no condition of the answer."""

    def bind(self, name: str, value: AnyValue) -> "State":
        return replace(self, names={**self.names, name: value})

    def assume(self, symbol: str, value: bool) -> "State":
        kept = self.assumed if len(self.assumed) < MOST_ASSUMED else {SEVERAL: True}
        return replace(self, assumed={**kept, symbol: value})

    def passed(self, step: Step) -> "State":
        return replace(self, trail=(*self.trail, step)) if len(self.trail) < MOST_STEPS else self


def merged(states: list[State], *, force: bool = False) -> list[State]:
    """Join the ways that differ in nothing a guard may ask for, and whose assumptions together say nothing: ``a`` and
    ``not a``. With ``force``, or beyond ``MOST_STATES``, all, under the assumption that one of them is the case."""
    force = force or len(states) > MOST_STATES
    kept: list[State] = states[:1] if len(states) > 4 * MOST_STATES else []
    for state in states[len(kept) :]:
        if kept and len(states) > 4 * MOST_STATES:
            kept = [_forced(kept[0], state)]
        else:
            _add(kept, state)
    while force and len(kept) > 1:
        kept = [_forced(kept[0], kept[1]), *kept[2:]]
    return kept


def _add(kept: list[State], state: State) -> None:
    """Add a way, joined with any that it can be joined with; what comes of it may join with another."""
    for place, other in enumerate(kept):
        assumed = _union(other.assumed, state.assumed)
        names = _joined_names(other, state, force=False) if assumed is not None else None
        if assumed is not None and names is not None:
            del kept[place]
            _add(kept, State(names, assumed, common(other.trail, state.trail), _shared(other.asserted, state.asserted)))
            return
    kept.append(state)


def _union(first: dict[str, bool], second: dict[str, bool]) -> dict[str, bool] | None:
    """One set of assumptions that says what either says; None where no single set does."""
    if first.items() <= second.items():
        return first
    if second.items() <= first.items():
        return second
    differing = [symbol for symbol in first if second.get(symbol) is not first[symbol]]
    if len(first) == len(second) and len(differing) == 1 and differing[0] in second:
        return {symbol: value for symbol, value in first.items() if symbol != differing[0]}
    return None


def _forced(first: State, second: State) -> State:
    names = _joined_names(first, second, force=True) or {}
    assumed = _shared(first.assumed, second.assumed)
    if assumed != first.assumed and assumed != second.assumed:
        assumed[SEVERAL] = True
    return State(names, assumed, common(first.trail, second.trail), _shared(first.asserted, second.asserted))


def _shared(first: dict[str, bool], second: dict[str, bool]) -> dict[str, bool]:
    return {symbol: value for symbol, value in first.items() if second.get(symbol) is value}


def _joined_names(first: State, second: State, *, force: bool) -> dict[str, AnyValue] | None:
    names: dict[str, AnyValue] = {}
    for name in first.names.keys() | second.names.keys():
        if name not in first.names or name not in second.names:
            # Bound on one way only: on the other way to ask for it would raise.
            value: AnyValue | None = first.names.get(name, second.names.get(name))
        else:
            value = joined(first.names[name], second.names[name], force=force)
        if value is None:
            return None
        names[name] = value
    return names


def common(first: tuple[Step, ...], second: tuple[Step, ...]) -> tuple[Step, ...]:
    """What both trails begin with."""
    length = 0
    for a, b in zip(first, second, strict=False):
        if a != b:
            break
        length += 1
    return first[:length]
