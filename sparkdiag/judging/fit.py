"""How long the rest will take: pace fitted to finished work, with an interval that is wide while points are few.

A chunk costs ``a + b * keys`` seconds with a, b >= 0: between "every chunk alike" (b = 0) and "growing with the keys"
(a = 0). Two early steps cannot tell these apart, and they differ by a factor over a long prompt. So the share of the
two is not fitted but swept, and every share that the points allow widens the interval. The noise of a pace adds up
over time (a random walk), so increments are fitted, with a variance in proportion to their duration.
"""

import math
from dataclasses import dataclass

_SHARES = tuple(step / 24 for step in range(25))
_T_90 = (6.31, 2.92, 2.35, 2.13, 2.02, 1.94, 1.89, 1.86, 1.83, 1.81)
"""Student's t, two-sided 90 %, by degrees of freedom from 1."""
_NOISE_FLOOR = 0.06
"""No pace is taken to be steadier than this share of a step."""
_DRIFT = 0.06
"""Share of the remaining time by which a pace may drift unseen."""
_MOST_STEPS = 16


@dataclass(frozen=True, slots=True)
class Step:
    """Time spent and work done between two moments: chunks, and chunks weighted by their keys."""

    seconds: float
    chunks: float
    weighted: float


@dataclass(frozen=True, slots=True)
class Remaining:
    """Seconds still to go."""

    low_s: float
    best_s: float
    high_s: float


def merge_steps(steps: list[Step]) -> list[Step]:
    """At most 16 steps of about the same duration: positions are coarse, and their noise is not the pace's."""
    wanted = sum(step.seconds for step in steps) / _MOST_STEPS
    merged: list[Step] = []
    seconds = chunks = weighted = 0.0
    for step in steps:
        seconds, chunks, weighted = seconds + step.seconds, chunks + step.chunks, weighted + step.weighted
        if seconds >= wanted and seconds > 0:
            merged.append(Step(seconds=seconds, chunks=chunks, weighted=weighted))
            seconds = chunks = weighted = 0.0
    if seconds > 0:
        merged.append(Step(seconds=seconds, chunks=chunks, weighted=weighted))
    return merged


@dataclass(frozen=True, slots=True)
class _Line:
    """The fit for one share of the two costs: seconds = scale * work."""

    scale: float
    error: float
    information: float
    rest: float


def _lines(steps: list[Step], *, units: tuple[float, float], rest: tuple[float, float]) -> list[_Line]:
    """One for each share; least squares with a variance in proportion to a step's duration. Work is linear in the
    share, so five sums over the steps serve all shares."""
    alike = [step.chunks / units[0] for step in steps]
    growing = [step.weighted / units[1] for step in steps]
    per_s = [1 / step.seconds for step in steps]
    of_alike, of_growing = sum(alike), sum(growing)
    alike_2 = sum(a * a * w for a, w in zip(alike, per_s, strict=True))
    mixed = sum(a * g * w for a, g, w in zip(alike, growing, per_s, strict=True))
    growing_2 = sum(g * g * w for g, w in zip(growing, per_s, strict=True))
    seconds = sum(step.seconds for step in steps)
    lines = []
    for share in _SHARES:
        one, other = 1 - share, share
        information = one * one * alike_2 + 2 * one * other * mixed + other * other * growing_2
        work = one * of_alike + other * of_growing
        if information > 0:
            lines.append(
                _Line(
                    scale=work / information,
                    error=max(0.0, seconds - work * work / information),
                    information=information,
                    rest=one * rest[0] / units[0] + other * rest[1] / units[1],
                )
            )
    return lines


def forecast_rest(
    steps: list[Step], *, total: tuple[float, float], rest: tuple[float, float], pause_s: float = 0.0
) -> Remaining | None:
    """Seconds until ``rest`` (chunks, key-weighted chunks) is done; None with fewer than three steps or no work in
    them. ``pause_s``: duration of the step still open, of which nothing is known but that it took that long."""
    usable = merge_steps([step for step in steps if step.seconds > 0 and step.chunks >= 0 and step.weighted >= 0])
    if len(usable) < 3 or total[0] <= 0 or total[1] <= 0:
        return None
    lines = _lines(usable, units=total, rest=rest)
    if not lines:
        return None
    best = min(lines, key=lambda line: line.error)
    freedom = len(usable) - 2
    quantile = _T_90[freedom - 1] if freedom <= len(_T_90) else 1.7
    mean_s = sum(step.seconds for step in usable) / len(usable)
    noise = max(best.error / freedom, _NOISE_FLOOR * _NOISE_FLOOR * mean_s)
    low, high = math.inf, 0.0
    for line in lines:
        if line.error - best.error > quantile * quantile * noise:
            continue
        seconds = line.scale * line.rest
        spread = quantile * math.sqrt(
            noise * line.rest * line.rest / line.information + noise * seconds + _DRIFT * _DRIFT * seconds * seconds
        )
        low, high = min(low, seconds - spread), max(high, seconds + spread)
    middle = best.scale * best.rest
    return Remaining(low_s=max(0.0, low), best_s=middle, high_s=max(high, middle, pause_s))
