"""One thread that does one thing again and again, and can be woken to do it now."""

import threading
import time
from collections.abc import Callable

SHORTEST_PAUSE_S = 0.02
"""Between the end of one round and the start of the next, whatever the period says."""


class Ticker:
    """Calls ``action()`` every ``period_s()`` seconds, from start to start, in a daemon thread of its own.

    What an action raises goes to ``on_error``; the rounds go on.
    """

    def __init__(
        self,
        name: str,
        action: Callable[[], None],
        *,
        period_s: Callable[[], float],
        on_error: Callable[[Exception], None],
    ) -> None:
        self._action = action
        self._period_s = period_s
        self._on_error = on_error
        self._changed = threading.Condition()
        self._stopping = False
        self._awake = False
        self._thread = threading.Thread(target=self._run, name=f"sparkdiag-{name}", daemon=True)

    def start(self) -> None:
        """The first round begins at once."""
        self._thread.start()

    def stop(self) -> None:
        """No further round; does not wait for the one that runs."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()

    def join(self, timeout_s: float) -> bool:
        """Wait for the thread's end; False when it has not ended in time."""
        if self._thread.ident is not None:
            self._thread.join(timeout=max(0.0, timeout_s))
        return not self._thread.is_alive()

    def wake(self) -> None:
        """Begin the next round now."""
        with self._changed:
            self._awake = True
            self._changed.notify_all()

    def _run(self) -> None:
        next_s = time.monotonic()
        while True:
            with self._changed:
                self._changed.wait_for(
                    lambda: self._stopping or self._awake, timeout=max(0.0, next_s - time.monotonic())
                )
                if self._stopping:
                    return
                self._awake = False
            began_s = time.monotonic()
            pause_s = self._round()
            next_s = max(began_s + pause_s, time.monotonic() + SHORTEST_PAUSE_S)

    def _round(self) -> float:
        try:
            self._action()
            return self._period_s()
        except Exception as error:  # a broken round must not end the observation of a whole run
            self._on_error(error)
            return 1.0
