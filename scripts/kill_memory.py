"""This user's entries of /dev/shm, for ``kill_moments.py``: as any observer sees them, not as sparkdiag does."""

import contextlib
import os
import re
from pathlib import Path

SHM = Path("/dev/shm")


def segments() -> dict[str, int]:
    """This user's entries of /dev/shm and their inodes."""
    found = {}
    with contextlib.suppress(OSError), os.scandir(SHM) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                if status.st_uid == os.getuid():
                    found[entry.name] = status.st_ino
    return found


def held_names(pid: int) -> set[str]:
    """Entries of /dev/shm that a process maps or has open."""
    names: set[str] = set()
    with contextlib.suppress(OSError):
        names |= set(re.findall(r" /dev/shm/([^/\n]+?)(?: \(deleted\))?$", Path(f"/proc/{pid}/maps").read_text(), re.M))
    with contextlib.suppress(OSError):
        for fd in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                path = fd.readlink()
                if path.parent == SHM:
                    names.add(path.name)
    return names


def older_than(name: str, moment_ns: int) -> bool:
    """Whether an entry of /dev/shm was last written before a moment; what is gone is not."""
    with contextlib.suppress(OSError):
        return (SHM / name).stat().st_mtime_ns < moment_ns
    return False
