"""What a route leaves open: lines that were not understood, together where one reason holds for many. Pure."""

from collections.abc import Iterable, Sequence

from sparkdiag.evidence.base import Value
from sparkdiag.evidence.route import NotUnderstood

_ALIKE = 4
"""So many lines of one file with one reason are told together."""


class Puzzle(Value):
    """Lines of one file that were not understood for one reason."""

    path: str
    lines: tuple[int, ...]
    """Ascending."""
    source: str = ""
    """Of a single line."""
    reason: str

    @property
    def where(self) -> str:
        """``348-352, 359, 361-374``."""
        return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs(self.lines))


def puzzles(found: Iterable[NotUnderstood]) -> tuple[Puzzle, ...]:
    """Each line by itself, or many of one file with one reason in one, in the order of their first."""
    together: dict[tuple[str, str], list[NotUnderstood]] = {}
    for line in found:
        together.setdefault((line.path, line.reason), []).append(line)
    made: list[Puzzle] = []
    for (path, reason), lines in together.items():
        numbers = tuple(sorted({line.line for line in lines}))
        if len(numbers) >= _ALIKE:
            made.append(Puzzle(path=path, lines=numbers, reason=reason))
        else:
            made += [Puzzle(path=path, lines=(line.line,), source=line.source, reason=reason) for line in lines]
    return tuple(made)


def runs(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """First and last of each run of numbers that follow each other; ``numbers`` ascending."""
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found
