"""``--axis dcp=1,2,4`` and ``--axis prompt-tokens=16K..468K``: a chain of values, the smallest first. Pure."""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import lcm
from typing import Literal, NamedTuple

from sparkdiag.bisecting.axes.axis import Axis, ChosenAxis, scenario_at
from sparkdiag.bisecting.search.history import History
from sparkdiag.errors import UsageError
from sparkdiag.evidence.bisection import Commit
from sparkdiag.scenario.model import Scenario
from sparkdiag.scenario.parallel import misfit
from sparkdiag.scenario.shown import shown

ValueKind = Literal["dcp", "prompt-tokens"]

MAX_POINTS = 1000
"""A finer grid says nothing: halving a thousand takes ten trials, and a prefill chunk is the unit of the work."""
MAX_TEXT = 1000
SUFFIXES = {"": 1, "k": 1024, "m": 1024 * 1024}
"""K is 1,024: chunk and model lengths are multiples of it, as is the incident's prompt of 450,560 tokens (440K)."""
_NUMBER = re.compile(r"([0-9][0-9_]{0,15})([kKmM]?)")
_EXAMPLE = "--axis dcp=1,2,4, or --axis prompt-tokens=16K..440K"


class Asked(NamedTuple):
    """What was typed after ``--axis``."""

    kind: ValueKind
    listed: tuple[int, ...]
    ranges: tuple[tuple[int, int, int | None], ...]
    """First, last and step of each; None where no step was given."""


def values_axis(text: str, *, scenario: Scenario) -> ChosenAxis:
    """The axis for ``KIND=VALUES``; raises ``UsageError`` with everything that is wrong with it."""
    asked = parse_axis(text)
    _check(asked, scenario=scenario)
    values, notes = grid(asked, scenario=scenario)
    if len(values) < 2:
        raise UsageError(f"--axis {shown(text)} has one value only", remedy=_EXAMPLE)
    history = History(commits=tuple(_points(values, kind=asked.kind)))
    axis = Axis(kind=asked.kind, history=history, old=history.commits[0].sha, new=history.commits[-1].sha)
    return ChosenAxis(axis=axis, notes=notes)


def parse_axis(text: str) -> Asked:
    """Read ``dcp=1,2,4``, ``prompt-tokens=16K..468K``, ``prompt-tokens=16K..64K/4K,100K``; raises ``UsageError``."""
    name, equals, items = text.strip().partition("=")
    kind: ValueKind
    match name.strip().replace("_", "-").lower():
        case "dcp":
            kind = "dcp"
        case "prompt-tokens":
            kind = "prompt-tokens"
        case _:
            raise UsageError(f"--axis {shown(text)} names no known axis", remedy=_EXAMPLE)
    if not equals or not items.strip() or len(text) > MAX_TEXT:
        raise UsageError(f"--axis {shown(text)} needs values", remedy=_EXAMPLE)
    listed, ranges, wrong = [], [], []
    for item in items.split(","):
        first, dots, rest = item.partition("..")
        last, slash, step = rest.partition("/")
        numbers = [_number(word) for word in (first, *((last,) if dots else ()), *((step,) if slash else ()))]
        known = [number for number in numbers if number is not None]
        if len(known) < len(numbers):
            wrong.append(f"{shown(item)} is no number and no range: 16384, 16K, 16K..440K, 16K..440K/8K")
        elif not dots:
            listed.append(known[0])
        elif known[0] >= known[1] or (slash and known[2] == 0):
            wrong.append(f"{shown(item)} holds nothing: a range goes up, by steps of 1 or more")
        else:
            ranges.append((known[0], known[1], known[2] if slash else None))
    if wrong:
        _refuse(text, wrong, remedy=_EXAMPLE)
    return Asked(kind=kind, listed=tuple(listed), ranges=tuple(ranges))


def _number(word: str) -> int | None:
    found = _NUMBER.fullmatch(word.strip())
    return int(found[1].replace("_", "")) * SUFFIXES[found[2].lower()] if found else None


def _refuse(text: str, problems: Sequence[str], *, remedy: str) -> None:
    if len(problems) == 1:
        raise UsageError(f"--axis: {problems[0]}", remedy=remedy)
    raise UsageError(f"--axis {shown(text)} does not fit", remedy=remedy, details=tuple(problems))


def _check(asked: Asked, *, scenario: Scenario) -> None:
    """Every value that was typed must make a run; what lies between two that do, does too."""
    problems: list[str] = []
    remedies: list[str] = []
    typed = (*asked.listed, *(end for first, last, _ in asked.ranges for end in (first, last)))
    for value in sorted(set(typed)):
        try:
            scenario_at(scenario, kind=asked.kind, value=str(value))
        except UsageError as error:
            problems += error.details or (error.message,)
            remedies += [error.remedy] if error.remedy else []
    tp = scenario.server.tp
    if asked.kind == "dcp" and any(value > 0 and misfit(tp=tp, dcp=value) for value in typed):
        remedies.append(
            f"sizes that divide {tp}; or as many ranks as all of them divide: --tp {lcm(*filter(None, typed))}"
        )
    if problems:
        _refuse(f"{asked.kind}", problems, remedy=remedies[-1] if remedies else _EXAMPLE)


def grid(asked: Asked, *, scenario: Scenario) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The points in rising order, each once, both ends of every range among them; and a line on what was chosen."""
    values = set(asked.listed)
    notes: list[str] = []
    for first, last, step in asked.ranges:
        if asked.kind == "dcp" and step is None:
            values.update(_fitting(first, last, tp=scenario.server.tp))
            continue
        stride = step or _stride(last - first, chunk=scenario.server.chunk_tokens)
        if (last - first) // stride >= MAX_POINTS:
            raise UsageError(
                f"--axis: {first}..{last} by {stride} is more than {MAX_POINTS:,} points",
                remedy=f"a step of at least {-(-(last - first) // (MAX_POINTS - 1))}",
            )
        values.update((*range(first, last, stride), last))
        if step is None:
            notes.append(
                f"prompts of {first:,} to {last:,} tokens in steps of {stride:,}: the answer is as fine as that"
            )
    if len(values) > MAX_POINTS:
        raise UsageError(f"--axis: {len(values):,} points, more than {MAX_POINTS:,}", remedy="fewer values, or a step")
    return tuple(sorted(values)), tuple(notes)


def _fitting(first: int, last: int, *, tp: int) -> Iterable[int]:
    """Sizes that run: those between that divide the tensor parallel size."""
    return (dcp for dcp in range(first, min(last, tp) + 1) if misfit(tp=tp, dcp=dcp) is None)


def _stride(width: int, *, chunk: int) -> int:
    """Whole chunks, as few of them as keep the grid within ``MAX_POINTS``."""
    return chunk * max(1, -(-width // (chunk * (MAX_POINTS - 2))))


def _points(values: Sequence[int], *, kind: ValueKind) -> Iterable[Commit]:
    said = "DCP size {:,}" if kind == "dcp" else "prompt of {:,} tokens"
    yield Commit(sha=str(values[0]), subject=said.format(values[0]))
    for before, value in pairwise(values):
        yield Commit(sha=str(value), parents=(str(before),), subject=said.format(value))
