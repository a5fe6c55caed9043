"""The verdict is about the set of processes: who differs from his peers, and who only waits for somebody else."""

from collections import Counter
from dataclasses import dataclass

from sparkdiag.evidence.processes import ProcessInfo
from sparkdiag.evidence.verdict import RankFinding
from sparkdiag.judging.progress import CallPosition
from sparkdiag.judging.signature import Look, State

WAITING: frozenset[State] = frozenset({"idle", "reply-wait", "collective-wait"})
"""States in which a process waits for another one: a victim until shown otherwise."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Where one worker spends its time, in one line."""

    worker: ProcessInfo
    state: State
    function: str | None
    share: float
    samples: int


def dcp_size(workers: tuple[ProcessInfo, ...]) -> int | None:
    """DCP size as the titles show it; None where they do not name DCP ranks."""
    ranks = {worker.ranks.dcp for worker in workers if worker.ranks.dcp is not None}
    return max(ranks) + 1 if ranks and 0 <= max(ranks) < 4096 else None


def standing_of(worker: ProcessInfo, looks: list[Look]) -> Standing:
    """The state and function seen most; a suspect counts before anything else seen as often."""
    if not looks:
        return Standing(worker=worker, state="unknown", function=None, share=0.0, samples=0)
    seen = Counter((look.state, look.function) for look in looks)
    (state, function), times = max(seen.items(), key=lambda item: (item[1], item[0][0] == "suspect", item[0]))
    return Standing(worker=worker, state=state, function=function, share=times / len(looks), samples=len(looks))


def suspect_share(looks: list[Look]) -> float:
    """Share of the looks that show a suspect function."""
    return sum(look.state == "suspect" for look in looks) / len(looks) if looks else 0.0


def odd_ranks(standings: list[Standing]) -> frozenset[int]:
    """Pids that differ from their peers: the minority, and of two that differ the one that does not wait."""
    groups: dict[tuple[State, str | None], list[Standing]] = {}
    for standing in standings:
        if standing.samples:
            groups.setdefault((standing.state, standing.function), []).append(standing)
    if len(groups) < 2:
        return frozenset()
    busy = [key for key in groups if key[0] not in WAITING]
    if len(busy) == 1:
        return frozenset(standing.worker.pid for standing in groups[busy[0]])
    most = max(len(group) for group in groups.values())
    if sum(len(group) == most for group in groups.values()) > 1:
        return frozenset()
    return frozenset(s.worker.pid for group in groups.values() if len(group) < most for s in group)


def rank_findings(
    workers: tuple[ProcessInfo, ...], looks: dict[int, list[Look]], positions: list[CallPosition]
) -> tuple[RankFinding, ...]:
    """One finding a worker, with its suspect function where that was seen."""
    standings = [standing_of(worker, looks.get(worker.pid, [])) for worker in workers]
    odd = odd_ranks(standings)
    last = {position.pid: position for position in positions}
    findings = []
    for standing in standings:
        looks_of = looks.get(standing.worker.pid, [])
        seen = [look for look in looks_of if look.state == "suspect"]
        position = last.get(standing.worker.pid)
        findings.append(
            RankFinding(
                pid=standing.worker.pid,
                name=standing.worker.name,
                top_function=seen[-1].function if seen else standing.function,
                top_share=suspect_share(looks_of) if seen else standing.share,
                samples=standing.samples,
                loop_progress=position.words or None if position else None,
                differs=standing.worker.pid in odd,
            )
        )
    return tuple(findings)
