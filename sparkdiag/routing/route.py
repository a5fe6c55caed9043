"""From a revision's source and a configuration to the kernels that are reached. Pure but for the tree that it reads."""

from sparkdiag.evidence.route import NotUnderstood, Reached, Route, RouteConfig
from sparkdiag.routing.answer import guards_of, over_prompt, raised_in, reached_in
from sparkdiag.routing.reading.context import OpenGuard, first_line
from sparkdiag.routing.reading.pass_through import Entry, Reading, find_entry, import_fault, read, row_limit
from sparkdiag.routing.source.program import Program
from sparkdiag.routing.source.source_tree import SourceTree
from sparkdiag.routing.values.domain import AnyValue
from sparkdiag.routing.values.given import chunks_of
from sparkdiag.scenario.model import Scenario

MOST_READINGS = 96
"""A guard on a size is read for ever smaller parts of the prompt, down to one chunk; at most so many times in all."""


def find_route(tree: SourceTree, *, scenario: Scenario, config: RouteConfig) -> Route:
    """Follow the dispatch from the scenario's entry function down to the kernels that ``config`` reaches.

    Raises:
        RouteError: the revision has no entry function, or a file on the way cannot be parsed.
        UsageError: a value of the scenario or of ``--set`` cannot be read, or the architecture.
        EnvironmentFault: git failed.
    """
    program = Program(tree)
    entry = find_entry(program, scenario)
    readings = _readings(program, entry, scenario=scenario, config=config)
    parts = [(reading, reached_in(reading, scenario)) for reading in readings]
    reached = over_prompt(config, parts)
    raises = tuple(dict.fromkeys(one for reading in readings for one in raised_in(reading)))
    if (fault := import_fault(program, entry.module)) is not None:
        reached, raises = (), (fault,)
    seen = (one for reading in readings for one in reading.context.not_understood.values())
    puzzles = tuple(dict.fromkeys((*_doubts(program, entry, readings), *seen)))
    return Route(
        revision=tree.revision,
        scenario=scenario.name,
        config=config,
        entry=entry.function.name,
        entry_path=entry.module.path,
        entry_line=entry.function.node.lineno,
        reached=reached,
        raises=raises,
        guards=guards_of(reached, [reading.context for reading in readings]),
        not_understood=puzzles,
        exact=_exact(reached, puzzles),
        files=dict(program.files),
    )


def _doubts(program: Program, entry: Entry, readings: list[Reading]) -> tuple[NotUnderstood, ...]:
    """What makes the answer open before any guard is asked: another entry, a module that changes names in passing."""
    others = [
        NotUnderstood(path=path, line=1, source=entry.function.name, reason=f"defines {entry.function.name} too")
        for path in entry.also
    ]
    events = [event for reading in readings for event in reading.context.events]
    names = {entry.module.name, *(symbol.rpartition(".")[0] for event in events for symbol in event.chain)}
    for module in filter(None, map(program.read_module, sorted(names))):
        if (node := module.rebinding) is not None:
            reason = "changes names of a module in a way that is not followed"
            others.append(NotUnderstood(path=module.path, line=node.lineno, source=first_line(node), reason=reason))
    return tuple(others)


def _exact(reached: tuple[Reached, ...], puzzles: tuple[NotUnderstood, ...]) -> bool:
    return len(reached) == 1 and not reached[0].when and not puzzles


def _readings(program: Program, entry: Entry, *, scenario: Scenario, config: RouteConfig) -> list[Reading]:
    """The whole prompt in one reading where no guard depends on the sizes; else in as many parts as it takes."""
    limit = row_limit(program, scenario.route, config)
    known: dict[tuple[str, str], AnyValue] = {}
    dispatch = frozenset((*(one.function for one in scenario.watch), *scenario.route.kernels))
    last = chunks_of(config) - 1
    waiting = [(last, last) if config.phase == "decode" else (0, last)]
    done: list[Reading] = []
    while waiting:
        first, end = waiting.pop()
        splits = first < end and len(done) + len(waiting) < MOST_READINGS
        try:
            reading = read(
                program,
                entry,
                settings=scenario.route,
                config=config,
                chunks=(first, end),
                row_limit_bytes=limit,
                known=known,
                splits=splits,
                dispatch=dispatch,
            )
        except OpenGuard:
            reading = None
        if reading is None or (splits and reading.is_open):
            middle = (first + end) // 2
            waiting += [(middle + 1, end), (first, middle)]
        else:
            done.append(reading)
    return done
