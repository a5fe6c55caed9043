"""Makes the environments of possible next points ready while a trial runs, and never while it is measured.

Preparing an environment (exporting a tree, checking out a worktree, installing wheels) takes processor time and disk,
and from the prompt's sending to the verdict both are evidence: on two cores a neighbour would slow what is timed. So
the work is done while the trial's server loads, which says nothing about a prefill, at the lowest priority; what is not
done when the server is ready is waited for before the prompt is sent, and what has not begun by then is left. That
costs no more than preparing it after the trial would.
"""

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

from sparkdiag.environment.progress import ProgressSink, SilentProgress
from sparkdiag.errors import SparkdiagError

MOST = 2
"""Both possible next points: the one after each answer."""
WAIT_AT_MOST_S = 600.0
CANCEL_WITHIN_S = 15.0
LOWEST_PRIORITY = 19


class _Stopped(Exception):
    """Raised inside the preparing thread, so that what it runs is ended."""


class Prefetcher:
    """One thread at most; started when a server loads, joined before its prompt is sent.

    ``prepare(sha, progress)`` makes one environment ready and raises a ``SparkdiagError`` where it cannot: that is
    noted and no more, for the point's own trial meets it again.
    """

    def __init__(self, prepare: Callable[[str, ProgressSink], None], *, note: Callable[[str], None]) -> None:
        self._prepare = prepare
        self._note = note
        self._wanted: tuple[str, ...] = ()
        self.done: set[str] = set()
        """Prepared so far."""
        self._last = threading.Event()
        self._cancelled = threading.Event()
        self._thread: threading.Thread | None = None
        self._failures: list[str] = []

    def want(self, shas: Sequence[str]) -> None:
        """These may be next."""
        self._wanted = tuple(sha for sha in dict.fromkeys(shas) if sha not in self.done)[:MOST]

    def begin(self) -> None:
        """From here on preparing disturbs nothing."""
        if self._thread is not None or not self._wanted:
            return
        self._last.clear()
        self._cancelled.clear()
        self._thread = threading.Thread(target=self._work, args=(self._wanted,), name="prefetch", daemon=True)
        self._wanted = ()
        self._thread.start()

    def hold(self) -> None:
        """From here on it would: what is being prepared is waited for, the rest is left."""
        self._last.set()
        self._join(WAIT_AT_MOST_S, late="an environment is still being prepared; it may slow what is measured now")

    def end(self) -> None:
        """The trial is over, in whatever way: end what is still being prepared."""
        self._last.set()
        self._cancelled.set()
        self._join(CANCEL_WITHIN_S, late="an environment that may be needed next is still being prepared")

    def _join(self, within_s: float, *, late: str) -> None:
        if self._thread is None:
            return
        self._thread.join(within_s)
        if self._thread.is_alive():
            self._note(late)
            return
        self._thread = None
        for text in self._failures:
            self._note(text)
        self._failures.clear()

    def _work(self, shas: Sequence[str]) -> None:
        with suppress(OSError):  # of this thread alone, and inherited by the programs it starts (setpriority(2))
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LOWEST_PRIORITY)
        for sha in shas:
            if self._last.is_set():
                return
            try:
                self._prepare(sha, _StoppedProgress(self._cancelled))
                self.done.add(sha)
            except _Stopped:
                return
            except (SparkdiagError, OSError) as error:
                self._failures.append(f"{sha[:10]} could not be prepared beforehand: {error}")


class _StoppedProgress(SilentProgress):
    """Shows nothing; asked for progress after a cancellation, it ends whoever reports it."""

    def __init__(self, cancelled: threading.Event) -> None:
        self._cancelled = cancelled

    def start(self, task: str, *, total: float | None, unit: str) -> None:  # noqa: ARG002
        """A step begins: not when it was cancelled."""
        self._check()

    def advance(self, to: float) -> None:  # noqa: ARG002
        """Several times a second while something is installed."""
        self._check()

    def say(self, text: str) -> None:  # noqa: ARG002
        """Also while another process is waited for."""
        self._check()

    def _check(self) -> None:
        if self._cancelled.is_set():
            raise _Stopped
