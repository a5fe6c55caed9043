"""Which commit to try next, and what the tried ones leave. Pure.

A *mark* says on which side of the change a commit lies: ``old`` like the old end, ``new`` like the new end, ``skip``
when the trial could not tell. The change sought is a commit that is new while none of its parents is. What ``git
bisect`` calls bad is ``new`` here whichever way the change goes (https://git-scm.com/docs/git-bisect#_alternate_terms).
"""

import math
from collections.abc import Callable, Mapping, Sequence

from sparkdiag.bisecting.history import History
from sparkdiag.evidence.base import Value
from sparkdiag.evidence.bisection import Mark

MOST_EXTRA_TRIALS = 2
"""What following a wrong prediction may cost: the predicted commit and one look at its parents' side."""
SKIP_REACH = 8
"""Commits this near to a skipped one (in history order) are likelier to be skipped too."""


class Contradiction(ValueError):
    """The marks fit no history: a commit is new although one that contains it is old."""


class Standing(Value):
    """What the marks so far leave."""

    candidates: tuple[str, ...]
    """Commits that may have brought the change, in history order; never empty."""
    testable: tuple[str, ...]
    """Those of them whose trial could still tell something."""

    @property
    def found(self) -> str | None:
        """The culprit, when only one is left."""
        return self.candidates[0] if len(self.candidates) == 1 else None


def standing(history: History, marks: Mapping[str, Mark]) -> Standing:
    """Raises ``Contradiction`` when no commit can have brought the change, ``ValueError`` without a new commit."""
    news = [history.ancestors_of(sha) for sha, mark in marks.items() if mark == "new"]
    if not news:
        raise ValueError("nothing is known to be new")
    left = news[0]
    for bits in news[1:]:
        left &= bits
    for sha, mark in marks.items():
        if mark == "old":
            left &= ~history.ancestors_of(sha)
    if not left:
        raise Contradiction("a commit is like the new end although one that contains it is like the old end")
    testable = tuple(sha for sha in history.members(left) if sha not in marks and _splits(history, sha, left))
    return Standing(candidates=history.members(left), testable=testable)


def _splits(history: History, sha: str, left: int) -> bool:
    inside = history.ancestors_of(sha) & left
    return inside not in (0, left)


def next_trial(
    history: History,
    marks: Mapping[str, Mark],
    *,
    predicted: Sequence[str] = (),
    minutes: Callable[[str], float] = lambda _sha: 1.0,
) -> str | None:
    """The commit to try next, or None when no trial can narrow the candidates further.

    ``predicted``: commits that the source says change the route, the likeliest first; each is followed by its parents
    until ``MOST_EXTRA_TRIALS`` trials have gone into predictions that did not come true. ``minutes``: what a trial of a
    commit is expected to take. Otherwise the commit that tells most per minute.
    """
    now = standing(history, marks)
    if now.found is not None or not now.testable:
        return None
    guided = _guided(history, marks, now=now, predicted=predicted)
    if guided is not None:
        return guided
    left = sum(1 << history.index[sha] for sha in now.candidates)
    skipped = [history.index[sha] for sha, mark in marks.items() if mark == "skip"]

    def worth(sha: str) -> tuple[float, int]:
        share = (history.ancestors_of(sha) & left).bit_count() / len(now.candidates)
        return information_bits(share) * _likely_to_run(history.index[sha], skipped) / minutes(sha), -history.index[sha]

    return max(now.testable, key=worth)


def information_bits(share: float) -> float:
    """What a yes-or-no answer tells when yes has probability ``share`` (Shannon's binary entropy)."""
    if not 0 < share < 1:
        return 0.0
    return -share * math.log2(share) - (1 - share) * math.log2(1 - share)


def _likely_to_run(place: int, skipped: Sequence[int]) -> float:
    """Skips come in runs: between 0.1 beside a skipped commit and 1 far from all."""
    nearest = min((abs(place - other) for other in skipped), default=SKIP_REACH)
    return max(0.1, min(1.0, nearest / SKIP_REACH))


def _guided(history: History, marks: Mapping[str, Mark], *, now: Standing, predicted: Sequence[str]) -> str | None:
    """The next step of following a prediction: the predicted commit, then its parents."""
    spent = 0
    for sha in predicted:
        if sha not in history.index:
            continue
        parents = [parent for parent in history.commits[history.index[sha]].parents if parent in history.index]
        if spent >= MOST_EXTRA_TRIALS:
            return None
        if sha in now.candidates:
            for wanted in (sha, *parents):
                if wanted in now.testable:
                    return wanted
        spent += sum(1 for tried in (sha, *parents) if tried in marks)
    return None


def halving_bound(candidates: int) -> int:
    """Trials that plain halving of a straight history needs at most."""
    return math.ceil(math.log2(candidates)) if candidates > 1 else 0


def in_history_order(history: History, shas: Sequence[str]) -> tuple[str, ...]:
    """``shas``, oldest first."""
    return history.members(sum(1 << history.index[sha] for sha in set(shas)))
