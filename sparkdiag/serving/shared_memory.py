"""Which entries of /dev/shm a tree uses, and their removal once it is gone.

Nothing says who made an entry, so whoever maps it or has it open is asked while it lives. The kernel tells of a new
entry at once (inotify(7)), which is when its maker still holds it: what is made and abandoned within a few milliseconds
of a crash stays unknown, unless a process of the tree stands in its name.

Standard library only: the guardian's script imports this under ``python -I -S``.
"""

# A script that starts in milliseconds imports little, so no pathlib:
# ruff: noqa: PTH108, PTH115, PTH116, PTH123, PTH208

import contextlib
import ctypes
import os
import re
from collections.abc import Iterable
from typing import NamedTuple

from sparkdiag.serving.tree import Proc

SHM = "/dev/shm"  # noqa: S108 - the folder itself, not a temporary file
LOOKS = 8
"""How often the tree is asked about an entry that it does not hold."""
IN_MOVED_TO, IN_CREATE = 0x80, 0x100


class Segment(NamedTuple):
    """An entry of /dev/shm; the inode tells a later entry of the same name apart."""

    name: str
    inode: int


def segments() -> set[Segment]:
    found = set()
    with contextlib.suppress(OSError), os.scandir(SHM) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                if entry.is_file(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_uid == os.getuid():
                    found.add(Segment(entry.name, entry.inode()))
    return found


def holds(pid: int) -> set[Segment]:
    """Shared memory that a process maps or has open."""
    found = set()
    with contextlib.suppress(OSError), open(f"/proc/{pid}/maps", errors="replace") as file:
        for line in file:
            if SHM in line and len(fields := line.split(None, 5)) == 6:
                path = fields[5].rstrip("\n")
                if path.startswith(SHM + "/") and "/" not in path[len(SHM) + 1 :]:
                    found.add(Segment(path[len(SHM) + 1 :], int(fields[4])))
    with contextlib.suppress(OSError):
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                path = os.readlink(f"/proc/{pid}/fd/{fd}")
                if path.startswith(SHM + "/"):
                    found.add(Segment(path[len(SHM) + 1 :], os.stat(f"/proc/{pid}/fd/{fd}").st_ino))
    return found


def sweep_shm(owned: Iterable[Segment], *, tree: set[int]) -> tuple[list[str], list[str]]:
    """Unlink what only the tree used. Returns (removed, left because somebody else still holds it)."""
    here = set(owned) & segments()
    if not here:
        return [], []
    others: set[Segment] = set()
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) not in tree:
            others |= holds(int(name))
    removed = []
    for segment in here - others:
        with contextlib.suppress(OSError):
            os.unlink(f"{SHM}/{segment.name}")
            removed.append(segment.name)
    return sorted(removed), sorted(segment.name for segment in here & others)


def new_entries_fd() -> int | None:
    """A file descriptor that becomes readable when an entry appears; None where the kernel grants none."""
    libc = ctypes.CDLL(None)
    fd: int = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if fd < 0:
        return None
    if libc.inotify_add_watch(fd, SHM.encode(), IN_CREATE | IN_MOVED_TO) < 0:
        os.close(fd)
        return None
    return fd


class ShmLedger:
    """Remembers which entries the tree used. Processes are looked at only when an entry is new."""

    def __init__(self) -> None:
        self.before = segments()
        self.owned: set[Segment] = set()
        self.looks: dict[Segment, int] = {}
        self.pids: set[int] = set()

    def look(self, tree: Iterable[Proc], *, last: bool = False) -> bool:
        """True when something was added."""
        pids = {proc.pid for proc in tree}
        makers, self.pids = pids | self.pids, pids
        new = segments() - self.before - self.owned
        added = {segment for segment in new if segment not in self.looks and makers & numbers(segment.name)}
        asked = {segment for segment in new - added if last or self.looks.get(segment, 0) < LOOKS}
        for segment in asked:
            self.looks[segment] = self.looks.get(segment, 0) + 1
        for pid in pids if asked else ():
            added |= holds(pid) & asked
        self.owned |= added
        return bool(added)


def numbers(name: str) -> set[int]:
    """The whole numbers in an entry's name: PyTorch, NCCL and others put their pid there (``torch_4711_1``). Only for
    an entry that has just appeared: a pid of the tree that is alive, or was half a second ago, is nobody else's."""
    return {int(part) for part in re.split(r"[^0-9A-Za-z]", name) if part.isdecimal() and len(part) < 10}
