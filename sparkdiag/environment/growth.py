"""How far a build really is: bytes on disk of what grows, or bytes that uv has written, whichever is more."""

import contextlib
import os
import time
from pathlib import Path

import psutil

WALK_SHARE = 0.1
"""Of the time, at most, spent walking the growing folder."""
MIN_PERIOD_S = 0.5


def folder_bytes(folder: Path) -> int:
    """Sum of the sizes of the regular files under ``folder``; what vanishes meanwhile counts nothing."""
    total = 0
    pending = [str(folder)]
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                    elif entry.is_file(follow_symlinks=False):
                        total += entry.stat(follow_symlinks=False).st_size
        except OSError:
            continue
    return total


class GrowthMeter:
    """Measures one build.

    uv unpacks into its own cache first and links from there at the very end, so the folder alone would stand at zero
    nearly to the end; what uv has written (the kernel counts it) says how far it is. With a warm cache uv writes
    nothing and the folder tells.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._written_by_pid: dict[int, int] = {}
        self._next_walk_s = 0.0
        self._on_disk = 0

    def measure(self, pid: int) -> int:
        """Bytes so far, over all commands of the build."""
        with contextlib.suppress(psutil.Error, AttributeError, OSError):
            self._written_by_pid[pid] = psutil.Process(pid).io_counters().write_chars
        began_s = time.monotonic()
        if began_s >= self._next_walk_s:
            self._on_disk = folder_bytes(self._folder)
            ended_s = time.monotonic()
            self._next_walk_s = ended_s + max(MIN_PERIOD_S, (ended_s - began_s) / WALK_SHARE)
        return max(self._on_disk, sum(self._written_by_pid.values()))
