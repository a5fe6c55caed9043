"""Histories made up at random, and whole searches in them: what calibration, benchmarks and tests count. Pure.

Nothing is measured here: a commit is new when it contains the culprit, and a verdict is wrong as often as it is said to
be, each run on its own.
"""

import random
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from sparkdiag.bisecting.search.bayes import Noise, credible, next_noisy_trial, settled, uniform, updated
from sparkdiag.bisecting.search.candidates import next_trial, standing
from sparkdiag.bisecting.search.history import History
from sparkdiag.bisecting.steps.noisy import most_trials
from sparkdiag.evidence.bisection import Commit, Mark

BRANCHES = 4
"""As many lines at most grow beside the main one."""


class Searched(NamedTuple):
    """How a search ended."""

    answer: tuple[str, ...]
    """The culprit, or all candidates, in history order."""
    trials: int
    """Beyond the two ends, repeated ones included."""
    skipped: int = 0


def straight(candidates: int) -> History:
    """A chain: the old end and ``candidates`` more commits, each the child of the one before."""
    return _history([(), *((place,) for place in range(candidates))])


def merging(candidates: int, *, rng: random.Random) -> History:
    """A main line off which lines branch and come back as merges, up to ``BRANCHES`` at a time; as many commits beside
    the old end, the last of which contains all others."""
    parents: list[tuple[int, ...]] = [()]
    main = 0
    lines: list[int] = []
    while len(parents) + len(lines) <= candidates:
        chance = rng.random()
        if lines and chance < 0.15:
            parents.append((main, lines.pop(rng.randrange(len(lines)))))
            main = len(parents) - 1
        elif chance < 0.3 and len(lines) < BRANCHES and len(parents) + len(lines) < candidates:
            parents.append((rng.randrange(max(0, main - 6), main + 1),))
            lines.append(len(parents) - 1)
        elif lines and chance < 0.6:
            line = rng.randrange(len(lines))
            parents.append((lines[line],))
            lines[line] = len(parents) - 1
        else:
            parents.append((main,))
            main = len(parents) - 1
    for line in lines:
        parents.append((main, line))
        main = len(parents) - 1
    return _history(parents)


def _history(parents: Sequence[tuple[int, ...]]) -> History:
    return History.of(
        Commit(sha=_name(place), parents=tuple(_name(parent) for parent in found))
        for place, found in enumerate(parents)
    )


def _name(place: int) -> str:
    return f"{place:05d}"


def is_new(history: History, sha: str, *, culprit: str) -> bool:
    """Whether the commit contains the culprit."""
    return bool(history.ancestors_of(sha) >> history.index[culprit] & 1)


def search(
    history: History,
    *,
    culprit: str,
    skips: Collection[str] = (),
    predicted: Sequence[str] = (),
    minutes: Callable[[str], float] = lambda _sha: 1.0,
) -> Searched:
    """A search between the first and the last commit whose verdicts are right."""

    def runs(sha: str) -> Mark:
        return "skip" if sha in skips else _side(is_new(history, sha, culprit=culprit))

    return _searched(history, runs, predicted=predicted, minutes=minutes)


def repeated_search(history: History, *, culprit: str, truth: Noise, repeat: int, rng: random.Random) -> Searched:
    """``--repeat``: every commit is run ``repeat`` times, until two runs differ: then it is skipped."""
    runs_used = 0

    def runs(sha: str) -> Mark:
        nonlocal runs_used
        seen: set[Mark] = set()
        for _ in range(repeat):
            runs_used += 1
            seen.add(_side(_verdict(history, sha, culprit=culprit, truth=truth, rng=rng)))
            if len(seen) > 1:
                return "skip"
        return seen.pop()

    return _searched(history, runs)._replace(trials=runs_used)


def _searched(
    history: History,
    runs: Callable[[str], Mark],
    *,
    predicted: Sequence[str] = (),
    minutes: Callable[[str], float] = lambda _sha: 1.0,
) -> Searched:
    marks: dict[str, Mark] = {history.commits[0].sha: "old", history.commits[-1].sha: "new"}
    while (sha := next_trial(history, marks, predicted=predicted, minutes=minutes)) is not None:
        marks[sha] = runs(sha)
    skipped = sum(mark == "skip" for mark in marks.values())
    return Searched(standing(history, marks).candidates, len(marks) - 2, skipped)


def noisy_search(
    history: History,
    *,
    culprit: str,
    stated: Noise,
    truth: Noise,
    confidence: float,
    rng: random.Random,
    skips: Collection[str] = (),
) -> Searched:
    """``--confidence``: verdicts are wrong as often as ``truth`` says, and thought to be so as often as ``stated``."""
    candidates = [commit.sha for commit in history.commits[1:]]
    testable = candidates[:-1]
    posterior = uniform(history, candidates)
    trials = skipped = 0
    while trials < most_trials(len(candidates)):
        sha = next_noisy_trial(posterior, history, testable=testable, noise=stated, confidence=confidence)
        if sha is None:
            break
        trials += 1
        if sha in skips:
            testable = [other for other in testable if other != sha]
            skipped += 1
            continue
        verdict = _verdict(history, sha, culprit=culprit, truth=truth, rng=rng)
        posterior = updated(posterior, history, sha=sha, is_new=verdict, noise=stated)
    answer = settled(posterior, history, testable=testable, confidence=confidence)
    return Searched(answer or credible(posterior, history, confidence=confidence), trials, skipped)


def _verdict(history: History, sha: str, *, culprit: str, truth: Noise, rng: random.Random) -> bool:
    if is_new(history, sha, culprit=culprit):
        return rng.random() >= truth.missed
    return rng.random() < truth.false


def _side(new: bool) -> Mark:
    return "new" if new else "old"
