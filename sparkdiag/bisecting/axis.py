"""What is searched over: points between two ends, and how the run of one point is asked for. Pure."""

from sparkdiag.bisecting.history import History
from sparkdiag.errors import DefectError
from sparkdiag.evidence.base import Value
from sparkdiag.evidence.bisection import AxisKind
from sparkdiag.reproducing.request import ReproRequest
from sparkdiag.scenario.model import Scenario
from sparkdiag.scenario.overrides import override


class Axis(Value):
    """Points from ``old`` to ``new``, both among ``history``'s: a DAG of commits, or a chain of values."""

    kind: AxisKind
    history: History
    old: str
    new: str
    repo: str | None = None
    """The clone the commits live in; None for the lab's own history and for other axes."""
    lab: bool = False
    """The commits are the lab's: a point is run as ``ReproRequest.revision``."""
    env_specs: dict[str, str] = {}
    """The environment of each point where it differs by point: ``overlay:SHA@BASE``, ``release:VERSION``."""


class ChosenAxis(Value):
    """An axis as it was asked for, and what was found out on the way."""

    axis: Axis
    suspect_paths: tuple[str, ...] = ()
    """The watched files that exist in the range, relative to the repository; ``Commit.suspect_blobs`` follows them."""
    predicted: tuple[str, ...] = ()
    """The points of the axis that are thought to bring the change, the likeliest first."""
    notes: tuple[str, ...] = ()
    """One line each: how the ends came about, which predicted commits are not here, what was left out."""


def trial_request(template: ReproRequest, axis: Axis, sha: str) -> ReproRequest:
    """The run of one point: ``template`` with what the axis changes.

    Raises ``UsageError`` where the scenario does not allow the value, ``KeyError`` for a point that is not on the axis.
    """
    point = axis.history.commits[axis.history.index[sha]].sha
    match axis.kind:
        case "commits" if axis.lab:
            return template.model_copy(update={"revision": point})
        case "commits" | "releases":
            spec = axis.env_specs.get(point, template.env_spec)
            return template.model_copy(update={"env_spec": spec, "repo": axis.repo or template.repo})
        case "dcp" | "prompt-tokens":
            return template.model_copy(update={"scenario": scenario_at(template.scenario, axis=axis, value=int(point))})


def scenario_at(scenario: Scenario, *, axis: Axis, value: int) -> Scenario:
    """``scenario`` at one value of a value axis.

    On an axis of prompt lengths the model length is the same for all, so that length alone differs between two trials:
    the scenario's, or what the longest prompt needs. Raises ``UsageError``.
    """
    if axis.kind == "dcp":
        return override(scenario, dcp=value)
    if axis.kind != "prompt-tokens":
        raise DefectError(f"an axis of {axis.kind} holds no values of the scenario")
    longest = max(int(commit.sha) for commit in axis.history.commits)
    return override(with_room_for(scenario, longest), prompt_tokens=value)


def with_room_for(scenario: Scenario, prompt_tokens: int) -> Scenario:
    """``scenario`` with a model length that holds such a prompt and its answer; unset stays unset. Pure."""
    length = scenario.server.max_model_len
    if length is None:
        return scenario
    needed = max(length, prompt_tokens + scenario.prompt.max_output_tokens)
    return scenario.model_copy(update={"server": scenario.server.model_copy(update={"max_model_len": needed})})
