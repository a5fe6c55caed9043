"""The cache of built environments: where it is, what is complete, what is in use.

<root>/envs/<key>/.sparkdiag-environment   marker, written first: this folder is ours to delete
                  venv-<random>/           one attempt
                  lock.txt, uv.log
                  complete.json            stamp, written last: the environment is whole
<root>/envs/<key>.build, <key>.use         lock files: one builder; any number of users
<root>/locks/                              locks compiled on demand
<root>/lab/                                the lab's history and its exported trees
"""

import errno
import fcntl
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import platformdirs
from pydantic import ValidationError

from sparkdiag.environment.growth import folder_bytes
from sparkdiag.environment.model import Environment
from sparkdiag.errors import EnvironmentFault
from sparkdiag.evidence.base import SCHEMA, Value

VARIABLE = "SPARKDIAG_CACHE"
MARKER = ".sparkdiag-environment"
STAMP = "complete.json"
CACHEDIR_TAG = "Signature: 8a477f597d28d172789f06886806bc55\n# Made by sparkdiag; backups may leave it out.\n"


class Stamp(Value):
    """Written when everything else is done."""

    schema_version: int = SCHEMA
    key: str
    lock_sha256: str
    vllm_version: str
    venv: str
    """Name of the folder beside the stamp."""
    python: str
    """Path of the interpreter, relative to the stamp's folder."""
    package_path: str
    """Folder of the vllm package, relative to the stamp's folder."""
    record_path: str
    """The distribution's RECORD, relative to the stamp's folder."""
    installed_bytes: int
    built_at: str
    build_s: float


class OverlayStamp(Value):
    """Written when everything else of an overlay is done."""

    schema_version: int = SCHEMA
    key: str
    attempt: str
    """Name of the folder beside the stamp."""
    sha: str
    """The commit of its Python tree."""
    base: str
    """The base as a spec: ``release:0.32.0``."""
    base_key: str
    python: str
    """The base's interpreter."""
    base_package: str
    """The base's vllm package, into which the overlay's links lead."""
    vllm_version: str
    installed_bytes: int
    made_at: str
    made_s: float


class CachedEnvironment(Value):
    """One folder of the cache."""

    key: str
    path: str
    complete: bool
    vllm_version: str | None
    overlay_of: str | None = None
    """An overlay's commit and base: ``f6c6e54f4b over release:0.32.0``."""
    base_key: str | None = None
    """What an overlay stands on: gone, the overlay is no use either."""
    bytes: int
    last_used_s: float
    """Seconds since the epoch."""


def cache_root(environ: Mapping[str, str] | None = None) -> Path:
    """``SPARKDIAG_CACHE``, else the platform's user cache folder."""
    given = (os.environ if environ is None else environ).get(VARIABLE)
    return Path(given).expanduser().absolute() if given else platformdirs.user_cache_path("sparkdiag")


def environments_dir(root: Path) -> Path:
    """The folder that holds one folder an environment."""
    return root / "envs"


def make_root(root: Path) -> None:
    """Create the cache; raises ``EnvironmentFault`` where that is not allowed."""
    with writing(root):
        environments_dir(root).mkdir(parents=True, exist_ok=True)
        tag = root / "CACHEDIR.TAG"
        if not tag.exists():
            tag.write_text(CACHEDIR_TAG, encoding="ascii")


@contextmanager
def writing(root: Path) -> Iterator[None]:
    """Within, an error of the disk becomes an ``EnvironmentFault`` that says what to do about it."""
    try:
        yield
    except BrokenPipeError:
        raise  # whoever reads our progress is gone; the disk is not to blame
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        remedy = f"export {VARIABLE}=/a/writable/folder"
        raise EnvironmentFault(
            f"the cache {root} cannot be written: {error.strerror or error}",
            remedy=f"free some space (sparkdiag env prune --all), or: {remedy}" if full else remedy,
        ) from error


def read_stamp(folder: Path) -> Stamp | None:
    """The stamp of a whole environment; None where it is missing, unreadable, of another key, or no longer true."""
    try:
        stamp = Stamp.model_validate_json((folder / STAMP).read_bytes())
    except (OSError, ValidationError, ValueError):
        return None
    usable = stamp.key == folder.name and stamp.schema_version == SCHEMA
    paths = (stamp.python, stamp.package_path, stamp.record_path)
    inside = all((folder / stamp.venv) in (folder / path).parents for path in paths)
    # exists() follows the interpreter's link: the Python it was made from may be gone
    return stamp if usable and inside and all((folder / path).exists() for path in paths) else None


