"""One reading of the dispatch: from the entry function through every way, with the sizes of a part of the prompt."""

import ast
from dataclasses import dataclass, replace

from sparkdiag.errors import NoEntry, RouteError
from sparkdiag.evidence.route import Raises, RouteConfig
from sparkdiag.routing.reading.binding import bound_parameters
from sparkdiag.routing.reading.calls import call
from sparkdiag.routing.reading.context import Context, Frame, Raised
from sparkdiag.routing.reading.expressions import evaluate
from sparkdiag.routing.reading.names import absolute, environment_flag
from sparkdiag.routing.reading.statements import run_body
from sparkdiag.routing.source.modules import ModuleSource
from sparkdiag.routing.source.program import Program
from sparkdiag.routing.values.domain import AnyValue, Function, Known, fresh
from sparkdiag.routing.values.given import given_for, sizes_of
from sparkdiag.routing.values.sizes import as_span, calculated
from sparkdiag.routing.values.state import State
from sparkdiag.scenario.model import Scenario
from sparkdiag.scenario.route import RouteSettings, RowSplit

SPLIT_LATEST = 1 << 50
"""Bytes that no limit reaches: where a limit exists and is not known."""


@dataclass(frozen=True)
class Reading:
    """What came to light over the chunks ``first`` to ``last``."""

    first: int
    last: int
    context: Context
    raised: tuple[Raised, ...]

    @property
    def is_open(self) -> bool:
        """Whether the answer depends on sizes that differ over these chunks."""
        states = (*(event.state for event in self.context.events), *(raised.state for raised in self.raised))
        return any(not self.context.by_span.isdisjoint(state.assumed) for state in states)


@dataclass(frozen=True)
class Entry:
    """The function that a reading starts from."""

    function: Function
    module: ModuleSource
    also: tuple[str, ...] = ()
    """Other files that define a function of this name; none where the scenario says which module it is."""


def find_entry(program: Program, scenario: Scenario) -> Entry:
    """The scenario's entry function, where the scenario says, else wherever the revision defines it.

    Raises ``RouteError`` where it is nowhere, or where its file cannot be parsed.
    """
    watched = next((one for one in scenario.watch if one.role == "entry"), None)
    if watched is None:
        raise RouteError(f"scenario {scenario.name} names no entry function", remedy='a [[watch]] with role = "entry"')
    for name in watched.modules:
        module = program.module(name)
        if name in program.faults:
            raise program.faults[name]
        if module is not None and watched.function in module.functions:
            return _entry(module, watched.function)
    found = [program.at(path) for path in program.tree.holding(f"def {watched.function}(")]
    modules = [module for module in found if module is not None and watched.function in module.functions]
    if modules:
        return replace(_entry(modules[0], watched.function), also=tuple(module.path for module in modules[1:]))
    raise NoEntry(
        f"{program.tree.revision[:10]} has no function {watched.function}",
        remedy="a revision that has it, or a scenario whose [[watch]] names another entry: --rev, --scenario",
    )


def _entry(module: ModuleSource, name: str) -> Entry:
    return Entry(Function(module.name, name, module.functions[name]), module)


def import_fault(program: Program, module: ModuleSource) -> Raises | None:
    """The error that importing the entry function's own module ends in: it takes a name from another module of the
    repository that has none of it. Only modules that were read for the route are asked, so it costs nothing."""
    for node in module.tree.body:
        source = program.read_module(absolute(module, node)) if isinstance(node, ast.ImportFrom) else None
        if source is None or not isinstance(node, ast.ImportFrom) or source.bindings.keys() & {"*", "__getattr__"}:
            continue
        for alias in node.names:
            if alias.name == "*" or alias.name in source.bindings or alias.name.startswith("__"):
                continue
            if not program.is_module(f"{source.name}.{alias.name}"):
                error = f"ImportError: {source.name} has no {alias.name}"
                return Raises(error=error, path=module.path, line=node.lineno)
    return None


def read(
    program: Program,
    entry: Entry,
    *,
    settings: RouteSettings,
    config: RouteConfig,
    chunks: tuple[int, int],
    row_limit_bytes: tuple[int, int] | None = None,
    known: dict[tuple[str, str], AnyValue] | None = None,
    splits: bool = False,
    dispatch: frozenset[str] = frozenset(),
) -> Reading:
    """Read the dispatch once. ``known``: what module-level names hold, shared over the readings of one revision.

    With ``splits`` it raises ``OpenGuard`` as soon as a guard depends on sizes that differ over these chunks.
    """
    context = new_context(program, settings, config, chunks=chunks, row_limit_bytes=row_limit_bytes)
    context.globals = known if known is not None else {}
    context.splits = splits
    context.dispatch = dispatch
    frame = Frame(entry.function.name, entry.module, 0, entry=True)
    # Its caller is not read: what a parameter is by default is not what it is.
    names = bound_parameters(context, frame, entry.function, (), {"**": fresh("arguments")})
    context.chain.append(entry.function)
    run_body(context, frame, entry.function, State(names))
    return Reading(*chunks, context, tuple(context.raising))


def new_context(
    program: Program,
    settings: RouteSettings,
    config: RouteConfig,
    *,
    chunks: tuple[int, int],
    row_limit_bytes: tuple[int, int] | None,
) -> Context:
    sizes = sizes_of(config, *chunks, row_limit_bytes=row_limit_bytes)
    given = given_for(settings, config, sizes)
    return Context(program, config, settings, given, call=call, evaluate=evaluate)


def row_limit(program: Program, settings: RouteSettings, config: RouteConfig) -> tuple[int, int] | None:
    """Bounds in bytes of the logits limit by which a revision splits a chunk's rows; None where it does not split."""
    split = settings.row_split
    for name in split.modules if split is not None else ():
        module = program.module(name)
        function = module.functions.get(split.function) if module is not None and split is not None else None
        if module is None or split is None or function is None:
            continue
        if split.parameter in {one.arg for one in (*function.args.args, *function.args.kwonlyargs)}:
            return _limit(program, module, split, settings=settings, config=config)
    return None


def _limit(
    program: Program, module: ModuleSource, split: RowSplit, *, settings: RouteSettings, config: RouteConfig
) -> tuple[int, int]:
    context = new_context(program, settings, config, chunks=(0, 0), row_limit_bytes=None)
    context.quiet = 1
    if (node := module.functions.get(split.limit_function)) is not None:
        function = Function(module.name, split.limit_function, node)
        frame = Frame(function.name, module, 0)
        context.chain.append(function)
        ways = run_body(context, frame, function, State(bound_parameters(context, frame, function, (), {})))
        found = [as_span(value) for value, _ in ways]
    else:
        flags = program.module(split.flags_module)
        flag = environment_flag(context, flags, split.limit_flag_mib) if flags is not None else None
        found = [as_span(calculated("Mult", flag, Known(1 << 20)))] if flag is not None else []
    spans = [span for span in found if span is not None]
    if not spans or len(spans) != len(found):
        return 4, SPLIT_LATEST
    return min(span.low for span in spans), max(span.high for span in spans)
