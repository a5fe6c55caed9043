"""What sparkdiag keeps in its cache folders: environments, overlays, locks, the lab's history and its exported trees.

Environments carry a marker each. The rest is sparkdiag's by its name where ``CACHEDIR.TAG`` is ours: nothing else is
looked at, so a file somebody put beside it stays.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shlex import quote

import platformdirs
from filelock import FileLock, Timeout

from sparkdiag.cleaning.found import Found, begins_with, named, plain_file, whole_folder
from sparkdiag.environment.cache import CACHEDIR_TAG, VARIABLE, cache_root, environments_dir, is_ours, list_environments
from sparkdiag.environment.lock import DISTRIBUTION, HEADER
from sparkdiag.environment.prune import delete, exclusive

TAG = "CACHEDIR.TAG"
MACHINE = r"machine-.+\.(lock|json)"
KEY = rf"({DISTRIBUTION}-[A-Za-z0-9._-]+|overlay-[0-9a-f]{{10}})-[0-9a-f]{{12}}"
RANDOM = "[a-z0-9_]{8}"
IN_USE = "it is in use"


def roots() -> tuple[Path, ...]:
    """The cache folder that is named, and the platform's, where the machine lock always lies."""
    return tuple(dict.fromkeys((cache_root(), platformdirs.user_cache_path("sparkdiag"))))


def in_cache(root: Path) -> tuple[Found, ...]:
    """Everything of sparkdiag's under ``root``, in the order it is to be removed."""
    if root.is_symlink():
        because = f"it is a link; for what it leads to: {VARIABLE}={quote(str(root.resolve()))} sparkdiag clean"
        return (Found(kind="cache", path=str(root), how="never", because=because),)
    if not begins_with(root / TAG, CACHEDIR_TAG):
        return tuple(_machine_files(root))
    return (
        *_environments(root),
        *_lab(root / "lab"),
        *_locks(root),
        *_machine_files(root),
        *plain_file("cache", root / TAG),
    )


def _environments(root: Path) -> Iterator[Found]:
    folder = environments_dir(root)
    if folder.is_symlink():
        return
    busy: list[str] = []
    for one in list_environments(root):
        with exclusive(Path(one.path)) as free:
            if free:
                yield Found(kind="environment", path=one.path, how="environment", bytes=one.bytes)
            else:
                busy.append(f"{one.key}.")
                yield Found(kind="environment", path=one.path, how="never", bytes=one.bytes, because=IN_USE)
    for path in named(folder, rf"{KEY}\.(build|use)"):
        if not path.name.startswith(tuple(busy)):
            yield from plain_file("lock", path)


def _lab(lab: Path) -> Iterator[Found]:
    trees = named(lab, rf"[0-9a-f]{{40}}|[0-9a-f]{{10}}-{RANDOM}")
    repositories = named(lab / "repo", rf"sparklab-[0-9a-f]{{12}}\.git|\.sparklab-{RANDOM}")
    if lab.is_symlink():
        return
    for path in (*trees, *repositories):
        yield from whole_folder("lab", path)
    yield from plain_file("lab", lab / "lab.lock")


def _locks(root: Path) -> Iterator[Found]:
    for path in named(root / "locks", rf"{DISTRIBUTION}-.+\.(txt|partial)", lambda path: begins_with(path, HEADER)):
        yield from plain_file("lock", path)
    for path in named(root, rf"resolve-{RANDOM}"):
        yield from whole_folder("cache", path)


def _machine_files(root: Path) -> Iterator[Found]:
    """Lock files of this machine, and of others that share the folder; one that is held is a run that goes on."""
    for path in named(root, MACHINE):
        with held(path.with_suffix(".lock")) as free:
            for found in plain_file("lock", path):
                busy = {"how": "never", "because": "a run holds it"}
                yield found if free else found.model_copy(update=busy)


def remove_environment(found: Found) -> str:
    """Delete one environment; empty, or why it was left. Raises ``OSError``."""
    with exclusive(Path(found.path)) as free:
        if not free:
            return IN_USE
        if is_ours(Path(found.path)):
            delete(Path(found.path))
    return ""


def remove_empty(root: Path) -> None:
    """Take away the folders of a cache that hold nothing any more."""
    for folder in (root / "envs", root / "locks", root / "lab" / "repo", root / "lab", root):
        with suppress(OSError):
            if not folder.is_symlink():
                folder.rmdir()


@contextmanager
def held(path: Path) -> Iterator[bool]:
    """Whether nobody holds the lock file at ``path``, and nobody does while the block runs. Makes no such file."""
    if not path.is_file() or path.is_symlink():
        yield True
        return
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except (Timeout, OSError):
        yield False
        return
    try:
        yield True
    finally:
        lock.release()
