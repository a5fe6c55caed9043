"""Which commit to try next, and what the tried ones leave. Pure.

A *mark* says on which side of the change a commit lies: ``old`` like the old end, ``new`` like the new end, ``skip``
when the trial could not tell. The change sought is a commit that is new while none of its parents is. What ``git
bisect`` calls bad is ``new`` here whichever way the change goes (https://git-scm.com/docs/git-bisect#_alternate_terms).
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from sparkdiag.bisecting.search.history import History, places
from sparkdiag.evidence.base import Value
from sparkdiag.evidence.bisection import Mark

MOST_EXTRA_TRIALS = 2
"""What following wrong predictions may cost in all: a commit and its parent that told next to nothing."""
RUNS_BESIDE_SKIP = 0.8
"""Chance that a commit beside a skipped one can be judged; beside the second skip of the same stretch it is squared.

Against git's own way of going elsewhere after a skip: 1,675 trials to its 1,766 in 240 searches of 64 commits, of which
15 % or eight in a row were skipped."""
SHORTEST_TRIAL_MINUTES = 0.01
"""An estimate of nothing at all would be worth any price."""


class Contradiction(ValueError):
    """The trials fit no history in which the change stays: ``new`` has it although ``old``, which contains it, has not.

    One of the two is wrong (flaky: ``--repeat`` or ``--confidence``), or the change was taken back in between.
    """

    def __init__(self, *, new: str, old: str) -> None:
        super().__init__(f"{new[:10]} is like the new end, yet {old[:10]}, which contains it, is like the old end")
        self.new = new
        self.old = old


class Standing(Value):
    """What the marks so far leave."""

    candidates: tuple[str, ...]
    """Commits that may have brought the change, in history order; never empty. The last is known to be new."""
    testable: tuple[str, ...]
    """Those of them whose trial could still tell something."""

    @property
    def found(self) -> str | None:
        """The culprit, when only one is left."""
        return self.candidates[0] if len(self.candidates) == 1 else None


def standing(history: History, marks: Mapping[str, Mark]) -> Standing:
    """The candidates, as ``git bisect`` counts them: all that a new commit contains and no old one does.

    Of several new commits neither of which contains the other the one with the fewest candidates counts: whatever else
    brought the change too, one of these did. Raises ``Contradiction``, and ``ValueError`` without a new commit.
    """
    left = _left(history, marks)
    return Standing(candidates=history.members(left), testable=tuple(_testable(history, marks, left)))


def _left(history: History, marks: Mapping[str, Mark]) -> int:
    excluded = 0
    for sha, mark in marks.items():
        if mark == "old":
            excluded |= history.ancestors_of(sha)
    news = [sha for sha, mark in marks.items() if mark == "new"]
    if not news:
        raise ValueError("nothing is known to be new")
    for sha in news:
        if excluded >> history.index[sha] & 1:
            raise Contradiction(new=sha, old=_nearest_old(history, marks, sha))
    return min((history.ancestors_of(sha) & ~excluded for sha in news), key=lambda bits: (bits.bit_count(), bits))


def _nearest_old(history: History, marks: Mapping[str, Mark], new: str) -> str:
    place = history.index[new]
    around = [sha for sha, mark in marks.items() if mark == "old" and history.ancestors_of(sha) >> place & 1]
    return min(around, key=lambda sha: (history.ancestors_of(sha).bit_count(), history.index[sha]))


def _testable(history: History, marks: Mapping[str, Mark], left: int) -> Iterator[str]:
    for place in places(left):
        sha = history.commits[place].sha
        if sha not in marks and history.ancestors[place] & left != left:
            yield sha


def next_trial(
    history: History,
    marks: Mapping[str, Mark],
    *,
    predicted: Sequence[str] = (),
    minutes: Callable[[str], float] = lambda _sha: 1.0,
    free: Collection[str] = (),
) -> str | None:
    """The commit to try next, or None when no trial can narrow the candidates further.

    ``marks``: of every commit tried so far, both ends among them. ``predicted``: commits that the source says change
    the route, the likeliest first; each is tried, then its parents, as long as the search is sure to end at most
    ``MOST_EXTRA_TRIALS`` trials after plain halving would. ``minutes``: what a trial of a commit is expected to take;
    asked of every candidate. ``free``: commits whose marks cost no trial (reused, imported). Raises as ``standing``.
    """
    left = _left(history, marks)
    testable = tuple(_testable(history, marks, left))
    if not testable:
        return None
    for wanted in _guided(history, left=left, predicted=predicted, testable=frozenset(testable)):
        if _affordable(history, marks, left=left, wanted=wanted, free=free):
            return wanted
    return _most_telling(history, marks, left=left, testable=testable, minutes=minutes)


def _most_telling(
    history: History,
    marks: Mapping[str, Mark],
    *,
    left: int,
    testable: Sequence[str],
    minutes: Callable[[str], float],
) -> str:
    count = left.bit_count()
    runs = _chance_to_run(history, marks)

    def worth(sha: str) -> tuple[float, int]:
        place = history.index[sha]
        inside = (history.ancestors[place] & left).bit_count()
        bits = information_bits(min(inside, count - inside) / count)  # so that mirrored parts tell the very same
        return bits * runs(place) / price(minutes(sha)), -place

    return max(testable, key=worth)


def information_bits(share: float) -> float:
    """What a yes-or-no answer tells when yes has probability ``share`` (Shannon's binary entropy)."""
    if not 0 < share < 1:
        return 0.0
    return -share * math.log2(share) - (1 - share) * math.log2(1 - share)


def price(minutes: float) -> float:
    """What information is divided by. The root, not the minutes: information a minute alone is too greedy where many
    cheap commits tell little. On chains of 16 to 120 commits with trials of 1 to 500 minutes, cheap and dear ones mixed
    in nine ways, the root came within 1 % of the least expected minutes and never above plain halving's; the minutes
    themselves up to 3 % above."""
    return math.sqrt(max(minutes, SHORTEST_TRIAL_MINUTES))


def _chance_to_run(history: History, marks: Mapping[str, Mark]) -> Callable[[int], float]:
    """Skips come in stretches: a commit near a skipped one, with no judged commit in between, is likelier to be skipped
    too; the more, the more skips the stretch already has, and as far as half of its length reaches."""
    judged = sorted(history.index[sha] for sha, mark in marks.items() if mark != "skip")
    skipped = sorted(history.index[sha] for sha, mark in marks.items() if mark == "skip")
    stretches: dict[int, list[int]] = {}
    for place in skipped:
        stretches.setdefault(bisect_left(judged, place), []).append(place)

    def chance(place: int) -> float:
        stretch = stretches.get(bisect_left(judged, place))
        if stretch is None:
            return 1.0
        near = min(abs(place - other) for other in stretch)
        reach = (stretch[-1] - stretch[0] + 1) / 2
        return 1 - (1 - RUNS_BESIDE_SKIP ** len(stretch)) * math.exp(-(near - 1) / reach)

    return chance


def _guided(history: History, *, left: int, predicted: Sequence[str], testable: frozenset[str]) -> Iterator[str]:
    """What would prove a prediction: the commit, or the next newer one where it was skipped; then its parents, the one
    that excludes most first, or the next older one where a parent was skipped."""
    for sha in predicted:
        if sha not in history.index or not left >> history.index[sha] & 1:
            continue
        if sha in testable:
            yield sha
            continue
        place = history.index[sha]
        newer = [other for other in testable if history.ancestors_of(other) >> place & 1]
        if newer:  # it was skipped
            yield min(newer, key=lambda other: (_inside(history, other, left), history.index[other]))
        parents = [parent for parent in history.parents_of(sha) if left >> history.index[parent] & 1]
        for parent in sorted(parents, key=lambda parent: (-_inside(history, parent, left), history.index[parent])):
            older = [other for other in testable if history.ancestors_of(parent) >> history.index[other] & 1]
            if older:
                yield max(older, key=lambda other: (_inside(history, other, left), -history.index[other]))


def _inside(history: History, sha: str, left: int) -> int:
    return (history.ancestors_of(sha) & left).bit_count()


def _affordable(history: History, marks: Mapping[str, Mark], *, left: int, wanted: str, free: Collection[str]) -> bool:
    """Whether, whatever trying ``wanted`` shows, halving what is then left ends soon enough. All trials so far count:
    those that told little are what a wrong prediction costs."""
    given = _given(history, marks, free)
    tried = sum(1 for sha in marks if sha not in given)
    inside = history.ancestors_of(wanted) & left
    most_left = max(longest_halving(history, inside), longest_halving(history, left & ~inside))
    return tried + 1 + most_left <= longest_halving(history, _left(history, given)) + MOST_EXTRA_TRIALS


def _given(history: History, marks: Mapping[str, Mark], free: Collection[str]) -> dict[str, Mark]:
    """The marks that plain halving would start from: both ends and what is free. The new end is the widest of the new
    commits, the old end one of the narrowest of the old ones."""
    widest = max((sha for sha in marks if marks[sha] == "new"), key=lambda sha: history.ancestors_of(sha).bit_count())
    narrowest = min(
        (sha for sha in marks if marks[sha] == "old"),
        key=lambda sha: (history.ancestors_of(sha).bit_count(), sha in free),
        default=widest,
    )
    return {sha: mark for sha, mark in marks.items() if sha in free or sha in (widest, narrowest)}


def longest_halving(history: History, left: int) -> int:
    """Trials that plain halving of a set of candidates takes at most: ``halving_bound`` on a straight history, more
    where lines branch so that no commit halves them. Every answer parts the set, so this costs little more than one
    look at each commit for each trial."""
    longest = 0
    waiting = [(left, 0)]
    while waiting:
        bits, trials = waiting.pop()
        count = bits.bit_count()
        if count <= 1:
            longest = max(longest, trials)
            continue
        inside = min(
            (history.ancestors[place] & bits for place in places(bits)),
            key=lambda inside: abs(2 * inside.bit_count() - count),
        )
        waiting += [(inside, trials + 1), (bits & ~inside, trials + 1)]
    return longest


def halving_bound(candidates: int) -> int:
    """Trials that plain halving of a straight history needs at most."""
    return math.ceil(math.log2(candidates)) if candidates > 1 else 0


def in_history_order(history: History, shas: Sequence[str]) -> tuple[str, ...]:
    """``shas``, oldest first."""
    return history.members(sum(1 << history.index[sha] for sha in set(shas)))
