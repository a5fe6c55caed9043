"""Python's collector of circles, kept from looking again and again through what is only just being read."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused_collector() -> Iterator[None]:
    """What is read back forms no circles, yet the collector would look through all of it every time it grows: half of
    the time that reading takes."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
