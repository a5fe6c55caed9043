"""What the rules look at: an observation reduced to one request's prefill, sane numbers only, in order of time."""

from dataclasses import dataclass

from sparkdiag.evidence.client import PromptSent
from sparkdiag.evidence.observation import Observation
from sparkdiag.evidence.processes import ProcessInfo
from sparkdiag.evidence.timeline import MetricPoint
from sparkdiag.judging.forecast import KvReading, Moment
from sparkdiag.judging.numbers import finite
from sparkdiag.judging.process_set import dcp_size
from sparkdiag.judging.progress import CallPosition, position_of
from sparkdiag.judging.signature import Look, look_at
from sparkdiag.scenario.model import Scenario, Signature


@dataclass(frozen=True, slots=True)
class Scene:
    """One request, from its sending to ``moment.now_s``."""

    sent: PromptSent
    moment: Moment
    first_token_s: float | None
    last_token_s: float | None
    workers: tuple[ProcessInfo, ...]
    looks: dict[int, list[Look]]
    """By worker pid; every worker has an entry."""
    prefill_looks: dict[int, list[Look]]
    """Those from before the first token."""
    unusable: int
    """Samples of workers that failed or came late, since sending."""
    positions: list[CallPosition]
    metrics: list[MetricPoint]
    kv_readings: list[KvReading]
    kv_before: float
    dcp: int


def _signatures_for(process: ProcessInfo, scenario: Scenario) -> tuple[Signature, ...]:
    """A worker's signatures hold for whatever process the model runs in (CUDA with TP 1: EngineCore)."""
    return tuple(signature for signature in scenario.signatures if signature.role in ("worker", process.role))


def _in_time(value: float | None, moment: Moment) -> bool:
    number = finite(value)
    return number is not None and moment.sent_s <= number <= moment.now_s


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


def scene_of(observation: Observation, scenario: Scenario) -> Scene | None:
    """None when nothing was sent yet (or its stamp is no number)."""
    client, moment = observation.client, moment_of(observation)
    if client.sent is None or moment is None:
        return None
    workers = observation.workers
    looks, unusable = _looks(observation, scenario, moment)
    metrics = sorted(
        (point for point in observation.metrics if _in_time(point.t_s, moment)), key=lambda point: point.t_s
    )
    readings = [(point.t_s, use) for point in metrics if (use := finite(point.kv_cache_usage)) is not None]
    found = [position_of(look, scenario.layer_clock) for looks_of in looks.values() for look in looks_of]
    positions = sorted((position for position in found if position is not None), key=lambda p: (p.at_s, p.pid))
    return Scene(
        sent=client.sent,
        moment=moment,
        first_token_s=finite(client.first_token_s),
        last_token_s=finite(client.last_token_s),
        workers=workers,
        looks=looks,
        prefill_looks=_before(looks, finite(client.first_token_s)),
        unusable=unusable,
        positions=positions,
        metrics=metrics,
        kv_readings=readings,
        kv_before=_level_before(observation, moment),
        dcp=dcp_size(workers) or scenario.server.dcp,
    )


def _looks(observation: Observation, scenario: Scenario, moment: Moment) -> tuple[dict[int, list[Look]], int]:
    signatures = {worker.pid: _signatures_for(worker, scenario) for worker in observation.workers}
    looks: dict[int, list[Look]] = {pid: [] for pid in signatures}
    unusable = 0
    for sample in observation.samples:
        if sample.pid not in signatures or not _in_time(sample.ended_s, moment):
            continue
        if not sample.usable or not _in_time(sample.started_s, moment):
            unusable += not sample.usable
            continue
        looks[sample.pid].append(look_at(sample, signatures[sample.pid]))
    for looks_of in looks.values():
        looks_of.sort(key=lambda look: look.at_s)
    return looks, unusable


def _before(looks: dict[int, list[Look]], end_s: float | None) -> dict[int, list[Look]]:
    if end_s is None:
        return looks
    return {pid: [look for look in looks_of if look.at_s <= end_s] for pid, looks_of in looks.items()}


def _level_before(observation: Observation, moment: Moment) -> float:
    """KV use when the prompt was sent: other requests', never this one's."""
    before = [
        (at, use)
        for point in observation.metrics
        if (at := finite(point.t_s)) is not None
        and at <= moment.sent_s
        and (use := finite(point.kv_cache_usage)) is not None
    ]
    return max(before)[1] if before else 0.0
