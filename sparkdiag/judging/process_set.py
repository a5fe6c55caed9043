"""The verdict is about the set of processes: who differs from his peers, and who only waits for somebody else."""

from dataclasses import dataclass

from sparkdiag.evidence.processes import ProcessInfo
from sparkdiag.evidence.verdict import RankFinding
from sparkdiag.judging.progress import CallPosition
from sparkdiag.judging.signature import State
from sparkdiag.judging.tally import Tally

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


def standing_of(worker: ProcessInfo, tally: Tally) -> Standing:
    """The state and function seen most; a suspect counts before anything else seen as often."""
    total = tally.total
    if not total:
        return Standing(worker=worker, state="unknown", function=None, share=0.0, samples=0)
    (state, function), times = max(tally.counts.items(), key=lambda item: (item[1], item[0][0] == "suspect", item[0]))
    return Standing(worker=worker, state=state, function=function, share=times / total, samples=total)


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
    workers: tuple[ProcessInfo, ...], tallies: list[Tally], positions: list[CallPosition]
) -> tuple[RankFinding, ...]:
    """One finding a worker (``tallies`` in the same order), with its suspect function where that was seen."""
    standings = [standing_of(worker, tally) for worker, tally in zip(workers, tallies, strict=True)]
    odd = odd_ranks(standings)
    last = {position.pid: position for position in positions}
    findings = []
    for standing, tally in zip(standings, tallies, strict=True):
        position = last.get(standing.worker.pid)
        suspect = tally.last_suspect
        findings.append(
            RankFinding(
                pid=standing.worker.pid,
                name=standing.worker.name,
                top_function=standing.function if suspect is None else suspect,
                top_share=standing.share if suspect is None else tally.suspect_share,
                samples=standing.samples,
                loop_progress=position.words or None if position else None,
                differs=standing.worker.pid in odd,
            )
        )
    return tuple(findings)
