"""What a run is found to be. Pure and total: the same observation gives the same verdict, live or years later."""

from dataclasses import dataclass

from sparkdiag.evidence.observation import Observation
from sparkdiag.evidence.verdict import Baseline, EvidenceItem, Verdict
from sparkdiag.judging.crawling import Crawl, NotCrawling, find_crawl
from sparkdiag.judging.ended import completed_doubts, completed_facts, crash_facts, crash_reason, how_it_ended, open_end
from sparkdiag.judging.facts import (
    baseline_fact,
    client_fact,
    doubts,
    forecast_fact,
    foresight_facts,
    kv_facts,
    loop_facts,
    odd_rank_facts,
    stack_facts,
)
from sparkdiag.judging.numbers import finite
from sparkdiag.judging.pace import Limit, Pace, limit_of, pace_of
from sparkdiag.judging.scene import Scene, scene_of
from sparkdiag.judging.seen import Seen, seen_after
from sparkdiag.judging.stuck import Standstill, find_standstill
from sparkdiag.judging.unwatched import Flat, find_flat, find_unwatched_crawl
from sparkdiag.scenario.model import Scenario

NO_BASELINE = "no healthy time to compare with: pass --baseline-s SECONDS, or --control for a control run"
NOT_KNOWN_WHERE = "no stack was taken, by request: in which function the time goes is not known"


@dataclass(frozen=True, slots=True)
class _Case:
    """Everything one judgement is made from."""

    observation: Observation
    scenario: Scenario
    baseline: Baseline | None
    limit: Limit | None
    scene: Scene
    pace: Pace


def judge(
    observation: Observation, scenario: Scenario, baseline: Baseline | None, *, seen: Seen | None = None
) -> Verdict:
    """The verdict on what has been observed so far; ``inconclusive`` with a reason while nothing else is certain.

    A response that finished is ``completed`` whatever the stacks showed; a server that went away is ``crashed``. Of a
    request still in flight, ``stuck`` is looked for first, then ``crawling`` against the baseline (the healthy time to
    first token, from outside the path under suspicion). Never raises.

    ``seen`` is what was made of this and earlier observations of the same run by ``seen_after``; with it a look costs
    what is new since the one before. Without it everything is read from ``observation``, with the same result.
    """
    if baseline is not None and finite(baseline.seconds) is None:
        baseline = None  # no number: it could neither be compared with nor written down
    limit = limit_of(scenario, baseline)
    scene = scene_of(observation, scenario, seen_after(None, observation, scenario) if seen is None else seen)
    ended = how_it_ended(observation)
    if ended is not None:
        return _ended_verdict(observation, scene, baseline=baseline, limit=limit)
    if scene is None:
        return Verdict(outcome="inconclusive", reason="no prompt was sent yet", baseline=baseline)
    case = _Case(
        observation=observation,
        scenario=scenario,
        baseline=baseline,
        limit=limit,
        scene=scene,
        pace=pace_of(scene, scenario, observation),
    )
    return _in_flight(case)


def _ended_verdict(
    observation: Observation, scene: Scene | None, *, baseline: Baseline | None, limit: Limit | None
) -> Verdict:
    outcome = how_it_ended(observation) or "inconclusive"
    ranks = scene.findings() if scene else ()
    against: list[EvidenceItem] = doubts(scene, None) if scene else []
    reason, needle = None, None
    if outcome == "completed":
        needle = observation.client.score
        evidence = completed_facts(observation, scene)
        against = completed_doubts(scene, baseline=baseline, limit=limit) + against
    elif outcome == "crashed":
        reason, evidence = crash_reason(observation), crash_facts(observation)
    else:
        evidence = [open_end(observation)]
        reason = evidence[0].text
    return Verdict(
        outcome=outcome,
        needle=needle,
        baseline=baseline,
        ranks=ranks,
        evidence_for=tuple(evidence),
        evidence_against=tuple(against),
        reason=reason,
        decided_at_s=scene.moment.now_s if scene else finite(observation.now_s),
    )


def _in_flight(case: _Case) -> Verdict:
    scene, patience = case.scene, case.scenario.patience
    if scene.moment.elapsed_s < patience.settle_s:
        return _open(case, f"only {scene.moment.elapsed_s:.1f} s since the prompt was sent")
    standstill = find_standstill(scene, case.scenario, case.baseline)
    if standstill is not None:
        return _stuck(case, standstill)
    if scene.first_token_s is not None:
        took = scene.first_token_s - scene.moment.sent_s
        return _open(case, f"the prefill ended after {took:.1f} s and the answer is being decoded")
    if case.limit is None:
        return _open(case, f"crawling cannot be told from slow: {NO_BASELINE}")
    if scene.unwatched:
        return _unwatched(case, case.limit)
    if not scene.looked_at and scene.moment.elapsed_s <= case.limit.seconds:
        return _open(case, _unseen_reason(case.observation))
    found = find_crawl(scene, case.scenario, case.pace, case.limit)
    return _crawling(case, found, case.limit) if isinstance(found, Crawl) else _open(case, _not_crawling(case, found))


def _unwatched(case: _Case, limit: Limit) -> Verdict:
    """Beyond the limit with nothing that moves, or a pace that KV use shows."""
    flat = find_flat(case.scene, case.scenario, limit)
    if flat is not None:
        return _flat(case, flat, limit)
    found = find_unwatched_crawl(case.scene, case.scenario, case.pace, limit)
    return _crawling(case, found, limit) if isinstance(found, Crawl) else _open(case, _not_crawling(case, found))


