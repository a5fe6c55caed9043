"""What one reading of a revision shares: the program, the facts, and what came to light."""

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

from sparkdiag.evidence.route import NotUnderstood, RouteConfig
from sparkdiag.routing.source.modules import ModuleSource
from sparkdiag.routing.source.program import Program
from sparkdiag.routing.values.domain import AnyValue, Function
from sparkdiag.routing.values.given import Given
from sparkdiag.routing.values.state import State
from sparkdiag.scenario.route import RouteSettings

MOST_WORK = 60_000
"""Statements and expressions of one reading; more is not followed any further."""
MOST_DEPTH = 24
Evaluated = list[tuple[AnyValue, State]]


@dataclass(frozen=True, slots=True)
class Frame:
    """A function that is being read."""

    function: str
    module: ModuleSource
    depth: int
    entry: bool = False
    globals: frozenset[str] = frozenset()
    enclosing: tuple[tuple[str, AnyValue], ...] = ()
    shared: frozenset[str] = frozenset()
    """Names of this function that an inner function assigns."""


@dataclass(frozen=True, slots=True)
class Event:
    """A kernel runs."""

    function: str
    path: str
    line: int
    external: bool
    state: State
    chain: tuple[str, ...]
    """Dotted names of the functions from the entry to where it runs."""


@dataclass(frozen=True, slots=True)
class Condition:
    """What an assumed symbol says, for people."""

    source: str
    place: str
    negated: bool
    """The source says the opposite of the symbol."""


class OpenGuard(Exception):
    """A guard that decides how a function goes on differs over the part of the prompt that is read."""


@dataclass(frozen=True, slots=True)
class Raised:
    """An error on its way up."""

    error: str
    kind: str
    """Name of its class."""
    path: str
    line: int
    state: State


@dataclass
class Context:
    """One reading of one revision for one configuration."""

    program: Program
    config: RouteConfig
    settings: RouteSettings
    given: Given
    call: Callable[["Context", Frame, ast.Call, State], Evaluated]
    """Seam to ``calls.py``, which reads function bodies, which hold expressions."""
    evaluate: Callable[["Context", Frame, ast.expr, State], Evaluated]
    """Seam to ``expressions.py``, for what stands at a module's top level."""
    events: list[Event] = field(default_factory=list)
    conditions: dict[str, Condition] = field(default_factory=dict)
    not_understood: dict[tuple[str, int], NotUnderstood] = field(default_factory=dict)
    globals: dict[tuple[str, str], AnyValue] = field(default_factory=dict)
    resolving: set[tuple[str, str]] = field(default_factory=set)
    chain: list[Function] = field(default_factory=list)
    returned: set[str] = field(default_factory=set)
    """Functions that returned a truth value: their guards decide their callers' branches."""
    raising: list["Raised"] = field(default_factory=list)
    """Errors that calls of the statement at hand may end in."""
    deciding: tuple[str, ...] = ()
    """What the statement at hand decides, see ``state.Step.matters``."""
    by_span: set[str] = field(default_factory=set)
    """Symbols of guards that stayed open only because sizes differ over the prompt."""
    quiet: int = 0
    """Above 0 at module level: what is passed there is no guard of the dispatch."""
    passed: dict[tuple[str, int, str], dict[bool, str]] = field(default_factory=dict)
    """Every guard with what it was on any way, and why."""
    dispatch: frozenset[str] = frozenset()
    """Functions that the scenario watches or counts as kernels: a guard that decides about one matters in any case."""
    splits: bool = False
    """Whether a guard that only the sizes leave open ends the reading: smaller parts of the prompt are read instead."""
    work: int = 0

    def spend(self) -> bool:
        """Whether there is work left."""
        self.work += 1
        return self.work <= MOST_WORK

    def puzzled(self, frame: Frame, node: ast.AST, reason: str) -> None:
        """Note a line that could matter and was not understood."""
        line = getattr(node, "lineno", 0)
        key = (frame.module.path, line)
        if key not in self.not_understood:
            source = first_line(node)
            self.not_understood[key] = NotUnderstood(path=frame.module.path, line=line, source=source, reason=reason)


@lru_cache(maxsize=20_000)
def first_line(node: ast.AST, *, limit: int = 160) -> str:
    """The source of a node on one line."""
    try:
        text = " ".join(ast.unparse(node).split())
    except (ValueError, RecursionError, AttributeError):
        return type(node).__name__
    return text if len(text) <= limit else text[: limit - 1] + "…"
