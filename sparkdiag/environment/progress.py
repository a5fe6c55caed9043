"""Where long work reports how far it is: the seam between building and whoever shows it."""

from typing import Protocol


class ProgressSink(Protocol):
    """One task at a time; the shower decides how often it draws."""

    def start(self, task: str, *, total: float | None, unit: str) -> None:
        """``task`` begins; ``total`` in ``unit`` (``bytes``, ``steps``), None when it cannot be known."""

    def advance(self, to: float) -> None:
        """The task has come to ``to`` units, counted from its start."""

    def finish(self, note: str = "") -> None:
        """The task is over; ``note`` says how it went."""

    def say(self, text: str) -> None:
        """One line for people, outside any task."""


class SilentProgress:
    """Shows nothing."""

    def start(self, task: str, *, total: float | None, unit: str) -> None:
        """Ignore it."""

    def advance(self, to: float) -> None:
        """Ignore it."""

    def finish(self, note: str = "") -> None:
        """Ignore it."""

    def say(self, text: str) -> None:
        """Ignore it."""
