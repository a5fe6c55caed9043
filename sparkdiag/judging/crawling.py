"""Crawling: it advances, but its forecast's lower bound lies beyond the factor times the healthy time."""

from dataclasses import dataclass
from typing import Literal

from sparkdiag.evidence.verdict import Forecast
from sparkdiag.judging.pace import Limit, Pace
from sparkdiag.judging.process_set import Standing, standing_of
from sparkdiag.judging.scene import Scene
from sparkdiag.judging.seen import signatures_for
from sparkdiag.judging.signature import kind_of_state
from sparkdiag.scenario.model import Scenario, Signature

SUSPECT_SHARE = 0.6
"""A suspect on the stack in fewer of a worker's samples does not explain the time."""

LOOK_TIMES_HEALTHY, LOOK_AT_MOST_S = 2.5, 60.0
"""A forecast counts once this many healthy times (at most a minute) have gone by: a busy host or a kernel compiled
on first use makes a slow start of some seconds that says nothing about the rest."""
SLOW_START_S, SLOW_START_TIMES_HEALTHY, FAR_BEYOND = 25.0, 4.0, 4.0
"""And not before so many seconds (or healthy times, if that is less), unless it is this many times beyond the limit: a
forecast knows only the pace that was seen, and a prefill that goes at 15 times the healthy time for its first 20 s may
end at 8. One that goes at 40 times is left to the first rule."""
QUIET_S = 15.0
"""Without an advance for longer than this, and than twice what was seen to pass between two of them, a prefill may have
stopped. Two late looks in a row are shorter."""

FRESH_S, FRESH_SHARE = 5.0, 0.2
"""What a forecast from loop variables rests on must be as fresh as this: so many seconds, or this share of the time."""

Proof = Literal["loop-variables", "kv-cache-usage", "elapsed"]


@dataclass(frozen=True, slots=True)
class Suspicion:
    """The worker that shows a suspect function most."""

    pid: int
    name: str
    role: str
    signature: Signature
    share: float
    samples: int


@dataclass(frozen=True, slots=True)
class Crawl:
    """Found crawling; ``suspicion`` is None where the time shows elsewhere than in a suspect function."""

    proof: Proof
    suspicion: Suspicion | None
    standing: Standing | None
    confirmed_by: tuple[str, ...]

    @property
    def kind(self) -> str:
        if self.suspicion is not None:
            return self.suspicion.signature.kind
        return kind_of_state(self.standing.state) if self.standing else "unknown"

    @property
    def function(self) -> str | None:
        if self.suspicion is not None:
            return self.suspicion.signature.function
        return self.standing.function if self.standing else None


@dataclass(frozen=True, slots=True)
class NotCrawling:
    """Not concluded; ``reason`` is for people."""

    reason: str


def suspicion_of(scene: Scene, scenario: Scenario) -> Suspicion | None:
    """The worker with the largest share of samples in a suspect function, among those looked at often enough."""
    best: Suspicion | None = None
    for worker, seen in zip(scene.workers, scene.seen, strict=True):
        tally = seen.prefill
        share = tally.suspect_share
        if tally.total < scenario.patience.min_samples or not tally.suspects:
            continue
        most = max(sorted(tally.suspects), key=lambda function: tally.suspects[function])
        signature = next((one for one in signatures_for(worker, scenario) if one.function == most), None)
        if signature is not None and (best is None or share > best.share):
            best = Suspicion(
                pid=worker.pid,
                name=worker.name,
                role=worker.role,
                signature=signature,
                share=share,
                samples=tally.total,
            )
    return best


def _main_standing(scene: Scene, *, min_samples: int) -> Standing | None:
    """Where the workers are when it is no suspect: whoever waits for no other process first."""
    pairs = zip(scene.workers, scene.seen, strict=True)
    standings = [standing_of(worker, seen.prefill) for worker, seen in pairs]
    looked = [standing for standing in standings if standing.samples >= min_samples]
    if not looked:
        return None
    order = {"idle": 3, "reply-wait": 3, "collective-wait": 1}
    return min(looked, key=lambda standing: (order.get(standing.state, 0), -standing.share, standing.worker.pid))


def _confirmations(scene: Scene, pace: Pace, limit: Limit, *, proof: Proof) -> tuple[str, ...]:
    """Sources other than the proof's own (and the stacks) that say the same."""
    found = []
    if proof != "kv-cache-usage" and pace.kv is not None and pace.kv.best_s > limit.seconds:
        found.append("kv-cache-usage")
    flat, bound = pace.kv_pace, pace.kv_flat_limit_s(limit)
    if "kv-cache-usage" not in found and proof != "kv-cache-usage" and flat and bound and flat.flat_s > bound:
        found.append("kv-cache-usage")
    if proof != "loop-variables" and pace.loop is not None and pace.loop.best_s > limit.seconds:
        found.append("loop-variables")
    if scene.moment.elapsed_s > 2 * limit.healthy_s:
        found.append("client")
    return tuple(found)


def _contradicted(pace: Pace, limit: Limit) -> bool:
    """The clock that is not the proof thinks it no stall: of a pace that has just changed it may have heard first."""
    return any(forecast.best_s <= limit.seconds for forecast in pace.forecasts)


def look_after_s(low_s: float, limit: Limit) -> float:
    """When a forecast that promises at least ``low_s`` counts, after sending."""
    soon_s = LOOK_TIMES_HEALTHY * limit.healthy_s
    if low_s < FAR_BEYOND * limit.seconds:
        soon_s = max(soon_s, min(SLOW_START_S, SLOW_START_TIMES_HEALTHY * limit.healthy_s))
    return min(soon_s, LOOK_AT_MOST_S)


