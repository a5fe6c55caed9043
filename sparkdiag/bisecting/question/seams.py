"""What the search needs of the world: somebody who runs trials, and somebody who hears of them."""

from collections.abc import Sequence
from typing import Protocol

from sparkdiag.evidence.bisection import Bisection, Purpose, StackShare, TrialResult


class TrialRunner(Protocol):
    """Runs one trial at a time. ``bisecting.runner`` does it with ``reproduce``; tests and benchmarks simulate it."""

    def run(self, sha: str, *, purpose: Purpose, healthy: TrialResult | None) -> TrialResult:
        """Run the point once. ``healthy``: the watched result of the end that completed, whose time to first token is
        the baseline of every later trial; None while no end did.

        A trial that cannot be run is a result (``not-built``, ``not-started``, ``not-proved``, ``inconclusive``) and no
        exception; what ends the search is raised: ``KeyboardInterrupt``, ``Terminated``, a ``SparkdiagError`` that
        would meet every other point too (the machine is busy, no py-spy, no disk).
        """

    def prefetch(self, shas: Sequence[str]) -> None:
        """These may be next: make their environments ready while a trial runs. Returns at once."""

    def minutes(self, sha: str) -> float:
        """What a trial of the point is expected to take, by what its environment needs first."""


class BisectView(Protocol):
    """Hears how the search gets on."""

    def note(self, text: str) -> None:
        """One line worth keeping."""

    def trial_begins(self, sha: str, *, subject: str, purpose: Purpose, minutes_left: float | None) -> None:
        """Before each trial; ``minutes_left``: the forecast for the rest of the search."""

    def update(self, bisection: Bisection) -> None:
        """After each trial."""


class AnswerDetails(Protocol):
    """What a reader wants to see of an answer that the journal does not hold. A failure is noted; the answer stands."""

    def suspect_diff(self, *, old: str, new: str) -> str:
        """Unified diff of the watched files between two points, bounded; empty where there is none."""

    def stack_difference(self, *, with_it: TrialResult, without: TrialResult) -> tuple[StackShare, ...]:
        """Where the workers' time went in a run that has what is looked for and in one that has not."""
