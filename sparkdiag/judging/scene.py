"""What the rules look at: one request's prefill as it was seen, in sane numbers."""

from dataclasses import dataclass

from sparkdiag.evidence.client import PromptSent
from sparkdiag.evidence.observation import Observation
from sparkdiag.evidence.processes import ProcessInfo
from sparkdiag.evidence.verdict import RankFinding
from sparkdiag.judging.crowd import Crowd, crowd_of
from sparkdiag.judging.forecast import Moment
from sparkdiag.judging.meters import Gpus, Meters
from sparkdiag.judging.numbers import finite
from sparkdiag.judging.process_set import dcp_size, rank_findings
from sparkdiag.judging.progress import CallPosition
from sparkdiag.judging.seen import Seen, WorkerSeen, moment_of
from sparkdiag.scenario.model import Scenario


@dataclass(frozen=True, slots=True)
class Scene:
    """One request, from its sending to ``moment.now_s``."""

    sent: PromptSent
    moment: Moment
    first_token_s: float | None
    last_token_s: float | None
    workers: tuple[ProcessInfo, ...]
    seen: tuple[WorkerSeen, ...]
    """Of each worker, in their order."""
    positions: list[CallPosition]
    """Suspect calls of all workers before the first token, in order of time; of a long run, ever fewer of the past."""
    positions_seen: int
    """How many there were in all."""
    meters: Meters
    gpus: Gpus
    dcp: int
    crowd: Crowd
    unwatched: bool
    """By request: that no worker was sampled tells nothing."""

    @property
    def counts_from_s(self) -> float:
        """From here on slowness, or standing still, is the server's own: sending, or the end of what starved it."""
        return self.moment.sent_s if self.crowd.starved_until_s is None else self.crowd.starved_until_s

    @property
    def looked_at(self) -> bool:
        """Whether any worker could be sampled."""
        return any(worker.tally.total for worker in self.seen)

    @property
    def unusable(self) -> int:
        """Samples of workers that failed or came late."""
        return sum(worker.unusable for worker in self.seen)

    @property
    def calls_seen(self) -> int:
        return sum(worker.calls for worker in self.seen)

    @property
    def advanced_s(self) -> float | None:
        """When the suspect's loop was last seen to advance, in any worker."""
        return max((worker.advanced_s for worker in self.seen if worker.advanced_s is not None), default=None)

    @property
    def moved_s(self) -> float | None:
        """When the prefill was last seen to get on: the suspect's loop, or KV use for the second time or later (a first
        rise says only that it was scheduled)."""
        rise_s = self.meters.rises[-1].seen_s if len(self.meters.rises) >= 2 else None
        return max((at for at in (self.advanced_s, rise_s) if at is not None), default=None)

    @property
    def longest_still_s(self) -> float:
        """The longest time for which all workers are known to have stood still together and then moved, at most."""
        return min((worker.longest_still_s for worker in self.seen), default=0.0)

    @property
    def arrived(self) -> bool:
        """The engine was seen to have the request: until then the API server may still be reading a long prompt."""
        return self.meters.arrived or any(worker.tally.busy for worker in self.seen)

    def findings(self) -> tuple[RankFinding, ...]:
        """One a worker; none where nobody was to be looked at."""
        if self.unwatched:
            return ()
        return rank_findings(self.workers, [worker.tally for worker in self.seen], self.positions)


def scene_of(observation: Observation, scenario: Scenario, seen: Seen | None) -> Scene | None:
    """None when nothing was sent yet (or its stamp is no number). ``seen`` must hold what ``observation`` tells."""
    client, moment = observation.client, moment_of(observation)
    if client.sent is None or moment is None or seen is None:
        return None
    workers = observation.workers
    of_workers = tuple(seen.of(worker.pid) for worker in workers)
    positions = [position for worker in of_workers for position in worker.positions.values]
    return Scene(
        sent=client.sent,
        moment=moment,
        first_token_s=finite(client.first_token_s),
        last_token_s=finite(client.last_token_s),
        workers=workers,
        seen=of_workers,
        positions=sorted(positions, key=lambda position: (position.at_s, position.pid)),
        positions_seen=sum(worker.positions.count for worker in of_workers),
        meters=seen.meters,
        gpus=seen.gpus,
        dcp=dcp_size(workers) or scenario.server.dcp,
        unwatched=not observation.sampling.wanted,
        crowd=crowd_of(observation.cpu, sent_s=moment.sent_s, until_s=moment.now_s),
    )
