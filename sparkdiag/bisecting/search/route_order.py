"""Which route changes of a history could bring what is looked for, and in which order they are tried. Pure."""

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence

from sparkdiag.bisecting.search.history import History
from sparkdiag.evidence.route import RouteChange

MOST_PREDICTED = 16


def turning(changes: Iterable[RouteChange], functions: Collection[str]) -> tuple[RouteChange, ...]:
    """The changes at which one of ``functions`` comes into what is reached, or leaves it."""
    wanted = frozenset(functions)
    return tuple(change for change in changes if wanted & frozenset(change.before) != wanted & frozenset(change.after))


def on_axis(shas: Sequence[str], parents: Mapping[str, Sequence[str]], history: History) -> dict[str, str]:
    """For each commit the point that brings it: itself, or the oldest point that contains it where it is no point (a
    merged branch of a first-parent search). Commits that no point brings are left out.

    ``parents``: of every commit between the ends, oldest first.
    """
    found: dict[str, str] = {}
    for sha in shas:
        if sha in history.index:
            found[sha] = sha
            continue
        after = {sha}
        for child, line in parents.items():
            if not after.isdisjoint(line):
                after.add(child)
        brings = next((commit.sha for commit in history.commits if commit.sha in after), None)
        if brings is not None:
            found[sha] = brings
    return found


def halving_order(shas: Collection[str], history: History, *, old: str, new: str) -> tuple[str, ...]:
    """``shas`` in the order in which they halve what lies between the ends: the one nearest to the middle, then those
    nearest to the middles of both halves, and so on; those outside are left out."""
    left = history.ancestors_of(new) & ~history.ancestors_of(old)
    inside = sorted(
        ((history.ancestors_of(sha) & left).bit_count(), history.index[sha], sha)
        for sha in set(shas)
        if sha in history.index and left >> history.index[sha] & 1
    )
    order: list[str] = []
    parts = deque([(inside, 0, left.bit_count())])
    while parts:
        part, low, high = parts.popleft()
        if not part:
            continue
        place = min(range(len(part)), key=lambda place: (abs(2 * part[place][0] - low - high), place))
        count, _, sha = part[place]
        order.append(sha)
        parts += [(part[:place], low, count), (part[place + 1 :], count, high)]
    return tuple(order)
