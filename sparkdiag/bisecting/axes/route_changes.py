"""The commits at which the source says that the looked-for kernel comes or goes: tried first."""

import time
from collections.abc import Callable, Collection
from pathlib import Path

from sparkdiag.bisecting.axes.axis import Axis, ChosenAxis
from sparkdiag.bisecting.search.route_order import MOST_PREDICTED, halving_order, on_axis, turning
from sparkdiag.environment.blobs import open_blobs
from sparkdiag.environment.commit_range import ClonedRange
from sparkdiag.errors import SparkdiagError
from sparkdiag.evidence.bisection import Target
from sparkdiag.evidence.route import Route, RouteChange, RouteConfig
from sparkdiag.harmless.excerpt import one_line
from sparkdiag.routing.across.answers import FindRoute
from sparkdiag.routing.across.history import route_history
from sparkdiag.routing.route import find_route
from sparkdiag.routing.source.source_tree import SourceTree
from sparkdiag.scenario.model import Scenario

PATIENCE_S = 20.0
"""A prediction saves a trial or two, of minutes each; a search does not wait longer for one than this."""
_LONGEST = 200
_UNPREDICTED = "no commit is predicted from the source"


class _OutOfTimeError(Exception):
    """The prediction takes longer than it is worth."""


def _bounded(find: FindRoute, *, patience_s: float, clock: Callable[[], float]) -> FindRoute:
    """``find`` with a bound in time on all its calls together."""
    until_s = clock() + patience_s

    def bounded(tree: SourceTree, *, scenario: Scenario, config: RouteConfig) -> Route:
        if clock() > until_s:
            raise _OutOfTimeError
        return find(tree, scenario=scenario, config=config)

    return bounded


def with_route_changes(
    chosen: ChosenAxis,
    *,
    scenario: Scenario,
    config: RouteConfig,
    target: Target,
    named: bool,
    find: FindRoute = find_route,
    patience_s: float = PATIENCE_S,
    clock: Callable[[], float] = time.monotonic,
) -> ChosenAxis:
    """``chosen`` with the route's changes among what it predicts, in front of the scenario's suspects; behind what the
    user named where ``named``. Never raises for what the clone holds: then a note says why nothing is predicted.
    """
    functions = looked_for(target, scenario)
    if not functions or chosen.axis.kind != "commits" or chosen.axis.read_from is None:
        return chosen
    bounded = _bounded(find, patience_s=patience_s, clock=clock)
    try:
        changes = _changes(chosen.axis, functions, scenario=scenario, config=config, find=bounded)
    except _OutOfTimeError:
        return _noted(chosen, f"{_UNPREDICTED}: reading it took longer than {patience_s:g} s")
    except SparkdiagError as error:
        return _noted(chosen, f"{_UNPREDICTED}: {error.message}")
    except Exception as error:  # a search goes without a prediction as well
        return _noted(chosen, f"{_UNPREDICTED}: {type(error).__name__}: {error}")
    order = halving_order(changes, chosen.axis.history, old=chosen.axis.old, new=chosen.axis.new)[:MOST_PREDICTED]
    because = {sha: changes[sha] for sha in order}
    before, after = (chosen.predicted, ()) if named else ((), chosen.predicted)
    return chosen.model_copy(
        update={
            "predicted": tuple(dict.fromkeys((*before, *order, *after))),
            "predicted_because": {**chosen.predicted_because, **because},
        }
    )


def looked_for(target: Target, scenario: Scenario) -> frozenset[str]:
    """The functions whose coming and going the source can predict; none for a crash or a wrong answer. Pure."""
    if target.what == "frame" and target.frame is not None:
        return frozenset({target.frame.rsplit(".", 1)[-1]})
    if target.what == "stall":
        return frozenset(signature.function for signature in scenario.signatures)
    return frozenset()


def _changes(
    axis: Axis, functions: Collection[str], *, scenario: Scenario, config: RouteConfig, find: FindRoute
) -> dict[str, str]:
    """By point, what changes there."""
    with open_blobs(Path(axis.read_from or "")) as reader:
        span = ClonedRange(reader, old=axis.old, new=axis.new)
        history = route_history(span, scenario=scenario, config=config, find=find)
        wanted = {change.sha: change for change in turning(history.changes, functions)}
        places = on_axis(tuple(wanted), span.parents, axis.history)
    return {point: _because(wanted[sha], point) for sha, point in places.items()}


def _because(change: RouteChange, point: str) -> str:
    """``route: _fp8_mqa_logits_torch -> fp8_mqa_logits_triton``."""
    before, after = (" or ".join(names) or "nothing" for names in (change.before, change.after))
    where = "" if change.sha == point else f" (by {change.sha[:10]}, which it brings)"
    sure = "" if change.exact else ", as far as it can be told"
    return one_line(f"route: {before} -> {after}{sure}{where}", limit=_LONGEST)


def _noted(chosen: ChosenAxis, note: str) -> ChosenAxis:
    return chosen.model_copy(update={"notes": (*chosen.notes, one_line(note, limit=_LONGEST))})
