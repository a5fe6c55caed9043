"""Ends a tree whose guardian and keeper were both killed: the only case in which sparkdiag itself signals the server's
processes."""

import signal
import time
from collections.abc import Iterable
from pathlib import Path

from sparkdiag.serving.shared_memory import Segment, ShmLedger, sweep_shm
from sparkdiag.serving.tree import Proc, descendants, read_stat, send
from sparkdiag.serving.tree_folder import sweep_folder

TREE_VARIABLE = "SPARKDIAG_TREE"
"""Carries a random token into every process of the tree; a process that shows it was started by ours."""
ENVIRON_BYTES = 1 << 20


def end_orphans(
    known: Iterable[Proc], *, token: str, timeout_s: float, ledger: ShmLedger
) -> tuple[frozenset[Proc], tuple[int, ...]]:
    """SIGKILL what is left of the tree: known processes (by pid and start time), their descendants, token carriers.

    ``ledger`` learns what shared memory they hold. Returns all that belonged to the tree, and the pids still alive
    after ``timeout_s`` (none, unless a process hangs in the kernel).
    """
    tree = set(known)
    deadline_s = time.monotonic() + timeout_s
    while True:
        alive = {proc for proc in tree if _alive(proc)}
        alive |= set(descendants({proc.pid for proc in alive})) | set(carriers(token))
        tree |= alive
        if not alive or time.monotonic() > deadline_s:
            return frozenset(tree), tuple(sorted(proc.pid for proc in alive))
        for proc in alive:
            send(proc, signal.SIGSTOP)  # it makes nothing more after this look
        ledger.look(alive, last=True)
        for proc in alive:
            send(proc, signal.SIGKILL)
        time.sleep(0.05)


def carriers(token: str) -> list[Proc]:
    """Processes started with ``token`` in their environment. A title may overwrite it, so this is no full list."""
    needle = f"{TREE_VARIABLE}={token}".encode()
    return [proc for proc in descendants({0, 1}) if needle in _environ(proc.pid)]


def sweep(
    *, private_dir: Path, marker: str, made: bool, shm: Iterable[Segment], tree: Iterable[Proc]
) -> tuple[str, ...]:
    """Remove what the guardian would have removed. Returns it."""
    removed, _kept = sweep_shm(set(shm), tree={proc.pid for proc in tree})
    return (*removed, *sweep_folder(str(private_dir), marker, made=made))


def _alive(proc: Proc) -> bool:
    found = read_stat(proc.pid)
    return found is not None and found[1] == proc.started_ticks and found[2] not in "ZX"


def _environ(pid: int) -> bytes:
    try:
        with Path(f"/proc/{pid}/environ").open("rb") as file:
            return file.read(ENVIRON_BYTES)
    except OSError:
        return b""
