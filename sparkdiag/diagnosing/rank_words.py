"""Names of ranks for people: ranges folded, and which ranks a paste leaves out. Pure."""

import re
from collections.abc import Sequence
from itertools import product

_PART = re.compile(r"([A-Z]+)(\d{1,5})")
_MOST_RANKS = 4096
_MOST_NAMED = 6

Parts = dict[str, int]


def parts_of(label: str) -> Parts | None:
    """``TP3_DCP1`` -> {TP: 3, DCP: 1}; None where it is no such label."""
    found = [_PART.fullmatch(part) for part in label.split("_")]
    if not all(found):
        return None
    return {part[1]: int(part[2]) for part in found if part is not None}


def telling_dimension(labels: Sequence[str]) -> str | None:
    """The first dimension that alone tells all of ``labels`` apart; None where it takes several."""
    parts = [parts_of(label) for label in labels]
    known = [part for part in parts if part is not None]
    if not known or len(known) < len(labels):
        return None
    shared = [name for name in known[0] if all(name in part for part in known)]
    return next((name for name in shared if len({part[name] for part in known}) == len(known)), None)


def folded(labels: Sequence[str], *, peers: Sequence[str]) -> str:
    """``TP0 to TP2``, ``DP0_TP0, DP0_TP3``, ``DP1_TP0 to DP1_TP3``: three in a row and more are a range.

    ``peers``: the labels of all that ``labels`` are to be told apart from.
    """
    known = {label: parts for label in labels if (parts := parts_of(label)) is not None}
    if len(known) < len(labels):
        return listed(sorted(labels))
    alone = telling_dimension(peers)
    dimension = alone or _counting(list(known.values()))
    if dimension is None:
        return listed(sorted(labels))

    def place(label: str) -> tuple[tuple[int, ...], int]:
        parts = known[label]
        rest = () if alone else tuple([value for name, value in parts.items() if name != dimension])
        return rest, parts[dimension]

    runs: list[list[str]] = []
    for label in sorted(known, key=place):
        rest, value = place(label)
        if runs and place(runs[-1][-1]) == (rest, value - 1):
            runs[-1].append(label)
        else:
            runs.append([label])
    words = []
    for run in runs:
        if len(run) < 3:
            words += run
        elif alone:
            words.append(f"{alone}{place(run[0])[1]} to {alone}{place(run[-1])[1]}")
        else:
            words.append(f"{run[0]} to {run[-1]}")
    return listed(words)


def listed(names: Sequence[str]) -> str:
    """Joined by commas; of many, the first ones and how many more there are."""
    if len(names) <= _MOST_NAMED:
        return ", ".join(names)
    return f"{', '.join(names[: _MOST_NAMED - 1])} and {len(names) - _MOST_NAMED + 1} more"


def missing(labels: Sequence[str]) -> tuple[str, ...]:
    """Ranks that must exist, because higher ones do, and are not there. Of ranks in several dimensions only where most
    of the combinations are there."""
    parts = [part for label in labels if (part := parts_of(label)) is not None]
    if not parts or len(parts) < len(labels) or any(value >= _MOST_RANKS for part in parts for value in part.values()):
        return ()
    alone = telling_dimension(labels)
    if alone is not None:
        present = {part[alone] for part in parts}
        return tuple([f"{alone}{rank}" for rank in range(max(present)) if rank not in present])
    names = [name for name in parts[0] if all(name in part for part in parts)]
    names = [name for name in names if name in ("DP", "PP", "PCP", "TP")]
    present_sets = {tuple([part[name] for name in names]) for part in parts}
    sizes = [max(part[name] for part in parts) + 1 for name in names]
    size = 1
    for count in sizes:
        size *= count
    if not names or len(present_sets) < len(parts) or 2 * len(present_sets) < size or size > _MOST_RANKS:
        return ()
    every = product(*[range(count) for count in sizes])
    return tuple(
        ["_".join(f"{n}{v}" for n, v in zip(names, at, strict=True)) for at in every if at not in present_sets]
    )


def _counting(parts: Sequence[Parts]) -> str | None:
    """The dimension in which most of ``parts`` differ; the innermost of equals."""
    shared = [name for name in parts[0] if all(name in part for part in parts)] if parts else []
    if not shared:
        return None
    return max(reversed(shared), key=lambda name: len({part[name] for part in parts}))
