"""Room on the disk that a run keeps for its end, so that a disk which fills up meanwhile does not cost its verdict."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path

RESERVE_BYTES = 512 * 1024
"""A record and a report (``reporting.markdown.MOST_BYTES``) several times over."""
LEAST_BYTES = 8 * 1024


class Reserve:
    """A file without a name: when this process is gone, however it goes, the room is free and nothing lies around.

    It is no more than half of what is free; where the disk grants none, the run goes on without.
    """

    def __init__(self, folder: Path) -> None:
        self._fd: int | None = None
        with suppress(OSError), tempfile.TemporaryFile(dir=folder, prefix=".reserve.", buffering=0) as file:
            if _filled(file.fileno()):
                self._fd = os.dup(file.fileno())

    def release(self) -> None:
        """Give the room back. Safe to call twice."""
        if self._fd is not None:
            with suppress(OSError):
                os.ftruncate(self._fd, 0)
            with suppress(OSError):
                os.close(self._fd)
            self._fd = None


def _filled(fd: int) -> bool:
    """Whether the disk gave some room, perhaps less than it said to have: a quota or a limit may be lower."""
    size = RESERVE_BYTES
    with suppress(OSError):
        disk = os.fstatvfs(fd)
        size = min(size, disk.f_bavail * disk.f_frsize // 2)
    while size >= LEAST_BYTES:
        try:
            os.posix_fallocate(fd, 0, size)
        except OSError:
            with suppress(OSError):
                os.ftruncate(fd, 0)
            size //= 2
        else:
            return True
    return False
