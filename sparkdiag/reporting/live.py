"""The run as it goes on: a live view where stderr is a terminal, else a plain line now and then. Talk is on stderr."""

import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from sparkdiag.evidence.observation import Observation
from sparkdiag.evidence.timeline import Phase
from sparkdiag.evidence.verdict import Verdict
from sparkdiag.harmless.excerpt import excerpt
from sparkdiag.reporting.view_state import Task, ViewLine, ViewState, one_line, view_lines

_QUIET_S = 5.0
"""Plain lines come at most this often between changes of phase."""
_REFRESH_PER_S = 1
"""Drawing costs 1.5 ms of CPU, and what is drawn changes once a second."""


class LiveView:
    """A context manager; its methods may be called from several threads.

    ``plain`` asks for lines also on a terminal (``--json``). Without a terminal there are only lines. Where the run is
    one of many, ``above`` tells what stands over it (given columns and rows), and its phases and notes do not stay.
    """

    def __init__(
        self,
        console: Console | None = None,
        *,
        plain: bool = False,
        clock: Callable[[], float] = time.monotonic,
        above: Callable[[int, int], Sequence[ViewLine]] | None = None,
    ) -> None:
        self._console = console or Console(stderr=True, highlight=False)
        self._above = above
        self._clock = clock
        self._began = clock()
        self._lock = threading.RLock()
        self._state = ViewState()
        self._last_line_s = float("-inf")
        live = self._console.is_terminal and not self._console.is_dumb_terminal and not plain
        self._live = (
            Live(
                get_renderable=self._render,
                console=self._console,
                refresh_per_second=_REFRESH_PER_S,
                transient=True,
                vertical_overflow="crop",
                redirect_stdout=False,
                redirect_stderr=False,
            )
            if live
            else None
        )

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    @property
    def state(self) -> ViewState:
        return self._state

    @property
    def is_live(self) -> bool:
        """Whether something is drawn over, and not only lines are printed."""
        return self._live is not None

    @property
    def columns(self) -> int:
        """Characters that fit into one line."""
        return max(self._console.width - 1, 10)

    def restart(self) -> None:
        """Another run begins: nothing is known of it yet, and its clock is at zero."""
        with self._lock:
            self._began = self._clock()
            self._last_line_s = float("-inf")
            self._state = ViewState()

    def phase(self, name: Phase, detail: str = "") -> None:
        """A new part of the run begins, or the same one goes on with news: always one line that stays."""
        now_s = self._now_s()
        with self._lock:
            began_s = self._state.phase_began_s if name == self._state.phase else now_s
            self._change(phase=name, detail=detail, phase_began_s=began_s, task=None)
        if not self._one_of_many:
            self._print(f"{now_s:6.1f} s  {name}" + (f": {detail}" if detail else ""))

    def update(self, observation: Observation, verdict: Verdict) -> None:
        """What is seen and thought at this moment; may be called as often as one likes."""
        self._change(observation=observation, verdict=verdict)
        self._say_now_and_then()

    def note(self, text: str) -> None:
        """One line that stays on the screen; of one run of many only until the next."""
        if self._one_of_many:
            self._change(note=text)
        else:
            self._print(text)

    def say(self, text: str) -> None:
        """One line that stays on the screen, whatever runs below."""
        self._print(text)

    def progress_sink(self) -> "ViewProgress":
        """Where long work reports how far it is; one task at a time."""
        return ViewProgress(self)

    def task(self, task: Task | None) -> None:
        """Show ``task`` as going on, or that there is none."""
        self._change(task=task)
        if task is not None:
            self._say_now_and_then()

    def now_s(self) -> float:
        """Seconds since the view opened."""
        return self._now_s()

    @property
    def _one_of_many(self) -> bool:
        return self._above is not None and self._live is not None

    def _now_s(self) -> float:
        return self._clock() - self._began

    def _change(self, **changes: Any) -> None:
        with self._lock:
            self._state = self._state.model_copy(update=changes)

    def _say_now_and_then(self) -> None:
        if self._live is not None:
            return
        with self._lock:
            now_s = self._now_s()
            if now_s - self._last_line_s < _QUIET_S:
                return
        self._print(f"{now_s:6.1f} s  {one_line(self._state, now_s=now_s)}")

    def _print(self, text: str) -> None:
        """``Text`` is not read as markup, and ``plain`` leaves nothing that steers a terminal."""
        with self._lock:
            self._last_line_s = self._now_s()
            self._console.print(
                Text(excerpt(text, limit=1000)), highlight=False, soft_wrap=not self._console.is_terminal
            )

    def _render(self) -> Text:
        with self._lock:
            state, now_s = self._state, self._now_s()
        columns = self.columns
        rendered = Text(no_wrap=True, overflow="crop")
        lines = view_lines(state, now_s=now_s)
        above = self._above(columns, max(self._console.height - len(lines) - 1, 1)) if self._above is not None else ()
        for line in (*above, *lines):
            for text in line.fitted(columns):
                rendered.append(text + "\n", style=line.style)
        rendered.rstrip()
        return rendered


class ViewProgress:
    """``sparkdiag.environment.progress.ProgressSink`` on a live view."""

    def __init__(self, view: LiveView) -> None:
        self._view = view
        self._task: Task | None = None

    def start(self, task: str, *, total: float | None = None, unit: str = "") -> None:
        """A piece of work begins; ``total`` in ``unit`` where it is known."""
        self._task = Task(name=task, total=total, unit=unit, began_s=self._view.now_s())
        self._view.task(self._task)

    def advance(self, to: float) -> None:
        """It has come to ``to``, in the unit it began with."""
        if self._task is not None:
            self._task = self._task.model_copy(update={"at": to})
            self._view.task(self._task)

    def finish(self, note: str = "") -> None:
        """It is done; ``note`` stays on the screen."""
        if self._task is not None:
            took_s = self._view.now_s() - self._task.began_s
            self._view.note(f"{self._task.name}: {note or 'done'} ({took_s:.1f} s)")
        self._task = None
        self._view.task(None)

    def say(self, text: str) -> None:
        """One line that stays."""
        self._view.note(text)
