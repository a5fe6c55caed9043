"""A confined child over a small tree in memory, with the torch of the environment that is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkdiag.environment.cache import cache_root, environments_dir, list_environments, read_stamp
from sparkdiag.evidence.route import Executed, ExecutedCall, Route, RouteConfig
from sparkdiag.executing.session import execute
from sparkdiag.scenario.model import Scenario
from tests.fakes.source_trees import MemoryTree, scenario_with, tree_of

TIMEOUT_S = 30.0


def torch_python() -> Path:
    """The interpreter to run with: of any built environment; skips the test where there is none."""
    folder = environments_dir(cache_root())
    for found in list_environments(cache_root()):
        stamp = read_stamp(folder / found.key) if found.complete else None
        if stamp is not None:
            return folder / found.key / stamp.python
    pytest.skip("no environment is built whose torch could run a dispatch (sparkdiag env build)")


def run(
    source: str | dict[str, str],
    *,
    scenario: Scenario | None = None,
    config: RouteConfig | None = None,
    route: Route | None = None,
    timeout_s: float = TIMEOUT_S,
    memory_mib: int = 512,
) -> Executed:
    """Execute the tree's ``entry``."""
    return execute(
        MemoryTree(tree_of(source)),
        scenario=scenario or scenario_with(),
        config=config or RouteConfig(dcp=1, arch="sm121"),
        route=route,
        python=torch_python(),
        timeout_s=timeout_s,
        memory_mib=memory_mib,
    )


def entry_call(answer: Executed) -> ExecutedCall:
    """How the call of the entry function ended; the last of every answer."""
    assert answer.problem is None, answer.problem
    return answer.calls[-1]
