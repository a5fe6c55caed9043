"""The run folder and its record, kept in step while a run goes on."""

from collections.abc import Callable
from typing import Any

from sparkdiag.evidence.base import Value
from sparkdiag.evidence.run import RunRecord, Timings
from sparkdiag.evidence.timeline import NoteEvent, Phase, PhaseEvent
from sparkdiag.recording.folder import RunFolder
from sparkdiag.reproducing.progress import View

SAY_EVERY_S = 15.0
"""While nothing new happens, a line at most this often."""


class RunInProgress:
    """One owner for "what is known of this run": every change is on disk before the next step starts."""

    def __init__(self, folder: RunFolder, record: RunRecord, *, view: View, clock: Callable[[], float]) -> None:
        self.folder = folder
        self.record = record
        self.view = view
        self.clock = clock
        self.launched_s = 0.0
        """When the server was started, on the run clock."""
        self._loading_step = "importing vLLM"
        self._loading_said_s = 0.0
        folder.write_record(record)

    def phase(self, name: Phase, detail: str = "") -> None:
        self.folder.append(PhaseEvent(t_s=self.clock(), phase=name, detail=detail))
        self.view.phase(name, detail)

    def note(self, source: str, text: str) -> None:
        self.folder.append(NoteEvent(t_s=self.clock(), source=source, text=text))
        self.view.note(text)

    def observed(self, value: Value) -> None:
        """What the observer saw; how stacks are taken is also told to whoever watches."""
        self.folder.append(value)
        if isinstance(value, NoteEvent) and value.source == "sampling":
            self.view.note(value.text)

    def loading(self, elapsed_s: float, _last_line: str, hint: str | None) -> None:
        """While the server loads: the view's business only, the log has it all. A line a step, or now and then; a
        line that names no step is the log's noise."""
        step = hint or self._loading_step
        if step == self._loading_step and self._loading_said_s and elapsed_s - self._loading_said_s < SAY_EVERY_S:
            return
        self._loading_step, self._loading_said_s = step, elapsed_s
        self.view.phase("loading", f"{elapsed_s:.0f} s: {step}"[:160])

    def update(self, **changes: Any) -> None:
        """Change fields of the record and write it."""
        self.record = self.record.model_copy(update=changes)
        self.folder.write_record(self.record)

    def time(self, **timings_s: float | None) -> None:
        """Set fields of ``timings_s``."""
        merged: Timings = self.record.timings_s.model_copy(update=timings_s)
        self.update(timings_s=merged)
