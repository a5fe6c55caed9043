"""A bisection as it goes on: the table of its trials over the run of the current one; plain lines without a terminal.

The two names that a search talks to (``bisecting.question.seams.BisectView`` and, for the running trial,
``reproducing.progress.View``) are one screen: ``LiveBisection`` and its ``trial``.
"""

import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from rich.console import Console

from sparkdiag.evidence.base import Value
from sparkdiag.evidence.bisection import AxisKind, Bisection, Purpose
from sparkdiag.harmless.excerpt import one_line
from sparkdiag.reporting import bisection_phrases as phrases
from sparkdiag.reporting.bisection_summary import trial_table
from sparkdiag.reporting.live import LiveView
from sparkdiag.reporting.view_state import ViewLine

_LEAST_ROWS = 3


class Current(Value):
    """The trial that runs."""

    number: int
    name: str
    purpose: Purpose
    began_s: float
    minutes_left: float | None

    def headline(self, now_s: float) -> str:
        """``trial 4 (search): 1a2b3c4d5e "Drop the gate", about 7 minutes left``."""
        said = f"trial {self.number} ({phrases.PURPOSES[self.purpose]}): {self.name}"
        if self.minutes_left is None:
            return said
        left = self.minutes_left - (now_s - self.began_s) / 60
        return f"{said}, {about_minutes(left)} left" if left >= 1 else f"{said}, about a minute left"


class LiveBisection:
    """A context manager; see :class:`LiveView` for when it draws and when it prints lines."""

    def __init__(
        self,
        console: Console | None = None,
        *,
        axis: AxisKind,
        plain: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._axis: AxisKind = axis
        self._clock = clock
        self._found: Bisection | None = None
        self._current: Current | None = None
        self._told = 0
        self.trial = LiveView(console, plain=plain, clock=clock, above=self._above)

    def __enter__(self) -> Self:
        self.trial.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.trial.__exit__(kind, error, trace)

    def note(self, text: str) -> None:
        """One line that stays."""
        self.trial.say(text)

    def trial_begins(self, sha: str, *, subject: str, purpose: Purpose, minutes_left: float | None) -> None:
        """A trial is about to run."""
        named = phrases.short(self._axis, sha) + (f' "{one_line(subject, limit=100)}"' if subject else "")
        self._current = Current(
            number=len(self._found.trials) + 1 if self._found is not None else 1,
            name=named,
            purpose=purpose,
            began_s=self._clock(),
            minutes_left=minutes_left,
        )
        self.trial.restart()
        if not self.trial.is_live:
            self.trial.say(self._current.headline(self._clock()))

    def update(self, bisection: Bisection) -> None:
        """A trial has ended: without a live view each is told in one line."""
        self._found, self._current = bisection, None
        new, self._told = bisection.trials[self._told :], len(bisection.trials)
        if not self.trial.is_live and new:
            for line in trial_table(bisection, new, columns=160)[1:]:
                self.trial.say(line.rstrip())

    def table_lost(self) -> list[str]:
        """The table that goes with the live view when a search is stopped; without one its lines stand there."""
        found = self._found
        if found is None or not self.trial.is_live:
            return []
        return trial_table(found, found.trials, columns=self.trial.columns)

    def _above(self, columns: int, rows: int) -> Sequence[ViewLine]:
        lines = []
        found, current = self._found, self._current
        if found is not None and found.trials:
            shown = found.trials[-max(rows - 3, _LEAST_ROWS) :]
            head, *body = trial_table(found, shown, columns=columns)
            lines.append(ViewLine(label=head, text="", style="dim"))
            lines += [ViewLine(label=line, text="") for line in body]
        if current is not None:
            lines.append(ViewLine(label=current.headline(self._clock()), text="", style="bold"))
        return lines


def about_minutes(minutes: float) -> str:
    """``about 12 minutes``, ``about 2.5 hours``."""
    if minutes >= 120:
        return f"about {minutes / 60:.1f} hours"
    whole = max(round(minutes), 1)
    return f"about {whole} minutes" if whole > 1 else "about a minute"
