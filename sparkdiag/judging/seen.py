"""What was seen of one request so far, folded look by look: the judge's memory of a run that goes on.

``seen_after`` is pure: the memory after many small steps equals the memory after one large one, so a verdict on a live
run and the verdict on its folder are the same. A step costs what is new, not what is old, and the memory keeps no
sample but the newest of each worker.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sparkdiag.evidence.observation import Observation
from sparkdiag.evidence.processes import ProcessInfo
from sparkdiag.evidence.stacks import StackSample
from sparkdiag.judging.forecast import Moment
from sparkdiag.judging.meters import Gpus, Meters
from sparkdiag.judging.numbers import finite
from sparkdiag.judging.progress import CallPosition, position_of
from sparkdiag.judging.signature import Look, look_at
from sparkdiag.judging.sparse import Sparse
from sparkdiag.judging.stretch import Stretch, stretch_after
from sparkdiag.judging.tally import Tally
from sparkdiag.scenario.model import Scenario, Signature

_NEWEST_POSITIONS, _FEWEST_POSITIONS = 128, 8
"""Loop positions that are kept whole, over all workers and for each at least: a forecast fits 16 steps."""
_OUT_OF_ORDER_S = 20.0
"""A sample enters the log at most this long after its end."""


@dataclass(frozen=True, slots=True)
class WorkerSeen:
    """One process in which the model runs, from sending on."""

    pid: int
    ended_s: float = -math.inf
    """End of the sample counted last."""
    unusable: int = 0
    """Samples that failed or came late."""
    tally: Tally = field(default_factory=Tally)
    prefill: Tally = field(default_factory=Tally)
    """Looks from before the first token."""
    stretch: Stretch | None = None
    """The newest looks that are all the same."""
    longest_still_s: float = 0.0
    """The longest time it was seen at one place, KV use the same, before it was seen at another."""
    positions: Sparse[CallPosition] = field(default_factory=Sparse)
    """Of its suspect calls before the first token."""
    calls: int = 0
    """Calls told apart."""
    advanced_s: float | None = None
    """When a look last showed a call further on, or another call."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One request, from its sending to the latest look."""

    sent_s: float
    now_s: float = -math.inf
    workers: Mapping[int, WorkerSeen] = field(default_factory=dict)
    meters: Meters = field(default_factory=Meters)
    gpus: Gpus = field(default_factory=Gpus)

    def of(self, pid: int) -> WorkerSeen:
        """A worker that was not looked at yet has been seen nowhere."""
        return self.workers.get(pid) or WorkerSeen(pid=pid)


def moment_of(observation: Observation) -> Moment | None:
    """From sending to now, or to the end of the response: what is seen after a cancelled request says nothing about it
    (so a finished run folder is judged as the run was)."""
    client = observation.client
    sent = finite(client.sent.t_s) if client.sent else None
    if sent is None:
        return None
    ends = [finite(observation.now_s), finite(client.end.t_s) if client.end else None]
    known = [end for end in ends if end is not None]
    return Moment(sent_s=sent, now_s=max(sent, min(known))) if known else None


def seen_after(seen: Seen | None, observation: Observation, scenario: Scenario) -> Seen | None:
    """``seen`` with what ``observation`` adds; None while nothing was sent (or its stamp is no number).

    Samples of one process are taken in the order of their ends, and each once, so ``observation`` may hold the whole
    run or only what is new. What it says of the client must not be older than its samples. Another request starts a
    new memory.
    """
    moment = moment_of(observation)
    if moment is None:
        return None
    if seen is None or seen.sent_s != moment.sent_s:
        seen = Seen(sent_s=moment.sent_s)
    first_token_s = finite(observation.client.first_token_s)
    meters = seen.meters.plus(
        observation.metrics, sent_s=moment.sent_s, until_s=moment.now_s, first_token_s=first_token_s
    )
    return Seen(
        sent_s=moment.sent_s,
        now_s=moment.now_s,
        workers=_workers_after(seen, observation, scenario, moment=moment, meters=meters),
        meters=meters,
        gpus=seen.gpus.plus(observation.gpus),
    )


