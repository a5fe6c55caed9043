"""Whether a run still goes on, as the kernel tells it: who writes a run holds its timeline, and dying lets go.

No pid is kept for this: pids are reused, and mean nothing to another container that shares the folder.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

TIMELINE = "timeline.jsonl"


def hold(fd: int) -> None:
    """Mark the open stream ``fd`` as being written, until it is closed or this process is gone, however it goes.

    A file system without locks is no reason to end a run; then nobody can tell (``is_held`` is None).
    """
    with suppress(OSError):
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


def is_held(folder: Path) -> bool | None:
    """Whether a process writes the run in ``folder`` at this moment; None where that cannot be told."""
    with unheld(folder) as free:
        return None if free is None else not free


@contextmanager
def unheld(folder: Path) -> Iterator[bool | None]:
    """True when nobody writes the run in ``folder``, and nobody does while the block runs; None: cannot be told."""
    with unlocked(folder / TIMELINE) as free:
        yield free


@contextmanager
def unlocked(file: Path) -> Iterator[bool | None]:
    """True when nobody holds the lock of ``file``, and nobody does while the block runs; None: cannot be told."""
    try:
        fd = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        yield True
        return
    except OSError:
        yield None
        return
    try:
        yield _free(fd)
    finally:
        os.close(fd)


def _free(fd: int) -> bool | None:
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True
