"""What was observed of a watched server, as a diagnosis and a verdict: the same live and from its folder. Pure."""

from dataclasses import dataclass

from sparkdiag.evidence.diagnosis import Diagnosis, Traffic
from sparkdiag.evidence.observation import Observation
from sparkdiag.evidence.verdict import Verdict
from sparkdiag.watching.looks import judge_samples, looks_of
from sparkdiag.watching.traffic import traffic_of
from sparkdiag.watching.unsampled import diagnosis_without_stacks
from sparkdiag.watching.verdict import named_by, verdict_of, with_what_came_and_went

GONE = "its processes have ended; how is known to their parent alone"


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What to say."""

    diagnosis: Diagnosis
    verdict: Verdict


def conclusion_of(observation: Observation, *, prompt: Verdict | None, why_no_stacks: str) -> Conclusion:
    """``prompt``: the judge's verdict on a prompt of ours, where one was sent; ``why_no_stacks`` counts without any."""
    looks = looks_of(observation.samples, observation.processes)
    if looks:
        diagnosis = with_what_came_and_went(diagnosis_of(observation), looks)
    else:
        remedy = observation.sampling.remedy
        diagnosis = diagnosis_without_stacks(observation.metrics, why=why_no_stacks, remedy=remedy)
    verdict = prompt
    if verdict is None or (verdict.outcome == "inconclusive" and diagnosis.finding == "stalled"):
        verdict = verdict_of(diagnosis, looks=looks, now_s=observation.now_s)
    verdict = named_by(diagnosis, verdict)
    if observation.server_exit is not None and verdict.outcome != "completed":
        verdict = verdict.model_copy(update={"outcome": "crashed", "mode": None, "reason": GONE})
    return Conclusion(diagnosis=diagnosis, verdict=verdict)


def diagnosis_of(observation: Observation) -> Diagnosis:
    """Of the usable samples so far."""
    return judge_samples(observation.samples, processes=observation.processes, traffic=_meanwhile(observation))


def _meanwhile(observation: Observation) -> Traffic | None:
    """What the server said while the looks were taken: what moved before them says nothing of them. How long nobody has
    got anything may have begun long before."""
    since_s = min((sample.started_s for sample in observation.samples if sample.usable), default=0.0)
    traffic, whole = (
        traffic_of([one for one in observation.metrics if one.t_s >= since_s]),
        traffic_of(observation.metrics),
    )
    if traffic is None or whole is None:
        return traffic
    return traffic.model_copy(update={"silent_s": whole.silent_s})
