"""Which conditions on DCP size, architecture, cache and revision tell the cells that stall from the rest. Pure.

A condition is the values of one axis that stalling cells have; a claim is a conjunction of such conditions. It counts
only when every cell outside it is known not to stall: an unknown cell is never counted as safe.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

from sparkdiag.evidence.route import MatrixCell, MatrixRevision

AXES = ("dcp", "arch", "cache", "revision")
"""The order in which conditions are preferred, where several would do."""

Conditions = dict[str, frozenset[object]]


@dataclass(frozen=True)
class _Asked:
    """Values of each axis, in the order asked, as the cells have them; and the name of each revision."""

    values: dict[str, tuple[object, ...]]
    names: dict[str, str]


def narrowed(
    cells: Sequence[MatrixCell], revisions: Sequence[MatrixRevision], *, unanswered: int = 0
) -> tuple[str, ...]:
    """When the stall path is reached: one sentence; where no conditions tell, one more for each revision.

    ``unanswered``: how many revisions have no cell at all.
    """
    tail = f" {_count(unanswered, 'revision')} asked {'has' if unanswered == 1 else 'have'} no answer." * bool(
        unanswered
    )
    if not cells:
        return (f"No cell has an answer.{tail}",)
    asked = _asked(cells, revisions)
    where = f"In the {_count(len(cells), 'cell')} asked"
    conditions = separating(cells)
    if conditions is not None:
        return (f"{where} {_claim(cells, conditions, asked)}.{tail}",)
    first = f"{where} no condition on {_listed(_varied(asked))} tells the cells on the stall path from the rest: "
    return (f"{first}{_unseparated(cells, asked)}.{tail}", *_by_revision(cells, revisions, asked))


def separating(cells: Sequence[MatrixCell]) -> Conditions | None:
    """The fewest conditions that every cell fits which stalls or may stall, and no other; None without such."""
    perhaps = [cell for cell in cells if cell.stall != "false"]
    safe = [cell for cell in cells if cell.stall == "false"]
    for axes in (axes for number in range(len(AXES) + 1) for axes in combinations(AXES, number)):
        conditions: Conditions = {axis: frozenset(getattr(cell, axis) for cell in perhaps) for axis in axes}
        if not perhaps or not any(_fits(cell, conditions) for cell in safe):
            return conditions
    return None


def _fits(cell: MatrixCell, conditions: Conditions) -> bool:
    return all(getattr(cell, axis) in values for axis, values in conditions.items())


def _claim(cells: Sequence[MatrixCell], conditions: Conditions, asked: _Asked) -> str:
    """What holds of ``cells``, of which all that may stall fit ``conditions``, and no other."""
    sure = sum(cell.stall == "true" for cell in cells)
    open_ = sum(cell.stall == "unknown" for cell in cells)
    if not sure and not open_:
        return "the stall path is reached in no cell"
    verb = "is reached" if sure else "may be reached"
    unknown = f"{sure} of these cells for certain, {open_} unknown" if sure else f"unknown in {_all(open_)}"
    if not conditions:
        return f"the stall path {verb} in every cell" + (f" ({unknown})" if open_ else "")
    words = ", ".join(_worded(axis, conditions[axis], asked) for axis in AXES if axis in conditions)
    return f"the stall path {verb} only when: {words} ({unknown if open_ else f'in {_all(sure)}'})"


def _all(number: int) -> str:
    return "this one cell" if number == 1 else f"all {number} of these cells"


def _unseparated(cells: Sequence[MatrixCell], asked: _Asked) -> str:
    sure, open_, safe = (sum(cell.stall == truth for cell in cells) for truth in ("true", "unknown", "false"))
    counted = f"{sure} reach it, {f'{open_} may (unknown), ' if open_ else ''}{safe} do not"
    known = [cell for cell in cells if cell.stall != "unknown"]
    conditions = separating(known)
    if not open_ or not sure or conditions is None:
        return counted
    words = ", ".join(_worded(axis, conditions[axis], asked) for axis in AXES if axis in conditions)
    return f"{counted}; the unknown ones aside, which may reach it too, only when: {words}"


def _by_revision(cells: Sequence[MatrixCell], revisions: Sequence[MatrixRevision], asked: _Asked) -> tuple[str, ...]:
    """One sentence for the revisions of which it is true; nothing where all are one revision."""
    said: dict[str, list[str]] = {}
    for revision in revisions:
        own = [cell for cell in cells if cell.revision == revision.revision]
        if own:
            found = separating(own)
            claim = _claim(own, found, asked) if found is not None else _unseparated(own, asked)
            said.setdefault(claim, []).append(revision.name)
    if sum(len(names) for names in said.values()) < 2:
        return ()
    return tuple(f"{', '.join(names)}: {claim}." for claim, names in said.items())


def _worded(axis: str, values: frozenset[object], asked: _Asked) -> str:
    """``dcp > 1``; ``arch sm120 or sm121``."""
    offered = asked.values[axis]
    if axis == "dcp":
        return _of_sizes(values, offered)
    label = "rev" if axis == "revision" else axis
    chosen = [value for value in offered if value in values]
    return f"{label} {' or '.join(_value(axis, value, asked) for value in chosen)}"


def _of_sizes(values: frozenset[object], offered: Iterable[object]) -> str:
    """As a bound, where the sizes are the larger or the smaller part of those asked."""
    sizes = sorted(size for size in offered if isinstance(size, int))
    chosen = [size for size in sizes if size in values]
    rest = [size for size in sizes if size not in values]
    if None not in values and chosen and rest:
        if rest[-1] < chosen[0]:
            return f"dcp > {rest[-1]}"
        if chosen[-1] < rest[0]:
            return f"dcp <= {chosen[-1]}" if chosen[-1] > 1 else "dcp = 1"
    named = [str(size) for size in chosen] + (["unknown"] if None in values else [])
    return f"dcp = {' or '.join(named)}"


def _value(axis: str, value: object, asked: _Asked) -> str:
    if axis == "revision":
        return asked.names.get(str(value), str(value)[:10])
    return "unknown" if value is None else str(value)


def _asked(cells: Sequence[MatrixCell], revisions: Sequence[MatrixRevision]) -> _Asked:
    return _Asked(
        values={axis: tuple(dict.fromkeys(getattr(cell, axis) for cell in cells)) for axis in AXES},
        names={one.revision: one.name for one in reversed(revisions)},
    )


def _varied(asked: _Asked) -> list[str]:
    """Axes on which more than one value was asked."""
    words = {"revision": "rev"}
    return [words.get(axis, axis) for axis in AXES if len(asked.values[axis]) > 1]


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else "the axes"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")
