"""What a reproduction tells whoever watches it; the live view is one such, plain lines another."""

from typing import Protocol

from sparkdiag.environment.progress import ProgressSink
from sparkdiag.evidence.observation import Observation
from sparkdiag.evidence.timeline import Phase
from sparkdiag.evidence.verdict import Verdict


class View(Protocol):
    """The seam between a run and the terminal."""

    def phase(self, name: Phase, detail: str = "") -> None:
        """A new part of the run begins."""

    def update(self, observation: Observation, verdict: Verdict) -> None:
        """What is seen and thought at this moment, about once a second."""

    def note(self, text: str) -> None:
        """One line worth keeping on the screen."""

    def progress_sink(self) -> ProgressSink:
        """Where long work below (an environment being built) reports how far it is."""