def _unseen_reason(observation: Observation) -> str:
    sampling = observation.sampling
    errors = "; ".join(f"{text} ({times} times)" for text, times in sorted(sampling.errors.items())[:3])
    detail = "; ".join(part for part in (sampling.reason, errors) if part)
    return f"no worker could be sampled{': ' + detail if detail else ' yet'}"


def _not_crawling(case: _Case, found: NotCrawling) -> str:
    timeout = case.scenario.patience.timeout_s
    if case.scene.moment.elapsed_s >= timeout:
        return f"no first token within the timeout of {timeout:g} s; {found.reason}"
    return found.reason


def _context(case: _Case) -> list[EvidenceItem]:
    return stack_facts(case.scene) + odd_rank_facts(case.scene) + loop_facts(case.scene, case.pace)


def _open(case: _Case, reason: str) -> Verdict:
    """Nothing certain: what is known so far, for the live view and the report."""
    pace, scene = case.pace, case.scene
    forecasts = pace.forecasts if scene.first_token_s is None else ()
    evidence = _context(case) + kv_facts(pace) + [client_fact(scene)]
    evidence += [forecast_fact(forecast, case.limit) for forecast in forecasts]
    return Verdict(
        outcome="inconclusive",
        baseline=case.baseline,
        forecasts=forecasts,
        ranks=scene.findings(),
        evidence_for=tuple(evidence),
        evidence_against=tuple(doubts(scene, case.baseline)),
        reason=reason,
    )


def _crawling(case: _Case, crawl: Crawl, limit: Limit) -> Verdict:
    pace, scene = case.pace, case.scene
    evidence = _context(case) + [forecast_fact(forecast, limit) for forecast in pace.forecasts]
    evidence += [*kv_facts(pace), client_fact(scene)]
    if case.baseline is not None:
        evidence.append(baseline_fact(case.baseline, limit))
    against = doubts(scene, case.baseline)
    against += [forecast_fact(forecast, limit) for forecast in pace.forecasts if forecast.low_s <= limit.seconds]
    if crawl.proof != "elapsed":
        against += foresight_facts(pace, limit, elapsed_s=scene.moment.elapsed_s)
    if scene.unwatched:
        against.append(EvidenceItem(source="sampling", text=NOT_KNOWN_WHERE))
    elif crawl.suspicion is None:
        names = ", ".join(signature.function for signature in case.scenario.signatures)
        text = f"the time does not show in {names}: {crawl.function or 'nothing'} is where the host waits"
        against.append(EvidenceItem(source="stacks", text=f"{text}, not what the GPU runs"))
    return Verdict(
        outcome="stalled",
        mode="crawling",
        kind=None if scene.unwatched else crawl.kind,
        function=crawl.function,
        role=crawl.suspicion.role if crawl.suspicion else (crawl.standing.worker.role if crawl.standing else None),
        baseline=case.baseline,
        forecasts=pace.forecasts,
        ranks=scene.findings(),
        evidence_for=tuple(evidence),
        evidence_against=tuple(against),
        decided_at_s=scene.moment.now_s,
    )


def _flat(case: _Case, flat: Flat, limit: Limit) -> Verdict:
    scene = case.scene
    text = f"KV cache use and the token counters have stood still for {flat.seconds:.1f} s"
    evidence = [EvidenceItem(source="kv-cache-usage", text=text), client_fact(scene)]
    if case.baseline is not None:
        evidence.append(baseline_fact(case.baseline, limit))
    against = [*doubts(scene, case.baseline), EvidenceItem(source="sampling", text=NOT_KNOWN_WHERE)]
    if not flat.ever_moved:
        text = "nothing was ever seen to advance: a chunk that takes so long looks the same, and would be crawling"
        against.append(EvidenceItem(source="kv-cache-usage", text=text))
    return Verdict(
        outcome="stalled",
        mode="stuck",
        baseline=case.baseline,
        evidence_for=tuple(evidence),
        evidence_against=tuple(against),
        decided_at_s=scene.moment.now_s,
    )


def _stuck(case: _Case, standstill: Standstill) -> Verdict:
    scene = case.scene
    seconds = standstill.until_s - standstill.since_s
    evidence = [
        EvidenceItem(
            source="stacks",
            text=f"{standstill.words}: the same in its last {standstill.samples} samples over {seconds:.1f} s, and no "
            "other worker moved",
        )
    ]
    if standstill.sources_kv:
        text = f"KV cache use and the token counters stood still over the same {seconds:.1f} s"
        evidence.append(EvidenceItem(source="kv-cache-usage", text=text))
    evidence += [client_fact(scene), *_context(case)]
    against = doubts(scene, None)
    if standstill.kind in ("gpu-wait", "collective-wait"):
        text = "a frame at a sync point says where the host waits, not what the GPU runs"
        against.append(EvidenceItem(source="stacks", text=text))
    if standstill.maybe_slow:
        text = f"nothing was ever seen to advance: a single pass that takes longer than {seconds:.0f} s looks the same"
        against.append(EvidenceItem(source="loop-variables", text=text))
    return Verdict(
        outcome="stalled",
        mode="stuck",
        kind=standstill.kind,
        function=standstill.function,
        role=standstill.role,
        baseline=case.baseline,
        ranks=scene.findings(),
        evidence_for=tuple(evidence),
        evidence_against=tuple(against),
        decided_at_s=scene.moment.now_s,
    )
