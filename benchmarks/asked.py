"""What a benchmark is asked for and what it gives back."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from benchmarks.paired import Comparison
from sparkdiag.evidence.base import Value


class Asked(Value):
    """The options that all benchmarks share; each reads those that mean something to it."""

    quick: bool = False
    """As few pairs as show that it runs: no figure of it means anything."""
    pairs: int | None = None
    prompt_tokens: int | None = None
    out: Path
    repo: Path | None = None
    """A real clone; only ``route`` asks for one."""

    def pairs_or(self, default: int, *, quick: int) -> int:
        """``--pairs``, else the benchmark's own number."""
        return self.pairs or (quick if self.quick else default)


class Findings(NamedTuple):
    """What was measured."""

    comparisons: tuple[Comparison, ...]
    settings: dict[str, str | int | float]
    notes: tuple[str, ...] = ()


class Benchmark(NamedTuple):
    """One question and how it is answered."""

    question: str
    about_s: int
    """About how long it takes on two cores."""
    measure: Callable[[Asked], Findings]


def say(text: str) -> None:
    """Progress goes to stderr: stdout is the result's."""
    print(text, file=sys.stderr, flush=True)
