"""``sparkdiag route --execute``: what a revision's own dispatch reached, beside what its source says."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from sparkdiag.errors import EnvironmentFault, SparkdiagError
from sparkdiag.evidence.route import Executed, ExecutedCall, Route, RouteConfig
from sparkdiag.executing import order as orders
from sparkdiag.executing.answer import Answer
from sparkdiag.executing.compare import compared
from sparkdiag.executing.confined import converse
from sparkdiag.executing.rows import rows_of
from sparkdiag.routing.source.source_tree import SourceTree
from sparkdiag.scenario.model import Scenario

TIMEOUT_S = 60.0
MEMORY_MIB = 2048
NO_TORCH = (
    "this interpreter has no torch, which the revision's dispatch needs: give one that has with "
    "--env existing:PYTHON, or build the lab's with sparkdiag env build"
)


def execute(
    tree: SourceTree,
    *,
    scenario: Scenario,
    config: RouteConfig,
    route: Route | None,
    python: Path,
    timeout_s: float = TIMEOUT_S,
    memory_mib: int = MEMORY_MIB,
    view: Callable[[str], None] = lambda _line: None,
) -> Executed:
    """Run the revision's dispatch in a confined child and compare with ``route``, where there is one.

    ``view`` gets a line a step. Raises ``RouteError`` where the revision has no entry function, ``EnvironmentFault``
    where the interpreter cannot be started or git fails.
    """
    return execute_all(
        tree,
        scenario=scenario,
        asked=((config, route),),
        python=python,
        timeout_s=timeout_s,
        memory_mib=memory_mib,
        view=view,
    )[0]


def execute_all(
    tree: SourceTree,
    *,
    scenario: Scenario,
    asked: Iterable[tuple[RouteConfig, Route | None]],
    python: Path,
    timeout_s: float = TIMEOUT_S,
    memory_mib: int = MEMORY_MIB,
    view: Callable[[str], None] = lambda _line: None,
) -> tuple[Executed, ...]:
    """The same for several configurations of one revision, in one child."""
    asked = tuple(asked)
    entry = orders.entry_place(tree, scenario)
    jobs = []
    for number, (config, _) in enumerate(asked):
        dispatch = orders.dispatch_places(tree, scenario, phase=config.phase)
        rows = rows_of(tree, scenario, config)
        jobs.append({**orders.job(scenario, config, entry=entry, dispatch=dispatch, rows=rows), "job": number})
    view(f"running {entry.function} and {max(0, len(jobs[0]['calls']) - 1)} dispatch calls at {tree.revision[:10]}")
    answer = Answer()
    order = {"jobs": jobs, "memory_mib": memory_mib, "cpu_s": max(1, int(timeout_s) + 1)}
    why = _conversed(python, order, tree, answer, timeout_s)
    return tuple(
        _executed(tree, scenario, answer, job=number, order=jobs[number], route=route, why=why)
        for number, (_, route) in enumerate(asked)
    )


def _conversed(python: Path, order: Mapping[str, Any], tree: SourceTree, answer: Answer, timeout_s: float) -> str:
    failed: list[SparkdiagError] = []

    def read(path: str) -> str | None:
        try:
            blob = tree.read(path)
        except SparkdiagError as error:
            failed.append(error)
            return None
        return None if blob is None else blob.text

    try:
        why = converse(python, order, read=read, heard=answer.hear, timeout_s=timeout_s)
    except OSError as error:
        raise EnvironmentFault(f"{python} cannot be started: {error.strerror or error}", remedy=NO_TORCH) from error
    if failed:
        raise failed[0]
    return why


def _executed(
    tree: SourceTree,
    scenario: Scenario,
    answer: Answer,
    *,
    job: int,
    order: Mapping[str, Any],
    route: Route | None,
    why: str,
) -> Executed:
    calls: list[ExecutedCall] = []
    for call in order["calls"]:
        key = (job, call["function"], call["clean"])
        seen = answer.outcome(key, why, scenario=scenario)
        if seen is not None:
            calls.append(compared(seen, route, entry=order["entry"]))
    problem = NO_TORCH if answer.no_torch else None
    if not calls and problem is None:
        problem = f"nothing was executed: {why or 'the child said nothing'}"
    return Executed(
        schema=1,
        revision=tree.revision,
        python=answer.python,
        sandbox=answer.sandbox,
        calls=tuple(calls),
        problem=problem,
    )
