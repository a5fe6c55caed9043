"""Keeping a long run's series short: the newest whole, the oldest ever sparser. Pure."""

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

T = TypeVar("T")


def thinned(items: Sequence[T], *, series: Callable[[T], Hashable], most: int) -> list[T]:
    """``items`` in their order, without every second one of each series in the older half, once there are too many.

    Called again and again on a growing list this leaves the newest ``most // 2`` untouched and the past at ever
    coarser steps, the first of each series included: a rate over the whole run can still be told.
    """
    if len(items) <= most:
        return list(items)
    older, newer = items[: len(items) - most // 2], items[len(items) - most // 2 :]
    counts: dict[Hashable, int] = {}
    kept: list[T] = []
    for item in older:
        name = series(item)
        place = counts.get(name, 0)
        counts[name] = place + 1
        if place % 2 == 0:
            kept.append(item)
    return [*kept, *newer]
