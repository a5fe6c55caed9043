"""Overlays: a revision's Python tree, checked out as a worktree in the cache, over a base environment's binaries.

<root>/envs/overlay-<sha>-<digest>/.sparkdiag-environment   marker, written first
                                   overlay-<random>/        one attempt: tree/ (worktree), repository.git/, files.json
                                   complete.json            stamp, written last

The base's compiled extensions are linked in, and its bytecode is taken over for every module that has not changed: vLLM
compiles 4,300 modules at its first import, which takes longer than its start.
"""

import fcntl
import hashlib
import os
import secrets
import shutil
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path

from sparkdiag.environment import cache
from sparkdiag.environment.build import one_at_a_time
from sparkdiag.environment.clone import Clone
from sparkdiag.environment.growth import folder_bytes
from sparkdiag.environment.overlay_base import Base
from sparkdiag.environment.overlay_files import OverlayFiles, choose_files
from sparkdiag.environment.progress import ProgressSink
from sparkdiag.environment.tree import PACKAGE, tree_of
from sparkdiag.environment.worktree import Worktree, add_worktree, changes, exclude
from sparkdiag.errors import BusyError, EnvironmentFault
from sparkdiag.evidence.base import Value

FILES = "files.json"
"""Beside the worktree: which files were chosen, so that an overlay that is there need not be compared again."""
LAYOUT = 1
"""Part of the key: raised when overlays of the same revision and base are made differently."""
LARGEST_MODULE_BYTES = 16 * 1024 * 1024


class Overlay(Value):
    """A whole overlay in the cache."""

    key: str
    tree: str
    """What goes on PYTHONPATH."""
    files: OverlayFiles


def ensure_overlay(clone: Clone, sha: str, *, base: Base, root: Path, progress: ProgressSink) -> Overlay:
    """The overlay of commit ``sha`` over ``base``, made now where the cache has none that is whole and unchanged.

    Raises ``EnvironmentFault`` or ``BusyError``. Nothing of the clone is changed.
    """
    disk = disk_state(Path(base.package))
    folder = cache.environments_dir(root) / key_of(sha, base=base, disk=disk)
    cache.make_root(root)
    with (
        cache.writing(root),
        one_at_a_time(cache.build_lock_path(folder), what=f"overlay {folder.name}", say=progress.say),
    ):
        found = _whole(folder, clone=clone, progress=progress)
        if found is not None:
            return found
        began_s = time.monotonic()
        files = _chosen(clone, sha, base=base, names=tuple(disk))
        _free(folder)
        cache.discard_attempts(folder, "overlay-*")
        cache.mark(folder)
        worktree = _make(folder, clone=clone, sha=sha, base=base, files=files)
        progress.say(f"overlay of {sha[:10]} over {base.spec.text} is ready after {time.monotonic() - began_s:.1f} s")
    return Overlay(key=folder.name, tree=str(worktree.tree), files=files)


def key_of(sha: str, *, base: Base, disk: Mapping[str, str]) -> str:
    """Names the overlay by all that decides its content. Pure."""
    parts = (sha, base.sha or "", base.python, base.package, base.environment.key, str(LAYOUT))
    files = (f"{name}\0{state}" for name, state in sorted(disk.items()))
    digest = hashlib.sha256("\0".join((*parts, *files)).encode(errors="surrogateescape")).hexdigest()
    return f"overlay-{sha[:10]}-{digest[:12]}"


def disk_state(package: Path) -> dict[str, str]:
    """Every file of an installed package but bytecode, relative to it: its size and time of change, so that a base that
    was rebuilt or patched is another one."""
    start = len(str(package)) + 1
    found: dict[str, str] = {}
    for folder, subfolders, names in os.walk(package):
        subfolders[:] = [name for name in subfolders if name != "__pycache__"]
        for name in names:
            path = Path(folder, name)
            with suppress(OSError):  # a link that leads nowhere
                stat = path.stat()
                found[f"{folder}/{name}"[start:]] = f"{stat.st_size} {stat.st_mtime_ns}"
    return found


