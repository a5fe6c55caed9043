"""SIGTERM ends a run as tidily as Ctrl-C does."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Terminated(BaseException):
    """SIGTERM arrived. Not an ``Exception``: nothing on the way may swallow it."""


@contextmanager
def sigterm_raises() -> Iterator[None]:
    """Within, SIGTERM raises :class:`Terminated` in the main thread; the earlier handler comes back after."""

    def raise_terminated(_number: int, _frame: FrameType | None) -> None:
        raise Terminated

    before = signal.signal(signal.SIGTERM, raise_terminated)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
