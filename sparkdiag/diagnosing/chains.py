"""Looks at one process as series of samples of each function that was on the stack, with its integer locals. Pure.

A call is told from the next one by what lies outside of it: while it lasts, the functions, lines and integers of its
callers stay what they are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sparkdiag.diagnosing.following import Followed
from sparkdiag.diagnosing.loop_names import is_size
from sparkdiag.evidence.dump import DumpFrame

HIGHEST = 1_000_000_000
"""Larger integers are addresses, ids, times, or were misread."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One look at one function."""

    place: int
    """Of the look."""
    at_s: float | None
    site: int
    """Equal where all callers stand on the same lines."""
    outer: int
    """Equal where the callers' integers are the same too."""
    values: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Chain:
    """A function with the same functions above it, over the looks that show it."""

    function: str
    depth: int
    """From the outermost frame."""
    samples: list[Sample] = field(default_factory=list)

    def segments(self) -> list[list[int]]:
        """Indices of samples that may be of one call, in order. A look that differs in integers alone between two that
        agree was misread, and is left out."""
        found: list[list[int]] = []
        index = 0
        while index < len(self.samples):
            if found and self._goes_on(found[-1][-1], index):
                found[-1].append(index)
            elif found and self._misread(found[-1], index):
                pass
            else:
                found.append([index])
            index += 1
        return found

    def _goes_on(self, before: int, after: int) -> bool:
        one, other = self.samples[before], self.samples[after]
        return one.site == other.site and one.outer == other.outer and _same_sizes(one.values, other.values)

    def _misread(self, segment: list[int], index: int) -> bool:
        if index + 1 >= len(self.samples) or index - segment[-1] > 1:
            return False
        if len(segment) < 2 or self.samples[index].site != self.samples[segment[-1]].site:
            return False
        return self._goes_on(segment[-1], index + 1)


def _same_sizes(one: Mapping[str, int], other: Mapping[str, int]) -> bool:
    return all(other.get(name, value) == value for name, value in one.items() if is_size(name))


def chains_of(series: Sequence[Followed]) -> list[Chain]:
    """The chains of one thread that were seen more than once, outermost first."""
    found: dict[int, Chain] = {}
    # Prefixes of stacks as numbers, so that each frame costs a few look-ups however deep it lies.
    chains: dict[tuple[int, str, str | None], int] = {}
    sites: dict[tuple[int, int | None], int] = {}
    outers: dict[tuple[int, tuple[tuple[str, int], ...]], int] = {}
    for one in series if len(series) > 1 else ():
        chain = site = outer = 0
        # What counts in the frame that waits is its spin.
        for depth, frame in enumerate(one.frames[:-1] if one.waits else one.frames):
            chain = chains.setdefault((chain, frame.function, frame.path), len(chains) + 1)
            values = integers(frame) if frame.locals else None
            if values:
                entry = found.get(chain)
                if entry is None:
                    entry = found[chain] = Chain(function=frame.name, depth=depth)
                entry.samples.append(Sample(one.place, one.at_s, site, outer, values))
                outer = outers.setdefault((outer, tuple(values.items())), len(outers) + 1)
            # Of one chain the functions are the same: lines tell its sites apart.
            site = sites.setdefault((site, frame.line), len(sites) + 1)
    return sorted((entry for entry in found.values() if len(entry.samples) > 1), key=lambda entry: entry.depth)


def integers(frame: DumpFrame) -> dict[str, int]:
    """Its integer locals of a sane size, booleans left out."""
    return {name: value for name, value in frame.locals.items() if type(value) is int and abs(value) < HIGHEST}
