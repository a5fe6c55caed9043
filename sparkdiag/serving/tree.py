"""Processes as the kernel shows them, and signals that can only reach the one that is meant.

Standard library only: the guardian's script imports this under ``python -I -S``.
"""

# A script that starts in milliseconds imports little, so no pathlib:
# ruff: noqa: PTH123, PTH208

import os
import signal
from typing import NamedTuple


class Proc(NamedTuple):
    pid: int
    started_ticks: int


def read_stat(pid: int) -> tuple[int, int, str] | None:
    """(parent, start time in clock ticks, state) of a process; state ``Z`` only when no thread of it lives."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rsplit(b")", 1)[1].split()
    except (OSError, IndexError):
        return None
    state = fields[0].decode() if int(fields[17]) <= 1 else "R"
    return int(fields[1]), int(fields[19]), state


def descendants(roots: set[int]) -> list[Proc]:
    """Living processes below ``roots`` (which are left out), zombies left out, parents first."""
    parents: dict[int, tuple[int, Proc]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (found := read_stat(int(name))) and found[2] not in "ZX":
            parents[int(name)] = (found[0], Proc(int(name), found[1]))
    below: list[Proc] = []
    wave = roots
    while wave:
        children = [proc for parent, proc in parents.values() if parent in wave and proc.pid not in roots]
        below += children
        wave = {proc.pid for proc in children}
    return below


def send(proc: Proc, number: int) -> bool:
    """Signal exactly this process: by pidfd, and only if it still has the remembered start time."""
    try:
        fd = os.pidfd_open(proc.pid)
    except OSError:
        return False
    try:
        found = read_stat(proc.pid)
        if found is None or found[1] != proc.started_ticks:
            return False
        signal.pidfd_send_signal(fd, number)
    except OSError:
        return False
    finally:
        os.close(fd)
    return True


def freeze(roots: set[int]) -> None:
    """Stop everything below ``roots``, so that nothing new comes into being between a last look and the end."""
    stopped: set[Proc] = set()
    for _ in range(20):
        running = set(descendants(roots)) - stopped
        if not running:
            return
        for proc in running:
            send(proc, signal.SIGSTOP)
        stopped |= running


def title_of(pid: int) -> str:
    """The first word of a command line, which is all that a process title leaves of it; "" when it cannot be read."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read(4096).replace(b"\0", b" ").split(None, 1)
    except OSError:
        return ""
    return words[0].decode(errors="replace") if words else ""