def read_overlay_stamp(folder: Path) -> OverlayStamp | None:
    """The stamp of a whole overlay; None where it is missing, unreadable, of another key, or its base is gone."""
    try:
        stamp = OverlayStamp.model_validate_json((folder / STAMP).read_bytes())
    except (OSError, ValidationError, ValueError):
        return None
    usable = stamp.key == folder.name and stamp.schema_version == SCHEMA
    inside = Path(stamp.attempt).name == stamp.attempt and (folder / stamp.attempt).is_dir()
    return stamp if usable and inside and Path(stamp.python).exists() and Path(stamp.base_package).is_dir() else None


def write_stamp(folder: Path, stamp: Stamp | OverlayStamp) -> None:
    """Complete an environment, atomically."""
    partial = folder / f"{STAMP}.partial"
    with partial.open("w", encoding="utf-8") as file:
        file.write(stamp.model_dump_json(indent=2))
        file.flush()
        os.fsync(file.fileno())
    partial.replace(folder / STAMP)


def mark(folder: Path) -> None:
    """Make ``folder`` ours. Only a folder with this marker is ever deleted."""
    folder.mkdir(exist_ok=True)
    (folder / MARKER).write_text(folder.name, encoding="utf-8")


def is_ours(folder: Path) -> bool:
    """Whether ``folder`` carries its own marker and is no link."""
    try:
        return not folder.is_symlink() and (folder / MARKER).read_text(encoding="utf-8") == folder.name
    except (OSError, UnicodeDecodeError):
        return False


def touch_used(folder: Path) -> None:
    """Remember that the environment was used now: its marker's time."""
    os.utime(folder / MARKER)


def list_environments(root: Path) -> tuple[CachedEnvironment, ...]:
    """Every environment of the cache, last used first."""
    try:
        folders = [folder for folder in environments_dir(root).iterdir() if is_ours(folder)]
    except OSError:
        return ()
    found: list[CachedEnvironment] = []
    for folder in folders:
        stamp = read_stamp(folder)
        overlay = read_overlay_stamp(folder)
        whole = stamp or overlay
        found.append(
            CachedEnvironment(
                key=folder.name,
                path=str(folder),
                complete=whole is not None,
                vllm_version=whole.vllm_version if whole else None,
                overlay_of=f"{overlay.sha[:10]} over {overlay.base}" if overlay else None,
                base_key=overlay.base_key if overlay else None,
                bytes=whole.installed_bytes if whole else folder_bytes(folder),
                last_used_s=(folder / MARKER).stat().st_mtime,
            )
        )
    return tuple(sorted(found, key=lambda one: one.last_used_s, reverse=True))


def use_lock_path(folder: Path) -> Path:
    """The file whose shared lock means "in use"."""
    return folder.with_name(f"{folder.name}.use")


def build_lock_path(folder: Path) -> Path:
    """The file whose lock means "being built or deleted"."""
    return folder.with_name(f"{folder.name}.build")


def discard_attempts(folder: Path, pattern: str) -> None:
    """Throw away what an interrupted build left. Each attempt has a folder of its own name, so that a child that
    outlived its killed parent writes into the discarded one. Raises ``EnvironmentFault`` for a folder not ours."""
    if folder.exists() and not is_ours(folder):
        if any(folder.iterdir()):
            raise EnvironmentFault(
                f"{folder} is in the way and was not made by sparkdiag",
                remedy=f"move it away: mv {folder} {folder}.old",
            )
        return
    (folder / STAMP).unlink(missing_ok=True)
    for attempt in folder.glob(pattern):
        shutil.rmtree(attempt, ignore_errors=True)


@contextmanager
def hold(environment: Environment) -> Iterator[None]:
    """Keep a cached environment, and those it stands on, from being pruned while it is used.

    Shared, so that runs do not wait for each other, and ended by the kernel when the holder dies. Raises
    ``EnvironmentFault`` when the environment was pruned before it could be held.
    """
    folders = [environments_dir(cache_root()) / key for key in (environment.key, *environment.also_held)]
    cached = [folder for folder in folders if folder.is_dir()]
    with ExitStack() as held:
        for folder in cached:
            file = held.enter_context(use_lock_path(folder).open("ab"))
            fcntl.flock(file, fcntl.LOCK_SH)
        needed = (environment.python, *environment.pythonpath)
        if cached and not all(Path(path).exists() for path in needed):
            raise EnvironmentFault(f"environment {environment.key} was pruned meanwhile", remedy="sparkdiag env build")
        yield
