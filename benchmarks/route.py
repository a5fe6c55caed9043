"""What does a history of routes cost, against reading every revision afresh?

Of a real clone with ``--repo``, else of the lab's small one."""

import sys
import time
from contextlib import suppress
from pathlib import Path
from statistics import median

from benchmarks.asked import Asked, Benchmark, Findings, say
from benchmarks.paired import Pair, compare
from sparkdiag.environment.blobs import open_blobs
from sparkdiag.environment.commit_range import read_range
from sparkdiag.errors import RouteError
from sparkdiag.evidence.route import RouteConfig, RouteHistory
from sparkdiag.lab.history import ensure_lab_repo
from sparkdiag.routing.across.answers import Answers
from sparkdiag.routing.across.history import route_history
from sparkdiag.routing.route import find_route
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
    """The newest revisions, each read afresh and as one more of those before it, in turn first and second."""
    pairs: list[Pair] = []
    with open_blobs(folder) as reader:
        span = read_range(reader, "HEAD")
        first, *newest = list(span.parents)[-count - 1 :]
        answers = Answers(span, scenario=scenario, config=CONFIG, find=find_route)
        answers.at(first)
        for number, sha in enumerate(newest):
            if number % 2:
                afresh_s = _afresh(folder, sha, scenario=scenario)
                pairs.append((afresh_s, _further(answers, sha)))
            else:
                further_s = _further(answers, sha)
                pairs.append((_afresh(folder, sha, scenario=scenario), further_s))
    return pairs


def _afresh(folder: Path, sha: str, *, scenario: Scenario) -> float:
    forget()
    began_s = time.perf_counter()
    with open_blobs(folder) as reader, suppress(RouteError):
        find_route(reader.tree(sha), scenario=scenario, config=CONFIG)
    return time.perf_counter() - began_s


def _further(answers: Answers, sha: str) -> float:
    began_s = time.perf_counter()
    answers.at(sha)
    return time.perf_counter() - began_s


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
