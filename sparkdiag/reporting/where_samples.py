"""The workers' samples as trees in text. Pure."""

from collections.abc import Sequence

from sparkdiag.evidence.processes import ProcessInfo
from sparkdiag.evidence.stacks import StackSample
from sparkdiag.evidence.stored import StoredRun
from sparkdiag.reporting.call_tree import CallNode, call_tree
from sparkdiag.reporting.flame_text import flame_text
from sparkdiag.reporting.phrases import scenario_of
from sparkdiag.reporting.safe_text import fence

COLUMNS = 100
_MOST_TREES = 4
_LEAST_LINES = 6


def suspect_function(stored: StoredRun) -> str | None:
    """The function the verdict names, else the scenario's first that was seen on any stack."""
    verdict = stored.record.verdict
    if verdict is not None and verdict.function is not None:
        return verdict.function
    scenario = scenario_of(stored)
    named = [signature.function for signature in scenario.signatures] if scenario is not None else []
    threads = [thread for sample in stored.observation.samples for thread in sample.threads]
    return next((name for name in named if any(thread.find(name) for thread in threads)), None)


def worker_trees(stored: StoredRun) -> tuple[CallNode, ...]:
    """One for the workers that are alike, one for each that is not; of the time since the prompt was sent."""
    observation, function = stored.observation, suspect_function(stored)
    begin_s = observation.client.sent.t_s if observation.client.sent is not None else 0.0
    samples: dict[int, list[StackSample]] = {}
    for sample in observation.samples:
        if sample.at_s >= begin_s:
            samples.setdefault(sample.pid, []).append(sample)
    return tuple(
        call_tree((one for pid in pids for one in samples.get(pid, ())), root=name, function=function)
        for name, pids in _groups(stored)[:_MOST_TREES]
    )


def trees_text(trees: Sequence[CallNode], most_lines: int) -> str:
    """Markdown; empty without a usable sample."""
    most = max(most_lines // max(len(trees), 1), _LEAST_LINES)
    drawn = [text for tree in trees if (text := flame_text(tree, most_lines=most, columns=COLUMNS))]
    return fence("\n\n".join(["  share, samples, calls (outer > inner)", *drawn])) if drawn else ""


def _groups(stored: StoredRun) -> list[tuple[str, set[int]]]:
    """Workers that do as their peers do together, then each that differs; without workers every process."""
    workers = stored.observation.workers
    verdict = stored.record.verdict
    differing = {rank.pid for rank in verdict.ranks if rank.differs} if verdict is not None else set()
    alike = [worker for worker in workers if worker.pid not in differing]
    if not workers:
        return [("all processes", {process.pid for process in stored.observation.processes})]
    groups = [(_named(alike, workers), {worker.pid for worker in alike})] if alike else []
    return groups + [(f"{worker.name} ({worker.pid})", {worker.pid}) for worker in workers if worker.pid in differing]


def _named(some: Sequence[ProcessInfo], workers: Sequence[ProcessInfo]) -> str:
    if len(some) == 1:
        return some[0].name
    return f"all {len(workers)} workers" if len(some) == len(workers) else f"{len(some)} workers that are alike"
