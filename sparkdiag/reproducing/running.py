"""The run folder and its record, kept in step while a run goes on."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sparkdiag.errors import SparkdiagError
from sparkdiag.evidence.base import Value
from sparkdiag.evidence.run import RunRecord, Timings
from sparkdiag.evidence.timeline import NoteEvent, Phase, PhaseEvent
from sparkdiag.harmless.secrets import redact_text
from sparkdiag.recording.folder import RunFolder
from sparkdiag.reproducing.progress import View
from sparkdiag.reproducing.signals import Terminated

SAY_EVERY_S = 15.0
"""While nothing new happens, a line at most this often."""


def run_clock() -> Callable[[], float]:
    """Seconds since now, monotonic."""
    began = time.monotonic()
    return lambda: time.monotonic() - began


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


@contextmanager
def kept_whatever_happens(run: RunInProgress) -> Iterator[None]:
    """Whatever ends the run early, its record says so, and what was seen until then stays readable."""
    try:
        yield
    except KeyboardInterrupt:
        run.update(status="interrupted", error="interrupted by the user")
        raise
    except Terminated:
        run.update(status="interrupted", error="terminated (SIGTERM)")
        raise
    except SparkdiagError as error:
        run.update(status="failed", error=redact_text("\n".join([error.message, *error.details])))
        raise
    except Exception as error:
        run.update(status="failed", error=redact_text(f"{type(error).__name__}: {error}"))
        raise
    finally:
        run.folder.close()
