"""Overlays: a revision's Python tree, checked out as a worktree in the cache, over a base environment's binaries.

<root>/envs/overlay-<sha>-<digest>/.sparkdiag-environment   marker, written first
                                   overlay-<random>/        one attempt: tree/ (the worktree), repository.git/
                                   complete.json            stamp, written last

The base's compiled extensions are linked in, and its bytecode is taken over for every module that has not changed: vLLM
compiles 4,300 modules at its first import, which takes longer than its start.
"""

import hashlib
import os
import secrets
import shutil
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from sparkdiag.environment import cache
from sparkdiag.environment.build import one_at_a_time
from sparkdiag.environment.clone import Clone
from sparkdiag.environment.growth import folder_bytes
from sparkdiag.environment.overlay_base import Base
from sparkdiag.environment.overlay_files import OverlayFiles, choose_files
from sparkdiag.environment.progress import ProgressSink
from sparkdiag.environment.tree import PACKAGE, Tree, tree_of
from sparkdiag.environment.worktree import Worktree, add_worktree, changes, exclude
from sparkdiag.errors import EnvironmentFault
from sparkdiag.evidence.base import Value

LAYOUT = 1
"""Part of the key: raised when overlays of the same revision and base are made differently."""
LARGEST_MODULE_BYTES = 16 * 1024 * 1024


class Overlay(Value):
    """A whole overlay in the cache."""

    key: str
    tree: str
    """What goes on PYTHONPATH."""
    files: OverlayFiles
    made_s: float | None = None
    """What making it took; None where it was there."""


def ensure_overlay(clone: Clone, sha: str, *, base: Base, root: Path, progress: ProgressSink) -> Overlay:
    """The overlay of commit ``sha`` over ``base``, made now where the cache has none that is whole and unchanged.

    Raises ``EnvironmentFault`` or ``BusyError``. Nothing of the clone is changed.
    """
    at_revision = tree_of(clone, sha)
    if "__init__.py" not in at_revision:
        raise EnvironmentFault(
            f"{sha[:10]} in {clone.folder} holds no {PACKAGE} package", remedy="name a clone of vLLM: --repo PATH"
        )
    at_base = tree_of(clone, base.sha) if base.sha else None
    files = choose_files(
        disk_files(Path(base.package)), at_base=at_base, at_revision=at_revision, checkout=base.checkout
    )
    folder = cache.environments_dir(root) / key_of(sha, base=base, files=files)
    cache.make_root(root)
    with (
        cache.writing(root),
        one_at_a_time(cache.build_lock_path(folder), what=f"overlay {folder.name}", say=progress.say),
    ):
        worktree = _whole(folder, clone=clone, progress=progress)
        made_s = None
        if worktree is None:
            began_s = time.monotonic()
            worktree = _make(folder, clone=clone, sha=sha, base=base, files=files, at_revision=at_revision)
            made_s = time.monotonic() - began_s
            progress.say(f"overlay of {sha[:10]} over {base.spec.text} is ready after {made_s:.1f} s")
    return Overlay(key=folder.name, tree=str(worktree.tree), files=files, made_s=made_s)


def key_of(sha: str, *, base: Base, files: OverlayFiles) -> str:
    """Names the overlay by all that decides its content. Pure."""
    parts = (sha, base.python, base.package, base.environment.key, *files.links, str(LAYOUT))
    digest = hashlib.sha256("\0".join(parts).encode(errors="surrogateescape")).hexdigest()
    return f"overlay-{sha[:10]}-{digest[:12]}"


def disk_files(package: Path) -> dict[str, str | None]:
    """Every file of an installed package but bytecode, relative to it, with the git blob id of each module."""
    found: dict[str, str | None] = {}
    for folder, subfolders, names in os.walk(package):
        subfolders[:] = [name for name in subfolders if name != "__pycache__"]
        for name in names:
            path = Path(folder, name)
            found[path.relative_to(package).as_posix()] = blob_id(path) if name.endswith(".py") else None
    return found


def blob_id(path: Path) -> str | None:
    """The id that git gives to a file's content (SHA-1 of a header and the bytes); None when it cannot be read."""
    try:
        if path.stat().st_size > LARGEST_MODULE_BYTES:
            return None
        content = path.read_bytes()
    except OSError:
        return None
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _whole(folder: Path, *, clone: Clone, progress: ProgressSink) -> Worktree | None:
    stamp = cache.read_overlay_stamp(folder) if cache.is_ours(folder) else None
    if stamp is None:
        return None
    worktree = Worktree(folder=str(folder / stamp.attempt))
    changed = changes(worktree, clone=clone)
    if changed:
        progress.say(f"overlay {folder.name} was changed on disk ({changed[0]}); making it again")
        return None
    cache.touch_used(folder)
    return worktree


