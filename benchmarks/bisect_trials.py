"""How many trials does a search take, against ``git bisect``, with a right prediction, a wrong one and none?

Both ends are counted apart: every search needs them. Trials are counted, not timed, so a busy machine does not matter.
"""

import random
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from benchmarks.asked import Asked, Benchmark, Findings, say
from benchmarks.bisect_git import GitHistory
from benchmarks.paired import Comparison, Pair, compare
from sparkdiag.bisecting.search.candidates import longest_halving
from sparkdiag.bisecting.search.history import History
from sparkdiag.bisecting.steps.simulation import is_new, merging, search, straight

SEARCHES = {16: 24, 64: 16, 256: 10, 1024: 8, 4096: 5}
"""By number of candidates."""
QUICK = {16: 2, 64: 2}
SHAPES = ("chain", "merges")
GOAL = 0.5
SEED = 1
FEWEST = (
    "No search needs fewer than the culprit itself and each of its parents: two trials, three where it is a merge, one "
    "less where it or a parent is an end. Halving's longest is over all culprits, git's figures over those drawn."
)


class Trials(NamedTuple):
    """One culprit, searched for in four ways."""

    git: int
    plain: int
    right: int
    """The prediction is the culprit."""
    wrong: int
    """The prediction is another commit, one that tells next to nothing in every other search."""


class Kind(NamedTuple):
    """Searches in histories of one shape and size."""

    shape: str
    size: int
    trials: tuple[Trials, ...]
    longest: int
    """Plain halving's worst case, over the histories searched."""

    @property
    def name(self) -> str:
        return f"{self.shape} of {self.size:,}"


def measure(asked: Asked) -> Findings:
    """Raises ``subprocess.SubprocessError`` where git fails."""
    kinds = [
        _kind(shape, size, count=asked.pairs or count)
        for size, count in (QUICK if asked.quick else SEARCHES).items()
        for shape in SHAPES
    ]
    settings: dict[str, str | int | float] = {"seed": SEED, "searches": sum(len(kind.trials) for kind in kinds)}
    return Findings(tuple(_against_git(kind) for kind in kinds), settings, tuple(_table(kinds)))


def _kind(shape: str, size: int, *, count: int) -> Kind:
    """A history in git costs more than a search in it: one of a shape and size."""
    say(f"{shape} of {size:,}: {count} searches")
    rng = random.Random(f"{SEED} {shape} {size}")
    history = straight(size) if shape == "chain" else merging(size, rng=rng)
    with tempfile.TemporaryDirectory(prefix="sparkdiag-bisect-") as folder:
        repository = GitHistory(Path(folder), history)
        trials = tuple(_trials(history, repository, number=number, rng=rng) for number in range(count))
    return Kind(shape, size, trials, longest_halving(history, history.ancestors[-1] & ~1))


def _trials(history: History, repository: GitHistory, *, number: int, rng: random.Random) -> Trials:
    everybody = [commit.sha for commit in history.commits]
    culprit = rng.choice(everybody[1:])
    names = {sha: name for name, sha in repository.shas.items()}
    edges = (everybody[1], everybody[-2])
    wrong = [sha for sha in (edges if number % 2 else everybody[1:]) if sha != culprit]
    git = repository.bisect(
        old=repository.shas[everybody[0]],
        new=repository.shas[everybody[-1]],
        judge=lambda sha: "new" if is_new(history, names[sha], culprit=culprit) else "old",
    )
    ours = [
        search(history, culprit=culprit, predicted=predicted) for predicted in ((), (culprit,), (rng.choice(wrong),))
    ]
    for found in ours:
        if found.answer != (culprit,) or git.answer != (repository.shas[culprit],):
            raise AssertionError(f"the culprit is {culprit}, ours {found.answer}, git's {git.answer}")
    return Trials(git.trials, *(found.trials for found in ours))


def mean_ratio(pairs: Sequence[Pair]) -> float:
    """Trials of all searches together: what a user of many searches would notice."""
    return sum(measured for _, measured in pairs) / sum(reference for reference, _ in pairs)


def _against_git(kind: Kind) -> Comparison:
    pairs: list[Pair] = [(trials.git, trials.right) for trials in kind.trials]
    return compare(
        pairs,
        measured=f"{kind.name}, prediction right",
        reference="git bisect",
        unit="trials",
        statistic=mean_ratio,
        goal=GOAL,
    )


def _table(kinds: Sequence[Kind]) -> list[str]:
    head = f"{'mean (most) trials':18}{'git bisect':>12}{'plain':>12}{'right':>12}{'wrong':>12}  wrong: more than git's"
    return [head, *(_line(kind) for kind in kinds), FEWEST]


def _line(kind: Kind) -> str:
    columns = [list(column) for column in zip(*kind.trials, strict=True)]
    cells = "".join(f"{f'{mean(column):.2f} ({max(column)})':>12}" for column in columns)
    more = [trials.wrong - trials.git for trials in kind.trials]
    over = max(trials.wrong for trials in kind.trials) - kind.longest
    return (
        f"{kind.name:18}{cells}  {mean(more):+.2f} on average, {max(more):+d} at most; {over:+d} on halving's longest"
    )


BENCHMARK = Benchmark(
    question="trials beyond the two ends, against git bisect, by what is predicted", about_s=150, measure=measure
)
