"""Searching with verdicts that may be wrong: a posterior over the candidates. Pure.

After git_bayesect (https://github.com/hauntsaninja/git_bayesect): each candidate has a probability of being the
culprit; a trial multiplies the candidates it speaks for by the chance of a right verdict and the others by that of a
wrong one; the next trial is the one whose answer is expected to tell most; the search ends when one candidate has the
stated confidence.
"""

import math
from collections.abc import Callable, Iterable, Sequence

from sparkdiag.bisecting.history import History, places
from sparkdiag.bisecting.search import information_bits
from sparkdiag.evidence.base import Value


class Noise(Value):
    """How often a verdict is wrong."""

    missed: float = 0.05
    """A commit on the new side is judged old."""
    false: float = 0.01
    """A commit on the old side is judged new."""


class Posterior(Value):
    """Probability of each commit of the history (by its place) to be the culprit; sums to 1."""

    weights: tuple[float, ...]

    def best(self) -> tuple[int, float]:
        """The likeliest culprit's place and its probability."""
        place = max(range(len(self.weights)), key=self.weights.__getitem__)
        return place, self.weights[place]


def uniform(history: History, candidates: Sequence[str]) -> Posterior:
    """Before any trial."""
    chosen = {history.index[sha] for sha in candidates}
    return Posterior(
        weights=tuple(1 / len(chosen) if place in chosen else 0.0 for place in range(len(history.commits)))
    )


def updated(posterior: Posterior, history: History, *, sha: str, is_new: bool, noise: Noise) -> Posterior:
    """After a trial of ``sha``. If the culprit is an ancestor of ``sha`` the commit is truly new."""
    inside = set(places(history.ancestors_of(sha)))
    if_new = 1 - noise.missed if is_new else noise.missed
    if_old = noise.false if is_new else 1 - noise.false
    raw = [weight * (if_new if place in inside else if_old) for place, weight in enumerate(posterior.weights)]
    total = math.fsum(raw)
    return Posterior(weights=tuple(weight / total for weight in raw))


def most_telling(
    posterior: Posterior,
    history: History,
    *,
    testable: Iterable[str],
    noise: Noise,
    minutes: Callable[[str], float] = lambda _sha: 1.0,
) -> str:
    """The commit whose verdict is expected to tell most per minute: the mutual information of culprit and verdict."""

    def worth(sha: str) -> float:
        share = math.fsum(posterior.weights[place] for place in places(history.ancestors_of(sha)))
        says_new = share * (1 - noise.missed) + (1 - share) * noise.false
        surely_noise = share * information_bits(noise.missed) + (1 - share) * information_bits(noise.false)
        return (information_bits(says_new) - surely_noise) / minutes(sha)

    return max(testable, key=worth)