def _make(folder: Path, *, clone: Clone, sha: str, base: Base, files: OverlayFiles, at_revision: Tree) -> Worktree:
    began_s = time.monotonic()
    cache.discard_attempts(folder, "overlay-*")
    cache.mark(folder)
    worktree = Worktree(folder=str(folder / f"overlay-{secrets.token_hex(4)}"))
    try:
        add_worktree(worktree, clone=clone, sha=sha, package=PACKAGE)
        package = worktree.tree / PACKAGE
        _check_whole(package, at_revision=at_revision, sha=sha)
        _link(files.links, source=Path(base.package), package=package)
        _link_libraries(Path(base.package).parent, tree=worktree.tree)
        exclude(worktree, _put_in(worktree.tree, files))
        _take_bytecode(files.same, source=Path(base.package), package=package)
        cache.write_stamp(
            folder,
            cache.OverlayStamp(
                key=folder.name,
                attempt=Path(worktree.folder).name,
                sha=sha,
                base=base.spec.text,
                base_key=base.environment.key,
                python=base.python,
                base_package=base.package,
                vllm_version=base.environment.vllm_version or "",
                installed_bytes=folder_bytes(Path(worktree.folder)),
                made_at=datetime.now(UTC).isoformat(timespec="seconds"),
                made_s=round(time.monotonic() - began_s, 1),
            ),
        )
    except BaseException:
        shutil.rmtree(worktree.folder, ignore_errors=True)
        raise
    return worktree


def _check_whole(package: Path, *, at_revision: Tree, sha: str) -> None:
    """Git has checked out what the commit holds: sparse patterns, attributes and the disk had no say in it."""
    missing = [path for path in at_revision if not os.path.lexists(package / path)]
    if missing:
        raise EnvironmentFault(
            f"the worktree of {sha[:10]} lacks {len(missing)} files, such as {missing[0]!r}", remedy="git --version"
        )


def _inside(path: Path, *, package: Path) -> bool:
    """Whether writing ``path`` stays in the package: a commit may hold links that lead elsewhere."""
    return path.parent.resolve().is_relative_to(package.resolve())


def _link(paths: tuple[str, ...], *, source: Path, package: Path) -> None:
    for path in paths:
        link = package / path
        if not _inside(_nearest_folder(link), package=package):
            continue
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(source / path)


def _nearest_folder(path: Path) -> Path:
    """``path`` below the nearest folder that exists."""
    while not path.parent.exists():
        path = path.parent
    return path


def _link_libraries(site: Path, *, tree: Path) -> None:
    """Libraries that a repaired wheel keeps beside the package, where its extensions look for them (``$ORIGIN/..``)."""
    for libraries in site.glob(f"{PACKAGE}*.libs"):
        (tree / libraries.name).symlink_to(libraries)


def _put_in(tree: Path, files: OverlayFiles) -> tuple[str, ...]:
    beside = (path.name for path in tree.iterdir() if path.is_symlink())
    return (*(f"{PACKAGE}/{path}" for path in files.links), *beside)


def _take_bytecode(paths: tuple[str, ...], *, source: Path, package: Path) -> None:
    """Give each module that the base has too the base's time of change, and its bytecode.

    Python takes bytecode for valid when it names the source's time of change and size; and it corrects the file names
    in it as it loads it (``_imp._fix_co_filename``), so stacks show the overlay's paths.
    """
    tags = [path.name.split(".", 1)[1] for path in (source / "__pycache__").glob("__init__.*.pyc")]
    for path in paths:
        module, cached = package / path, Path(path).parent / "__pycache__"
        stat = (source / path).stat()
        if not module.is_symlink():
            os.utime(module, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        if not _inside(_nearest_folder(package / cached / "x"), package=package):
            continue
        for tag in tags:
            name = f"{Path(path).stem}.{tag}"
            with suppress(FileNotFoundError):  # nobody has imported it in the base yet
                content = (source / cached / name).read_bytes()
                (package / cached).mkdir(exist_ok=True)
                (package / cached / name).write_bytes(content)
