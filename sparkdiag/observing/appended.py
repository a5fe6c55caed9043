"""Files that the probe appends to, read in bounded looks: what is new since the last one, in whole lines."""

import os
import stat
from pathlib import Path


class AppendedLines:
    """Remembers how far each file was read. One thread at a time."""

    def __init__(self) -> None:
        self._offsets: dict[Path, int] = {}

    def new(self, path: Path, *, at_most_bytes: int) -> tuple[list[bytes], bool]:
        """The new lines of a file, without the torn last one, and whether the look was full: more may be there."""
        offset = self._offsets.get(path, 0)
        data = _read_from(path, offset, at_most_bytes=at_most_bytes)
        full = len(data) == at_most_bytes
        whole, newline, _torn = data.rpartition(b"\n")
        if not newline:
            # One line longer than a whole look is nothing the probe writes: step over it.
            self._offsets[path] = offset + (len(data) if full else 0)
            return [], full
        self._offsets[path] = offset + len(whole) + 1
        return whole.split(b"\n"), full


def _read_from(path: Path, offset: int, *, at_most_bytes: int) -> bytes:
    """Bytes of a plain file; nothing of a pipe, a link, or what is not there."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.pread(fd, at_most_bytes, offset) if stat.S_ISREG(os.fstat(fd).st_mode) else b""
    except OSError:
        return b""
    finally:
        os.close(fd)
