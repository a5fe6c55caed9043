"""How far a prefill had come, moment by moment: what a picture of its progress is drawn from. Pure."""

from sparkdiag.evidence.base import Value
from sparkdiag.evidence.observation import Observation
from sparkdiag.judging.progress import plan_of, work_points
from sparkdiag.judging.scene import scene_of
from sparkdiag.judging.seen import seen_after
from sparkdiag.scenario.model import Scenario


class CoursePoint(Value):
    """``fraction`` of the prefill's work that was finished at ``at_s`` (run clock), a later chunk weighing more."""

    at_s: float
    fraction: float


def course_of(observation: Observation, scenario: Scenario) -> tuple[CoursePoint, ...]:
    """By the suspect's loop variables, the same points that the forecast rests on; none where they were not seen."""
    scene = scene_of(observation, scenario, seen_after(None, observation, scenario))
    if scene is None:
        return ()
    plan = plan_of(scenario, prompt_tokens=scene.sent.tokens, dcp=scene.dcp, positions=scene.positions)
    if plan is None or plan.total()[1] <= 0:
        return ()
    whole = plan.total()[1]
    return tuple(
        CoursePoint(at_s=point.at_s, fraction=min(1.0, max(0.0, point.weighted / whole)))
        for point in work_points(scene.positions, plan)
    )