def _workers_after(
    seen: Seen, observation: Observation, scenario: Scenario, *, moment: Moment, meters: Meters
) -> Mapping[int, WorkerSeen]:
    found = dict(seen.workers)
    workers = observation.workers
    rises_s = [rise.seen_s for rise in meters.rises]
    new = _new_samples(seen, observation, moment)
    for worker in workers:
        samples = new.get(worker.pid)
        if samples:
            step = _Step(
                scenario=scenario,
                signatures=signatures_for(worker, scenario),
                sent_s=moment.sent_s,
                first_token_s=finite(observation.client.first_token_s),
                rises_s=rises_s,
                newest=max(_FEWEST_POSITIONS, _NEWEST_POSITIONS // len(workers)),
            )
            found[worker.pid] = _worker_after(seen.of(worker.pid), samples, step)
    return found


def signatures_for(process: ProcessInfo, scenario: Scenario) -> tuple[Signature, ...]:
    """A worker's signatures hold for whatever process the model runs in (CUDA with TP 1: EngineCore)."""
    return tuple(signature for signature in scenario.signatures if signature.role in ("worker", process.role))


def _new_samples(seen: Seen, observation: Observation, moment: Moment) -> dict[int, list[StackSample]]:
    """By process, in order of their ends; from the newest back, so that old ones cost nothing."""
    new: dict[int, list[StackSample]] = {}
    last = {pid: worker.ended_s for pid, worker in seen.workers.items()}
    for sample in reversed(observation.samples):
        ended_s = finite(sample.ended_s)
        if ended_s is None or not moment.sent_s <= ended_s <= moment.now_s:
            continue
        if ended_s < seen.now_s - _OUT_OF_ORDER_S:
            break
        if ended_s > last.get(sample.pid, -math.inf):
            new.setdefault(sample.pid, []).append(sample)
    return {pid: sorted(samples, key=lambda sample: sample.ended_s) for pid, samples in new.items()}


@dataclass(frozen=True, slots=True)
class _Step:
    scenario: Scenario
    signatures: tuple[Signature, ...]
    sent_s: float
    first_token_s: float | None
    rises_s: Sequence[float]
    newest: int


def _worker_after(worker: WorkerSeen, samples: Sequence[StackSample], step: _Step) -> WorkerSeen:
    clock = step.scenario.layer_clock
    looks: list[Look] = []
    unusable, ended_s = worker.unusable, worker.ended_s
    for sample in samples:
        if not sample.ended_s > ended_s:  # two with one end: the first counts
            continue
        ended_s = sample.ended_s
        started_s = finite(sample.started_s)
        if not sample.usable:
            unusable += 1
        elif started_s is not None and step.sent_s <= started_s <= ended_s:
            looks.append(look_at(sample, step.signatures))
    first_s = step.first_token_s
    prefill = [look for look in looks if first_s is None or look.at_s <= first_s]
    positions = [position for look in prefill if (position := position_of(look, clock)) is not None]
    calls, advanced_s = _advances(worker, positions)
    stretch, still_s = stretch_after(worker.stretch, looks, clock, rises_s=step.rises_s)
    return WorkerSeen(
        pid=worker.pid,
        ended_s=ended_s,
        unusable=unusable,
        tally=worker.tally.plus(looks),
        prefill=worker.prefill.plus(prefill),
        stretch=stretch,
        longest_still_s=max(worker.longest_still_s, still_s),
        positions=worker.positions.plus(positions, newest=step.newest),
        calls=calls,
        advanced_s=advanced_s,
    )


def _advances(worker: WorkerSeen, positions: Sequence[CallPosition]) -> tuple[int, float | None]:
    """(calls told apart, time of the latest advance) with more positions of one process."""
    calls, advanced_s = worker.calls, worker.advanced_s
    before = worker.positions.kept[-1][1] if worker.positions.kept else None
    for position in positions:
        if before is None or before.call != position.call:
            calls += 1
        if before is not None and (before.call != position.call or before.passed != position.passed):
            advanced_s = position.at_s
        before = position
    return calls, advanced_s