def _chosen(clone: Clone, sha: str, *, base: Base, names: tuple[str, ...]) -> OverlayFiles:
    at_revision = tree_of(clone, sha)
    if "__init__.py" not in at_revision:
        raise EnvironmentFault(
            f"{sha[:10]} in {clone.folder} holds no {PACKAGE} package", remedy="name a clone of vLLM: --repo PATH"
        )
    package = Path(base.package)
    files = {name: blob_id(package / name) if name.endswith(".py") else None for name in names}
    at_base = tree_of(clone, base.sha) if base.sha else None
    return choose_files(files, at_base=at_base, at_revision=at_revision, checkout=base.checkout)


def blob_id(path: Path) -> str | None:
    """The id that git gives to a file's content (SHA-1 of a header and the bytes); None when it cannot be read."""
    try:
        if path.stat().st_size > LARGEST_MODULE_BYTES:
            return None
        content = path.read_bytes()
    except OSError:
        return None
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _whole(folder: Path, *, clone: Clone, progress: ProgressSink) -> Overlay | None:
    stamp = cache.read_overlay_stamp(folder) if cache.is_ours(folder) else None
    if stamp is None:
        return None
    worktree = Worktree(folder=str(folder / stamp.attempt))
    try:
        files = OverlayFiles.model_validate_json((Path(worktree.folder) / FILES).read_bytes())
    except (OSError, ValueError):
        return None
    try:
        changed = changes(worktree, clone=clone)
    except EnvironmentFault:  # the clone whose objects it borrows was moved, or has thrown them away
        return None
    if changed:
        progress.say(f"overlay {folder.name} was changed on disk ({changed[0]}); making it again")
        return None
    cache.touch_used(folder)
    return Overlay(key=folder.name, tree=str(worktree.tree), files=files)


def _free(folder: Path) -> None:
    """Raises ``BusyError`` while a run uses an overlay that is no longer as it was made."""
    with cache.use_lock_path(folder).open("ab") as use:
        try:
            fcntl.flock(use, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BusyError(
                f"overlay {folder.name} was changed on disk, and a run uses it", remedy="wait for the end of that run"
            ) from None


def _make(folder: Path, *, clone: Clone, sha: str, base: Base, files: OverlayFiles) -> Worktree:
    began_s = time.monotonic()
    worktree = Worktree(folder=str(folder / f"overlay-{secrets.token_hex(4)}"))
    try:
        add_worktree(worktree, clone=clone, sha=sha, package=PACKAGE)
        package = worktree.tree / PACKAGE
        _check_whole(package, files, sha=sha)
        _link(files.links, source=Path(base.package), package=package)
        _link_libraries(Path(base.package).parent, tree=worktree.tree)
        exclude(worktree, _put_in(worktree.tree, files))
        _take_bytecode(files.same, source=Path(base.package), package=package)
        (Path(worktree.folder) / FILES).write_text(files.model_dump_json(), encoding="utf-8")
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


def _check_whole(package: Path, files: OverlayFiles, *, sha: str) -> None:
    """Git has checked out what the commit holds: sparse patterns, attributes and the disk had no say in it."""
    missing = [path for path in {*files.own, *files.same} - set(files.links) if not os.path.lexists(package / path)]
    if missing:
        raise EnvironmentFault(
            f"the worktree of {sha[:10]} lacks {len(missing)} modules, such as {missing[0]!r}", remedy="git --version"
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
    for parent, modules in groupby(sorted(paths, key=os.path.dirname), key=os.path.dirname):
        theirs, ours = source / parent / "__pycache__", package / parent / "__pycache__"
        allowed = theirs.is_dir() and _inside(_nearest_folder(ours / "x"), package=package)
        for path in modules:
            stat = (source / path).stat()
            if not (package / path).is_symlink():
                os.utime(package / path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
            stem = Path(path).stem
            for name in (f"{stem}.{tag}" for tag in tags if allowed):
                with suppress(FileNotFoundError):  # nobody has imported it in the base yet
                    content = (theirs / name).read_bytes()
                    ours.mkdir(exist_ok=True)
                    (ours / name).write_bytes(content)
