"""Asking again, a bounded number of times and for a bounded time, where that may help; and saying so while it lasts."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from sparkdiag.posting.answers import GitHubRefused

T = TypeVar("T")
MOST_TRIES = 4
_FIRST_WAIT_S = 1.0


@dataclass(kw_only=True)
class Patience:
    """What may be waited in one command, whatever it asks for; each wait leaves less for the next."""

    left_s: float
    say: Callable[[str], None]
    sleep: Callable[[float], None] = field(default=time.sleep)

    def of(self, ask: Callable[[], T], *, before_again: Callable[[], T | None] | None = None) -> T:
        """What ``ask`` gives, at the latest of four times. Raises the last ``GitHubRefused``.

        ``before_again`` looks whether the last try was heard after all; what it finds is the answer.
        """
        for number in range(1, MOST_TRIES + 1):
            try:
                return ask()
            except GitHubRefused as error:
                self._wait(error, number)
            if before_again is not None and (found := before_again()) is not None:
                return found
        raise AssertionError("unreachable: the last try raises")

    def _wait(self, error: GitHubRefused, number: int) -> None:
        wait_s = max(error.wait_s or 0.0, _FIRST_WAIT_S * 2 ** (number - 1))
        if not error.again or number == MOST_TRIES or wait_s > self.left_s:
            raise error
        self.say(f"{error.message}; asking again in {wait_s:.0f} s (try {number + 1} of {MOST_TRIES})")
        self.left_s -= wait_s
        self.sleep(wait_s)
