"""Deleting environments: only folders with their own marker, oldest first, never one in use."""

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from sparkdiag.environment import cache
from sparkdiag.environment.cache import CachedEnvironment
from sparkdiag.evidence.base import Value


class PruneReport(Value):
    """What was deleted (or would be) and what was left, with why."""

    dry_run: bool
    removed: tuple[CachedEnvironment, ...] = ()
    kept: tuple[CachedEnvironment, ...] = ()
    in_use: tuple[str, ...] = ()
    """Keys that should have gone but are being used or built."""
    freed_bytes: int = 0


def choose_victims(environments: tuple[CachedEnvironment, ...], *, max_bytes: int) -> tuple[CachedEnvironment, ...]:
    """Which to delete, in order, until the rest fits: half-built ones first, then the longest unused. Overlays go
    before their base. Pure."""
    total = sum(one.bytes for one in environments)
    victims: list[CachedEnvironment] = []
    for one in sorted(environments, key=lambda one: (one.complete, one.last_used_s)):
        if one.complete and total <= max_bytes:
            break
        for gone in (*(over for over in environments if over.base_key == one.key), one):
            if gone not in victims:
                victims.append(gone)
                total -= gone.bytes
    return tuple(victims)


def prune(root: Path, *, max_bytes: int, dry_run: bool) -> PruneReport:
    """Delete environments until ``max_bytes`` are left; 0 deletes all of them."""
    environments = cache.list_environments(root)
    victims = choose_victims(environments, max_bytes=max_bytes)
    removed: list[CachedEnvironment] = []
    in_use: list[str] = []
    for victim in victims:
        with exclusive(Path(victim.path)) as ours:
            if not ours:
                in_use.append(victim.key)
                continue
            if not dry_run:
                delete(Path(victim.path))
            removed.append(victim)
    gone = {one.key for one in removed}
    return PruneReport(
        dry_run=dry_run,
        removed=tuple(removed),
        kept=tuple(one for one in environments if one.key not in gone),
        in_use=tuple(in_use),
        freed_bytes=sum(one.bytes for one in removed),
    )


@contextmanager
def exclusive(folder: Path) -> Iterator[bool]:
    """Whether nobody builds or uses the environment, and nobody starts to meanwhile."""
    build = FileLock(cache.build_lock_path(folder))
    try:
        build.acquire(timeout=0)
    except Timeout:
        yield False
        return
    try:
        with cache.use_lock_path(folder).open("ab") as use:
            try:
                fcntl.flock(use, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            yield True
    finally:
        build.release()


def delete(folder: Path) -> None:
    """Delete one environment. The stamp goes first and the marker last: cut short, it is still ours to finish."""
    if not cache.is_ours(folder):
        raise AssertionError(f"{folder} carries no marker of its own")
    (folder / cache.STAMP).unlink(missing_ok=True)
    for entry in folder.iterdir():
        if entry.name == cache.MARKER:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
    (folder / cache.MARKER).unlink()
    folder.rmdir()


def delete_locks(root: Path) -> int:
    """Delete the locks compiled on demand; returns how many."""
    locks = tuple((root / "locks").glob("*.txt"))
    for lock in locks:
        lock.unlink(missing_ok=True)
    return len(locks)
