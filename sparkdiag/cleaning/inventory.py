"""Everything of sparkdiag's on this machine, and removing it while no run goes on."""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from sparkdiag.cleaning import cached, leftovers, shells
from sparkdiag.cleaning.found import Found, plain_file
from sparkdiag.environment.config import config_path
from sparkdiag.errors import BusyError
from sparkdiag.evidence.base import Value
from sparkdiag.recording.listing import listed_runs
from sparkdiag.serving.machine_lock import lock_path, machine_lock


class Outcome(Value):
    """What is gone, and what is left with why."""

    removed: tuple[Found, ...] = ()
    left: tuple[Found, ...] = ()


def inventory(*, config: bool, runs_dir: Path) -> tuple[Found, ...]:
    """What sparkdiag put here, in the order it is to be removed; then what stays, with whose it is.

    ``config``: the config file may go too. ``runs_dir``: where run folders are looked for; they are never removed.
    """
    return (
        *leftovers.leftovers((*cached.roots(), runs_dir)),
        *(found for root in cached.roots() for found in cached.in_cache(root)),
        *shells.completions(),
        *_config(may_go=config),
        *_runs(runs_dir),
        *_shared(),
    )


def _config(*, may_go: bool) -> Iterator[Found]:
    path = config_path()
    for found in plain_file("config", path):
        yield (
            found if may_go else found.model_copy(update={"how": "never", "because": "you wrote it; --config takes it"})
        )
    if path.is_symlink():
        yield Found(kind="config", path=str(path), how="never", because="it is a link, which is not followed")


def _runs(runs_dir: Path) -> Iterator[Found]:
    runs = listed_runs(runs_dir)
    if runs:
        because = (
            f"{len(runs)} run(s), yours; see: sparkdiag runs prune. Runs made with another --out are not known here"
        )
        path = str(runs_dir.absolute())
        yield Found(kind="runs", path=path, how="never", bytes=sum(run.bytes for run in runs), because=because)


def _shared() -> Iterator[Found]:
    """Caches that the tools sparkdiag runs keep for every program: named, so that nobody is surprised by them."""
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    uv = Path(os.environ.get("UV_CACHE_DIR") or caches / "uv")
    vllm = Path(os.environ.get("VLLM_CACHE_ROOT") or caches / "vllm")
    for path, because in (
        (uv, "uv's, shared by all its environments; see: uv cache clean"),
        (vllm, "vLLM's, shared by all its servers"),
    ):
        if path.is_dir():
            yield Found(kind="shared", path=str(path), how="never", bytes=None, because=because)


def remove(items: Sequence[Found]) -> Outcome:
    """Remove ``items``, the machine held meanwhile so that no run begins. Raises ``BusyError`` where one goes on.

    One that cannot be removed does not keep the others.
    """
    try:
        with machine_lock(what="clean", no_wait=True):
            outcome = _remove(items)
            lock_path().unlink(missing_ok=True)
    except BusyError as error:
        raise BusyError(
            f"nothing was removed: {error.message}", remedy="sparkdiag clean --yes    (once that has ended)"
        ) from error
    for root in cached.roots():
        cached.remove_empty(root)
    shells.remove_empty()
    if (folder := config_path().parent).name == "sparkdiag":
        with suppress(OSError):
            folder.rmdir()
    return outcome


def _remove(items: Sequence[Found]) -> Outcome:
    removed: list[Found] = []
    left: list[Found] = []
    with ExitStack() as stack:
        labs = {root / "lab": stack.enter_context(cached.held(root / "lab" / "lab.lock")) for root in cached.roots()}
        for found in items:
            because = found.because or _why_it_stays(found, left=left, labs=labs) or _removed(found)
            if because:
                left.append(found.model_copy(update={"because": because}))
            else:
                removed.append(found)
    return Outcome(removed=tuple(removed), left=tuple(left))


def _why_it_stays(found: Found, *, left: Sequence[Found], labs: Mapping[Path, bool]) -> str:
    """What has changed since it was found, or what still needs it; empty where nothing has. Pure but for one look."""
    path = Path(found.path)
    if found.kind == "lab" and not all(free for lab, free in labs.items() if lab in path.parents):
        return cached.IN_USE
    if path.suffix in (".use", ".build") and path.with_suffix("").is_dir():
        return "its environment is still there"
    if path.name == cached.TAG and any(path.parent in Path(other.path).parents for other in left):
        return "it marks the cache folder, which still holds something"
    if found.kind == "temporary" and (pid := leftovers.users_of([path]).get(path)) is not None:
        return f"process {pid} uses it"
    return ""


def _removed(found: Found) -> str:
    """Remove it; empty, or why it is still there."""
    try:
        match found.how:
            case "environment":
                return cached.remove_environment(found)
            case "line":
                shells.remove_line(found)
            case "file":
                Path(found.path).unlink(missing_ok=True)
            case "folder":
                shutil.rmtree(found.path)
            case "never":
                return "it is not sparkdiag's to remove"
    except OSError as error:
        return f"it cannot be removed: {error.strerror or error}"
    return ""
