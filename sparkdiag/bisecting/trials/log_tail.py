"""The end of a server's log, as a run folder keeps it."""

import os
from pathlib import Path

from sparkdiag.recording.record import open_regular

TAIL_BYTES = 1 << 20


def tail_of(path: Path) -> tuple[str, ...]:
    """The last lines of a log, at most ``TAIL_BYTES``; none where it cannot be read."""
    try:
        with open_regular(path) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL_BYTES))
            return tuple(file.read(TAIL_BYTES).decode("utf-8", "replace").splitlines())
    except OSError:
        return ()
