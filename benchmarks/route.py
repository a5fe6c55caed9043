"""What does a history of routes cost, against reading every revision afresh?

Of a real clone with ``--repo``, else of the lab's small one."""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from benchmarks.asked import Asked, Benchmark, Findings, say
from benchmarks.paired import Pair, compare
from sparkdiag.environment.blobs import open_blobs
from sparkdiag.environment.commit_range import read_range
from sparkdiag.errors import RouteError
from sparkdiag.evidence.route import RouteConfig, RouteHistory
from sparkdiag.lab.history import ensure_lab_repo
from sparkdiag.routing.history import route_history
from sparkdiag.routing.route import find_route
from sparkdiag.routing.source_tree import SourceTree
from sparkdiag.scenario.load import load_scenario
from sparkdiag.scenario.model import Scenario

COLD_GOAL_S = 10.0
WARM_GOAL_S = 0.05
CONFIG = RouteConfig(dcp=2, arch="sm121")


def measure(asked: Asked) -> Findings:
    """Raises ``UsageError``, ``EnvironmentFault`` for a clone that cannot be read."""
    folder = asked.repo or ensure_lab_repo(asked.out)
    scenario = load_scenario("sm12x-mqa-prefill" if asked.repo else "lab")
    count = asked.pairs_or(25, quick=3)
    forget()
    began_s = time.perf_counter()
    history = _history(folder, scenario=scenario)
    cold_s = time.perf_counter() - began_s
    say(f"{history.commits:,} commits in {cold_s:.2f} s")
    pairs = _revisions(folder, scenario=scenario, count=count)
    warm_s = median(warm for _, warm in pairs)
    comparison = compare(
        pairs, measured="a further revision", reference="a revision read afresh", unit="ms", note=_revision_note(warm_s)
    )
    settings: dict[str, str | int | float] = {
        "commits": history.commits,
        "read": history.evaluated,
        "changes": len(history.changes),
        "cold_history_s": round(cold_s, 3),
        "further_revision_s": round(warm_s, 5),
    }
    return Findings((comparison,), settings, (_cold_note(history, cold_s),))


def forget() -> None:
    """Drop what earlier readings parsed."""
    for name, module in list(sys.modules.items()):
        if name.startswith("sparkdiag.routing"):
            for value in vars(module).values():
                if hasattr(value, "cache_clear"):
                    value.cache_clear()


def _history(folder: Path, *, scenario: Scenario) -> RouteHistory:
    with open_blobs(folder) as reader:
        return route_history(read_range(reader, "HEAD"), scenario=scenario, config=CONFIG)


def _revisions(folder: Path, *, scenario: Scenario, count: int) -> list[Pair]:
    """The newest revisions, each read afresh and beside its neighbours, in turn first and second."""
    pairs: list[Pair] = []
    with open_blobs(folder) as reader:
        newest = list(read_range(reader, "HEAD").parents)[-count - 1 :]
        _answer(reader.tree(newest[0]), scenario=scenario)
        for number, sha in enumerate(newest[1:]):
            if number % 2:
                afresh_s = _afresh(folder, sha, scenario=scenario)
                _answer(reader.tree(newest[number]), scenario=scenario)  # what was kept before all was forgotten
                pairs.append((afresh_s, _timed(reader.tree(sha), scenario=scenario)))
            else:
                warm_s = _timed(reader.tree(sha), scenario=scenario)
                pairs.append((_afresh(folder, sha, scenario=scenario), warm_s))
                _answer(reader.tree(sha), scenario=scenario)
    return pairs


def _afresh(folder: Path, sha: str, *, scenario: Scenario) -> float:
    forget()
    began_s = time.perf_counter()
    with open_blobs(folder) as reader:
        _answer(reader.tree(sha), scenario=scenario)
    return time.perf_counter() - began_s


def _timed(tree: SourceTree, *, scenario: Scenario) -> float:
    began_s = time.perf_counter()
    _answer(tree, scenario=scenario)
    return time.perf_counter() - began_s


def _answer(tree: SourceTree, *, scenario: Scenario) -> Sequence[str]:
    try:
        return find_route(tree, scenario=scenario, config=CONFIG).kernels
    except RouteError:
        return ()


def _cold_note(history: RouteHistory, cold_s: float) -> str:
    met = "met" if cold_s <= COLD_GOAL_S else "missed"
    return (
        f"the whole history, nothing kept: {cold_s:.2f} s for {history.commits:,} commits, {history.evaluated:,} of "
        f"them read, {len(history.changes)} changes (goal for 18,000 commits: {COLD_GOAL_S:g} s or less: {met})"
    )


def _revision_note(warm_s: float) -> str:
    met = "met" if warm_s <= WARM_GOAL_S else "missed"
    return f"a further revision: {1000 * warm_s:.1f} ms (goal: {1000 * WARM_GOAL_S:g} ms or less: {met})"


BENCHMARK = Benchmark(
    question="a history of routes, and a further revision of it, against reading each afresh",
    about_s=60,
    measure=measure,
)
