"""A long series kept short: its newest part whole, the past at ever coarser steps, and the first value of all."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Sparse(Generic[T]):
    """A series of which a logarithmic share is kept.

    Whether a value stays depends only on its place and on the length of the series, and what is dropped once is never
    wanted again: a series that grew in many small steps keeps the very values it would keep had it come at once. So a
    run that is looked at as it goes and its run folder read years later are judged by the same values.
    """

    count: int = 0
    """How long the series is."""
    kept: tuple[tuple[int, T], ...] = ()
    """(place in the series, value)."""

    @property
    def values(self) -> list[T]:
        return [value for _, value in self.kept]

    def plus(self, more: Sequence[T], *, newest: int) -> "Sparse[T]":
        """With ``more`` at its end. The ``newest`` values stay; of those up to twice, four times ... as old, every
        second, fourth ... one."""
        if not more:
            return self
        count = self.count + len(more)
        whole = [*self.kept, *enumerate(more, start=self.count)]
        return Sparse(count=count, kept=tuple(pair for pair in whole if _stays(pair[0], count=count, newest=newest)))


def _stays(place: int, *, count: int, newest: int) -> bool:
    age = (count - 1 - place) // newest
    return place % (1 << age.bit_length()) == 0
