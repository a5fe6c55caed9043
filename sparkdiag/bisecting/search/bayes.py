"""Searching with verdicts that may be wrong: a posterior over the candidates. Pure.

After git_bayesect (https://github.com/hauntsaninja/git_bayesect): each candidate has a probability of being the
culprit; a trial multiplies the candidates it speaks for by the chance of a right verdict and the others by that of a
wrong one; the next trial is the one whose answer is expected to tell most; the search ends when one candidate has the
stated confidence. A commit may be tried again: each run is taken to be wrong or right on its own.

``scripts/calibrate_bisect.py`` measures how often the named culprit is right.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate

from pydantic import Field

from sparkdiag.bisecting.search.candidates import information_bits, price
from sparkdiag.bisecting.search.history import History, places
from sparkdiag.evidence.base import Value

DOUBT = 2
"""Verdicts are weighed as if they were wrong this many times as often as stated: how often they are is itself a guess,
and a stated confidence must hold where the guess was moderately wrong. It costs one trial in eight."""
MOST_NOISE = 0.45
NOTHING_BITS = 1e-6


class Noise(Value):
    """How often a verdict is wrong; neither never nor as often as not."""

    missed: float = Field(default=0.05, gt=0, lt=0.5)
    """A commit on the new side is judged old."""
    false: float = Field(default=0.01, gt=0, lt=0.5)
    """A commit on the old side is judged new."""

    def doubted(self) -> "Noise":
        """What verdicts are weighed by."""
        return Noise(missed=min(MOST_NOISE, DOUBT * self.missed), false=min(MOST_NOISE, DOUBT * self.false))


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
    noise = noise.doubted()
    if_new = 1 - noise.missed if is_new else noise.missed
    if_old = noise.false if is_new else 1 - noise.false
    raw = [weight * if_old for weight in posterior.weights]
    for first, end in history.ancestor_spans[history.index[sha]]:
        raw[first:end] = [weight * if_new for weight in posterior.weights[first:end]]
    total = math.fsum(raw)
    return Posterior(weights=tuple(weight / total for weight in raw))


def shares_new(posterior: Posterior, history: History) -> Callable[[str], float]:
    """How probable it is that a commit is truly new: that the culprit is among its ancestors."""
    totals = (0.0, *accumulate(posterior.weights))

    def share(sha: str) -> float:
        found = sum(totals[end] - totals[first] for first, end in history.ancestor_spans[history.index[sha]])
        return min(1.0, max(0.0, found))

    return share


def most_telling(
    posterior: Posterior,
    history: History,
    *,
    testable: Iterable[str],
    noise: Noise,
    minutes: Callable[[str], float] = lambda _sha: 1.0,
) -> str:
    """The commit whose verdict is expected to tell most for its price: the mutual information of culprit and verdict.
    Raises ``ValueError`` when nothing is testable."""
    share_of, noise = shares_new(posterior, history), noise.doubted()

    def worth(sha: str) -> float:
        return told_bits(share_of(sha), noise) / price(minutes(sha))

    return max(testable, key=worth)


def told_bits(share: float, noise: Noise) -> float:
    """What a verdict tells about a commit that is new with probability ``share``: a noisy binary channel's mutual
    information (https://en.wikipedia.org/wiki/Binary_symmetric_channel, here with two error rates)."""
    says_new = share * (1 - noise.missed) + (1 - share) * noise.false
    surely_noise = share * information_bits(noise.missed) + (1 - share) * information_bits(noise.false)
    return max(0.0, information_bits(says_new) - surely_noise)


def settled(
    posterior: Posterior, history: History, *, testable: Iterable[str], confidence: float
) -> tuple[str, ...] | None:
    """The answer, in history order, when the search is over; None while it should go on.

    One commit that has the confidence; or those that have it together and that no trial can tell apart, because what
    lies between them was skipped: more trials would only make surer that it is one of them. Each other candidate's
    probability is then at most ``1 - confidence``.
    """
    place, probability = posterior.best()
    if probability >= confidence:
        return (history.commits[place].sha,)
    alike = [other for other in places(_told_apart_by_none(history, testable, place)) if posterior.weights[other] > 0]
    if math.fsum(posterior.weights[other] for other in alike) < confidence:
        return None
    return tuple(history.commits[other].sha for other in alike)


def _told_apart_by_none(history: History, testable: Iterable[str], place: int) -> int:
    """The commits that every testable one contains if and only if it contains ``place``'s."""
    alike = (1 << len(history.commits)) - 1
    for sha in testable:
        bits = history.ancestors_of(sha)
        alike &= bits if bits >> place & 1 else ~bits
    return alike


def credible(posterior: Posterior, history: History, *, confidence: float) -> tuple[str, ...]:
    """The fewest commits that together have the confidence, the likeliest first; of equals the older first."""
    chosen: list[str] = []
    total = 0.0
    for place in sorted(range(len(posterior.weights)), key=lambda place: (-posterior.weights[place], place)):
        if total >= confidence or posterior.weights[place] <= 0:
            break
        chosen.append(history.commits[place].sha)
        total += posterior.weights[place]
    return tuple(chosen)


def next_noisy_trial(
    posterior: Posterior,
    history: History,
    *,
    testable: Sequence[str],
    noise: Noise,
    confidence: float,
    minutes: Callable[[str], float] = lambda _sha: 1.0,
) -> str | None:
    """The commit to try next, perhaps one that was tried before; None when the search is over: ``settled`` has the
    answer, or no trial tells anything. ``testable``: the candidates but for the new end and what was skipped."""
    if not testable or settled(posterior, history, testable=testable, confidence=confidence) is not None:
        return None
    sha = most_telling(posterior, history, testable=testable, noise=noise, minutes=minutes)
    tells = told_bits(shares_new(posterior, history)(sha), noise.doubted())
    return sha if tells > NOTHING_BITS else None
