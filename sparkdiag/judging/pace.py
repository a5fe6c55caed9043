"""How fast the prefill goes: both forecasts and the advance, put beside the healthy time."""

from dataclasses import dataclass, replace

from sparkdiag.evidence.observation import Observation
from sparkdiag.evidence.verdict import Baseline, Forecast
from sparkdiag.judging.forecast import KvPace, forecast_from_kv, forecast_from_loops, kv_pace, kv_tokens
from sparkdiag.judging.numbers import finite
from sparkdiag.judging.progress import PrefillPlan, WorkPoint, plan_of, work_points
from sparkdiag.judging.scene import Scene
from sparkdiag.scenario.model import Scenario


@dataclass(frozen=True, slots=True)
class Limit:
    """Beyond ``seconds`` (factor x healthy) slow is crawling."""

    healthy_s: float
    factor: float

    @property
    def seconds(self) -> float:
        return self.healthy_s * self.factor


@dataclass(frozen=True, slots=True)
class Pace:
    """The prefill's pace so far."""

    plan: PrefillPlan | None
    loop: Forecast | None
    loop_lately: Forecast | None
    """From the later half of the time alone: a slow start that is over does not show here."""
    kv: Forecast | None
    kv_pace: KvPace | None
    loop_advances: bool

    @property
    def forecasts(self) -> tuple[Forecast, ...]:
        return tuple(forecast for forecast in (self.loop, self.kv) if forecast is not None)

    def kv_flat_limit_s(self, limit: Limit) -> float | None:
        """Standing longer than this on one level of KV use is itself beyond the limit: the factor times the healthy
        time of the longest chunk (a healthy prefill's last chunk takes at most twice its mean one)."""
        if self.plan is None:
            return None
        return 2 * limit.seconds / max(1.0, self.plan.chunks)


def limit_of(scenario: Scenario, baseline: Baseline | None) -> Limit | None:
    """None without a usable baseline."""
    healthy = finite(baseline.seconds) if baseline else None
    factor = finite(scenario.baseline.factor)
    if healthy is None or healthy <= 0 or factor is None:
        return None
    return Limit(healthy_s=healthy, factor=factor)


def _agrees(pace: KvPace, points: list[WorkPoint], plan: PrefillPlan) -> bool:
    """Whether blocks and loop variables tell of about the same place in the prompt. They do not where the cache's size
    is reported in another unit (with DCP a block holds more tokens than it says) or is shared with other requests."""
    if not points or not pace.rises:
        return True
    seen = points[-1].chunks * plan.chunk_tokens
    allotted = max((tokens for at_s, tokens in pace.rises if at_s <= points[-1].at_s), default=0.0)
    return 0.8 * seen - 2 * plan.chunk_tokens <= allotted <= 1.25 * seen + 4 * plan.chunk_tokens


def _later_half(points: list[WorkPoint]) -> list[WorkPoint]:
    """By time: of a long run there are fewer points of the past."""
    if not points:
        return []
    middle_s = (points[0].at_s + points[-1].at_s) / 2
    return [point for point in points if point.at_s >= middle_s]


def pace_of(scene: Scene, scenario: Scenario, observation: Observation) -> Pace:
    """Both clocks read; each is None where it cannot be."""
    positions = scene.positions
    plan = plan_of(scenario, prompt_tokens=scene.sent.tokens, dcp=scene.dcp, positions=positions)
    cache = kv_tokens(observation.kv_capacity, dcp=scene.dcp)
    kv = kv_pace(scene.meters, cache_tokens=cache, moment=scene.moment)
    points = work_points(positions, plan) if plan is not None else []
    loop = forecast_from_loops(points, plan, scene.moment) if plan is not None else None
    lately = forecast_from_loops(_later_half(points), plan, scene.moment) if plan is not None else None
    if kv is not None and plan is not None and not _agrees(kv, points, plan):
        kv = replace(kv, tokens_known=False)
    return Pace(
        plan=plan,
        loop=loop,
        loop_lately=lately,
        kv=forecast_from_kv(kv, plan, scene.moment) if kv is not None and plan is not None else None,
        kv_pace=kv,
        loop_advances=scene.advanced_s is not None,
    )
