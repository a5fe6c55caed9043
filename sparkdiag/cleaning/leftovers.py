"""What runs that were killed, guardian and all, left in temporary folders, and who still uses it."""

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from sparkdiag.cleaning.found import Found, named, plain_file, whole_folder
from sparkdiag.serving.private_folder import MARKER, base_folder
from sparkdiag.serving.shared_memory import SHM

NAME = r"sparkdiag-[a-z0-9_]{8}"
TRIAL = r"\.sparkdiag-doctor-[a-z0-9_]{8}"
"""What ``doctor`` tries folders and shared memory with. The only shared memory that shows by its name whose it is: a
server's own has vLLM's names, and is removed by the guardian, which saw the tree hold it, or by nobody."""
MOST_BYTES = 4 << 20


def leftovers(tried: Iterable[Path] = ()) -> tuple[Found, ...]:
    """Folders of runs where those are made, and what a killed ``doctor`` left where it ``tried``; each with its user.

    A folder of a run is this user's and carries the marker, or is empty: what has our kind of name alone is not ours.
    """
    folders = named(Path(base_folder()), NAME, _is_ours)
    trials = [path for folder in (*tried, Path(SHM)) for path in named(folder, TRIAL, _is_mine)]
    users = users_of([*folders, *trials])
    return tuple(
        found.model_copy(update={"how": "never", "because": f"process {users[path]} uses it"})
        if path in users
        else found
        for path in (*folders, *trials)
        for found in (*whole_folder("temporary", path), *plain_file("temporary", path))
    )


def _is_mine(path: Path) -> bool:
    try:
        return path.lstat().st_uid == os.getuid()
    except OSError:
        return False


def _is_ours(folder: Path) -> bool:
    try:
        if folder.is_symlink() or not folder.is_dir() or not _is_mine(folder):
            return False
        marker = folder / MARKER
        return (marker.is_file() and not marker.is_symlink()) or not any(folder.iterdir())
    except OSError:
        return False


def users_of(folders: Iterable[Path]) -> dict[Path, int]:
    """For each folder that some process has to do with, the pid of one: as working folder, open, mapped or named in
    its command line or environment. A process that this user may not look into counts for nothing."""
    wanted = tuple(folders)
    found: dict[Path, int] = {}
    for entry in Path("/proc").iterdir() if wanted else ():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            for text in _traces(entry):
                for folder in named_in(text, wanted):
                    found.setdefault(folder, int(entry.name))
    return found


def named_in(text: bytes, folders: Iterable[Path]) -> list[Path]:
    """Those of ``folders`` that ``text`` names, or a path below them. Pure."""
    return [folder for folder in folders if re.search(re.escape(os.fsencode(folder)) + rb"(?![A-Za-z0-9_.-])", text)]


def _traces(process: Path) -> Iterator[bytes]:
    for name in ("environ", "cmdline", "maps"):
        with suppress(OSError), (process / name).open("rb") as file:
            yield file.read(MOST_BYTES)
    links = [process / "cwd", process / "root"]
    with suppress(OSError):
        links += list((process / "fd").iterdir())
    for link in links:
        with suppress(OSError):
            yield os.fsencode(link.readlink())
