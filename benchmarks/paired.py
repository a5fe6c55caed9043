"""Paired measurements: their order, their ratio, and how sure it is. Pure."""

import math
import random
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations_with_replacement
from statistics import median
from typing import Literal

from sparkdiag.evidence.base import Value

FEWEST_PAIRS = 5
"""Below, a bootstrap interval says nothing: all its resamples are made of the same few pairs."""
CONFIDENCE = 0.95
RESAMPLES = 2000
SEED = 1

Pair = tuple[float, float]
"""The reference's figure, then the figure of what is compared with it, measured next to each other."""
Statistic = Callable[[Sequence[Pair]], float]
Answer = Literal["met", "missed", "not resolved", "no goal"]


class Interval(Value):
    """A bootstrap confidence interval."""

    low: float
    high: float


class Comparison(Value):
    """One question: how many times ``reference`` is ``measured``?"""

    measured: str
    reference: str
    unit: str
    pairs: tuple[Pair, ...]
    ratio: float
    interval: Interval | None = None
    """None with fewer than ``FEWEST_PAIRS`` pairs."""
    goal: float | None = None
    """The ratio is to be this or less."""
    answer: Answer
    note: str = ""


def rounds(names: Sequence[str], *, count: int) -> Iterator[tuple[str, ...]]:
    """Each round holds every name once, every second round backwards (A B B A), so that a steady drift cancels."""
    for number in range(count):
        yield tuple(names) if number % 2 == 0 else tuple(reversed(names))


def typical_ratio(pairs: Sequence[Pair]) -> float:
    """The median over the geometric means of all pairs of ratios (the Hodges-Lehmann estimator, on logarithms).

    As robust as is needed against a disturbed pair, and with quiet noise a third narrower than the plain median.
    https://en.wikipedia.org/wiki/Hodges-Lehmann_estimator
    """
    logs = [math.log(measured / reference) for reference, measured in pairs]
    return math.exp(median((a + b) / 2 for a, b in combinations_with_replacement(logs, 2)))


def quantile_ratio(quantile: float) -> Statistic:
    """The ratio of one quantile of either side, for figures whose tails are the question."""

    def ratio(pairs: Sequence[Pair]) -> float:
        references, measured = zip(*pairs, strict=True)
        return at_quantile(measured, quantile) / at_quantile(references, quantile)

    return ratio


def at_quantile(figures: Sequence[float], quantile: float) -> float:
    """Linear between the two figures beside it; 1 is the largest."""
    ordered = sorted(figures)
    place = quantile * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def bootstrap(pairs: Sequence[Pair], statistic: Statistic, *, resamples: int = RESAMPLES) -> Interval | None:
    """Percentile interval over resampled pairs, stretched by sqrt(n / (n - 1)) around the statistic because resampled
    small samples vary too little. The same pairs give the same interval. None for too few pairs.

    https://en.wikipedia.org/wiki/Bootstrapping_(statistics)
    """
    count = len(pairs)
    if count < FEWEST_PAIRS:
        return None
    chance = random.Random(SEED)
    found = [statistic(chance.choices(pairs, k=count)) for _ in range(resamples)]
    middle, stretch = statistic(pairs), math.sqrt(count / (count - 1))
    tail = (1 - CONFIDENCE) / 2
    low, high = at_quantile(found, tail), at_quantile(found, 1 - tail)
    return Interval(low=middle + (low - middle) * stretch, high=middle + (high - middle) * stretch)


def answer_of(interval: Interval | None, *, goal: float | None) -> Answer:
    """Only an interval that lies wholly on one side of the goal answers."""
    if goal is None:
        return "no goal"
    if interval is None or interval.low <= goal < interval.high:
        return "not resolved"
    return "met" if interval.high <= goal else "missed"


def compare(
    pairs: Sequence[Pair],
    *,
    measured: str,
    reference: str,
    unit: str = "s",
    statistic: Statistic = typical_ratio,
    goal: float | None = None,
    note: str = "",
) -> Comparison:
    """Figures of both sides are greater than 0. Raises ``ValueError`` without a pair, or for a figure that is not."""
    if not pairs:
        raise ValueError(f"nothing was measured: {measured} against {reference}")
    if any(figure <= 0 or not math.isfinite(figure) for pair in pairs for figure in pair):
        raise ValueError(f"a figure of {measured} against {reference} is not greater than 0")
    interval = bootstrap(pairs, statistic)
    return Comparison(
        measured=measured,
        reference=reference,
        unit=unit,
        pairs=tuple(pairs),
        ratio=statistic(pairs),
        interval=interval,
        goal=goal,
        answer=answer_of(interval, goal=goal),
        note=note,
    )
