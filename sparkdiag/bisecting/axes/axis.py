"""What is searched over: points between two ends, and how the run of one point is asked for. Pure."""

from sparkdiag.bisecting.search.history import History
from sparkdiag.errors import DefectError
from sparkdiag.evidence.base import Value
from sparkdiag.evidence.bisection import AxisKind
from sparkdiag.reproducing.request import ReproRequest
from sparkdiag.scenario.model import Scenario
from sparkdiag.scenario.overrides import override

NAMED, SUSPECTED = "--suspect", "the scenario's suspect commit"
"""Why a commit is predicted that no change of the route predicts."""


class Axis(Value):
    """Points from ``old`` to ``new``, both among ``history``'s: a DAG of commits, or a chain of values."""

    kind: AxisKind
    history: History
    old: str
    new: str
    repo: str | None = None
    """The clone the commits live in, which a run is told of; None for the lab's own history and for other axes."""
    read_from: str | None = None
    """Where commits are read: ``repo``, or the lab's own repository; None for other axes."""
    lab: bool = False
    """The commits are the lab's: a point is run as ``ReproRequest.revision``."""
    stand_in: bool = False
    """``new`` changes no watched file on an axis of those that do: it stands for all that was left out before it."""
    env_specs: dict[str, str] = {}
    """The environment of each point where it differs by point: ``overlay:SHA@BASE``, ``release:VERSION``."""


class ChosenAxis(Value):
    """An axis as it was asked for, and what was found out on the way."""

    axis: Axis
    suspect_paths: tuple[str, ...] = ()
    """The watched files that exist in the range, relative to the repository; ``Commit.suspect_blobs`` follows them."""
    predicted: tuple[str, ...] = ()
    """The points of the axis that are thought to bring the change, the likeliest first."""
    predicted_because: dict[str, str] = {}
    """By point, why it is thought to: ``route: _fp8_mqa_logits_torch -> fp8_mqa_logits_triton``, ``--suspect``."""
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
            return template.model_copy(update={"scenario": scenario_at(template.scenario, kind=axis.kind, value=point)})


def scenario_at(scenario: Scenario, *, kind: AxisKind, value: str) -> Scenario:
    """``scenario`` at one value of a value axis; all else stays, the model length too, so that trials can be compared.

    Raises ``UsageError`` where the scenario does not allow it.
    """
    typed_args = len(scenario.server.args)  # checked when they were typed, or read
    if kind == "dcp":
        return override(scenario, dcp=int(value), typed_args=typed_args)
    if kind == "prompt-tokens":
        return override(scenario, prompt_tokens=int(value), typed_args=typed_args)
    raise DefectError(f"an axis of {kind} holds no values of the scenario")