def sure_low_s(forecast: Forecast) -> float:
    """The interval holds 90 % of the truths at one moment, but a run is judged at every moment of its life, and one
    early lower bound too high is a wrong verdict: half the interval's lower part is added as a margin."""
    return forecast.low_s - 0.5 * (forecast.best_s - forecast.low_s)


def _forecast_proof(pace: Pace, limit: Limit) -> tuple[Proof, float] | None:
    """The clock that foresees a stall, and what it promises at least."""
    forecast = pace.loop if pace.loop is not None else pace.kv
    if forecast is None or sure_low_s(forecast) <= limit.seconds:
        return None
    return forecast.source, sure_low_s(forecast)


def find_crawl(scene: Scene, scenario: Scenario, pace: Pace, limit: Limit) -> Crawl | NotCrawling:
    """Judge the pace of a prefill that still goes on."""
    patience = scenario.patience
    suspicion = suspicion_of(scene, scenario)
    in_suspect = suspicion is not None and suspicion.share >= SUSPECT_SHARE
    standing = _main_standing(scene, min_samples=patience.min_samples)
    if scene.moment.now_s - scene.counts_from_s > limit.seconds:
        return past_the_limit(scene, limit, suspicion=suspicion if in_suspect else None, standing=standing)
    if not in_suspect:
        return NotCrawling(_why_no_suspect(scene, patience.min_samples))
    if scene.crowd.starved_until_s is not None:
        # Every forecast rests on a pace in which that time has a part.
        return NotCrawling(f"{scene.crowd.words}: only {limit.seconds:.0f} s without a first token from then on count")
    found = _forecast_proof(pace, limit)
    if found is None:
        return NotCrawling(why_no_proof(pace, limit))
    proof, low_s = found
    if scene.moment.elapsed_s < look_after_s(low_s, limit):
        return NotCrawling("looks like a stall, but a slow start could look the same this early")
    still = why_still(scene)
    if still is not None:
        return NotCrawling(still)
    if proof == "loop-variables" and pace.loop_lately is not None and pace.loop_lately.best_s <= limit.seconds:
        return NotCrawling("not certain yet: of late it goes faster than at the start")
    if _contradicted(pace, limit):
        return NotCrawling("the two clocks contradict each other")
    confirmed = _confirmations(scene, pace, limit, proof=proof)
    if not confirmed:
        return NotCrawling("only one source foresees a stall so far")
    return Crawl(proof=proof, suspicion=suspicion, standing=standing, confirmed_by=confirmed)


def _why_no_suspect(scene: Scene, min_samples: int) -> str:
    most = max((seen.prefill.total for seen in scene.seen), default=0)
    if most < min_samples:
        return f"only {most} of the {min_samples} usable samples a worker that a finding needs"
    return "no worker spends most of its time in a suspect function"


def why_no_proof(pace: Pace, limit: Limit) -> str:
    """What the pace looks like, where no forecast lies safely beyond the limit."""
    if not pace.forecasts:
        return "too few points for a forecast"
    first = pace.forecasts[0]
    text = (
        f"forecast {first.best_s:.1f} s ({first.low_s:.1f} to {first.high_s:.1f} s) to the first token, "
        f"{first.best_s / limit.healthy_s:.1f} times the healthy {limit.healthy_s:.1f} s; "
        f"a stall begins at {limit.factor:g} times"
    )
    if first.best_s > limit.seconds:
        return f"not certain yet: {text}, and the lower bound is not safely beyond that"
    return f"slow: {text}"


def why_still(scene: Scene) -> str | None:
    """None while it is known to get on: what has stopped for good is stuck, however slow it was before."""
    if scene.moved_s is None:
        return "the suspect function was not seen to advance yet"
    quiet_s = scene.moment.now_s - scene.moved_s
    if quiet_s > max(QUIET_S, 2 * scene.longest_still_s):
        return f"nothing was seen to advance in the last {quiet_s:.0f} s: stuck, if that lasts"
    unseen_s = scene.moment.now_s - scene.positions[-1].at_s if scene.positions else 0.0
    if unseen_s > max(FRESH_S, FRESH_SHARE * scene.moment.elapsed_s):
        return f"no sample showed the loop variables in the last {unseen_s:.0f} s: their pace may have changed"
    return None


def past_the_limit(
    scene: Scene, limit: Limit, *, suspicion: Suspicion | None, standing: Standing | None
) -> Crawl | NotCrawling:
    """No first token after the factor times the healthy time is a proof by itself, if the prefill is seen to move
    after that: one that stopped before is stuck."""
    limit_s = scene.counts_from_s + limit.seconds
    sources = []
    if scene.advanced_s is not None and scene.advanced_s > limit_s:
        sources.append("loop-variables")
    if len(scene.meters.rises) >= 2 and scene.meters.rises[-1].seen_s > limit_s:
        sources.append("kv-cache-usage")
    if not sources:
        return NotCrawling("beyond the factor times the healthy time, but since then nothing was seen to advance (yet)")
    if suspicion is None and scene.meters.others:
        return NotCrawling("beyond the factor times the healthy time, but the server also ran other requests")
    if standing is not None and suspicion is None and standing.state in ("idle", "reply-wait"):
        return NotCrawling("beyond the factor times the healthy time, but the workers are seen waiting for work")
    return Crawl(proof="elapsed", suspicion=suspicion, standing=standing, confirmed_by=tuple(sources))
