"""What a search is about to do, in words and as a document: said before it starts, and all that ``--dry-run`` does."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sparkdiag.bisecting.asking.resolve import Question
from sparkdiag.bisecting.question.request import BisectRequest
from sparkdiag.bisecting.steps.forecast import Forecast
from sparkdiag.bisecting.steps.state import commit_of
from sparkdiag.environment.overlaid import plan_for
from sparkdiag.environment.spec import OverlaySpec, PrecompiledSpec, SourceSpec, parse_spec
from sparkdiag.errors import SparkdiagError
from sparkdiag.evidence.base import SCHEMA, Value
from sparkdiag.reporting.bisection_phrases import day, short

HOUR_MIN = 60.0
MOST_PREDICTIONS = 6


def forecast_line(expected: Forecast) -> str:
    """``2 ends, 2 controls, about 3 to 5 trials between, about 15 minutes``."""
    parts = [_count(expected.ends, "end"), _count(expected.controls, "control")]
    least, most = expected.search_least, expected.search_most
    between = f"{most}" if least == most else f"{least} to {most}"
    parts.append(f"about {between} {'trial' if between == '1' else 'trials'} between" if most else "")
    parts += [_count(expected.confirm, "confirmation")]
    return ", ".join([*filter(None, parts), _minutes(expected)])


class PlannedEnvironment(Value):
    """How the environment of one point would come about."""

    sha: str
    kind: str
    because: str
    commands: tuple[str, ...] = ()
    not_run: bool = False
    """Planned only: sparkdiag would refuse to make it, and the point would be skipped."""


def planned_environments(request: BisectRequest, expected: Forecast) -> tuple[PlannedEnvironment, ...]:
    """Of the ends and of what is tried first, in a clone; asks git, builds nothing."""
    axis = request.axis
    if axis.repo is None:
        return ()
    shas = dict.fromkeys((axis.old, axis.new, *expected.first))
    return tuple(_planned(sha, axis.env_specs.get(sha, request.repro.env_spec), repo=Path(axis.repo)) for sha in shas)


def _planned(sha: str, spec: str, *, repo: Path) -> PlannedEnvironment:
    parsed = parse_spec(spec)
    if not isinstance(parsed, (OverlaySpec, PrecompiledSpec, SourceSpec)):
        return PlannedEnvironment(sha=sha, kind=spec.partition(":")[0], because="as asked")
    try:
        plan = plan_for(parsed, repo=repo)
    except SparkdiagError as error:
        remedy = f"; next: {error.remedy}" if error.remedy else ""
        return PlannedEnvironment(sha=sha, kind="none", because=f"{error.message}{remedy}", not_run=True)
    return PlannedEnvironment(
        sha=sha, kind=plan.kind, because=plan.because, commands=plan.commands, not_run=plan.not_run
    )


def plan_lines(question: Question, expected: Forecast, environments: Sequence[PlannedEnvironment] = ()) -> list[str]:
    """The plan for a terminal, a line each."""
    request = question.request
    scenario = request.repro.scenario
    lines = [
        f"would search: {_count(len(request.axis.history.commits) - 1, _point_name(request))} after the older end",
        f"older end:    {_named(request, request.axis.old)}",
        f"newer end:    {_named(request, request.axis.new)}",
        f"looking for:  {request.target}, scenario {scenario.name} at {_size(request)}",
        f"forecast:     {forecast_line(expected)}",
    ]
    lines += [f"{'predicted:' if not place else '':<13} {text}" for place, text in enumerate(_predictions(request))]
    lines += [f"{'first:' if not place else '':<13} {_named(request, sha)}" for place, sha in enumerate(expected.first)]
    lines += [f"{'environment:' if not place else '':<13} {text}" for place, text in enumerate(_environments(request))]
    return [*lines, *_planned_lines(request, environments)]


def _predictions(request: BisectRequest) -> list[str]:
    """The predicted points, the first tried first, each with its reason."""
    told = request.predicted[:MOST_PREDICTIONS]
    lines = [f"{_named(request, sha)}: {request.predicted_because.get(sha, 'no reason is known')}" for sha in told]
    more = len(request.predicted) - len(told)
    return [*lines, f"and {more} more"] if more else lines


def _planned_lines(request: BisectRequest, environments: Sequence[PlannedEnvironment]) -> list[str]:
    """Points with the same plan share a line."""
    alike: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for one in environments:
        kind = "cannot be had" if one.kind == "none" else f"{one.kind}, not run" if one.not_run else one.kind
        alike.setdefault((f"{kind}: {one.because}", one.commands), []).append(short(request.axis.kind, one.sha))
    lines = []
    for (text, commands), points in alike.items():
        lines.append(f"{'':<13} {', '.join(points)}: {text}")
        lines += [f"{'':<15} {command}" for command in commands]
    return lines


def plan_document(
    question: Question, expected: Forecast, environments: Sequence[PlannedEnvironment] = ()
) -> dict[str, Any]:
    """The same for programs."""
    request = question.request
    axis = request.axis
    return {
        "schema": SCHEMA,
        "dry_run": True,
        "because": question.because,
        "notes": list(question.notes),
        "axis": axis.kind,
        "repo": axis.repo,
        "old_end": _point(request, axis.old),
        "new_end": _point(request, axis.new),
        "points": len(axis.history.commits) - 1,
        "target": str(request.target),
        "scenario": request.repro.scenario.name,
        "dcp": None if axis.kind == "dcp" else request.repro.scenario.server.dcp,
        "predicted": [
            _point(request, sha) | {"because": request.predicted_because.get(sha)} for sha in request.predicted
        ],
        "forecast": expected.model_dump(mode="json", exclude={"first"})
        | {"trials_least": expected.trials_least, "trials_most": expected.trials_most},
        "first": [_point(request, sha) for sha in expected.first],
        "environments": _environments(request),
        "environment_plans": [one.model_dump(mode="json") for one in environments],
        "suspect_paths": list(request.suspect_paths),
    }


def _environments(request: BisectRequest) -> list[str]:
    """By kind, how many points use it; which one where they all use the same."""
    specs = [request.axis.env_specs.get(commit.sha, request.repro.env_spec) for commit in request.axis.history.commits]
    if len(set(specs)) == 1:
        return [specs[0] + (", a tree of its own for each commit" if request.axis.lab else "")]
    kinds: dict[str, list[str]] = {}
    for spec in specs:
        kind, _, rest = spec.partition(":")
        base = f"{kind} over {rest.partition('@')[2] or 'the nearest release'}" if kind == "overlay" else kind
        kinds.setdefault(base, []).append(spec)
    return [f"{name}, one for each of {len(members)} points" for name, members in kinds.items()]


def _size(request: BisectRequest) -> str:
    return "each DCP size" if request.axis.kind == "dcp" else f"DCP {request.repro.scenario.server.dcp}"


def _point_name(request: BisectRequest) -> str:
    return {"commits": "commit", "releases": "release"}.get(request.axis.kind, "value")


def _named(request: BisectRequest, sha: str) -> str:
    commit = commit_of(request, sha)
    subject = f' "{commit.subject}"' if commit.subject and request.axis.kind == "commits" else ""
    when = f" ({day(commit.committed_at)})" if day(commit.committed_at) else ""
    return f"{short(request.axis.kind, sha)}{subject}{when}"


def _point(request: BisectRequest, sha: str) -> dict[str, str | None]:
    commit = commit_of(request, sha)
    return {"sha": sha, "subject": commit.subject, "committed_at": commit.committed_at or None}


def _count(number: int, name: str) -> str:
    return f"{number} {name}{'' if number == 1 else 's'}" if number else ""


def _minutes(expected: Forecast) -> str:
    least, most = expected.minutes_least, expected.minutes_most
    if most >= 2 * HOUR_MIN:
        return f"about {least / HOUR_MIN:.1f} to {most / HOUR_MIN:.1f} hours"
    low, high = max(round(least), 1), max(round(most), 1)
    return f"about {low} to {high} minutes" if low != high else f"about {high} minute{'s' if high > 1 else ''}"
