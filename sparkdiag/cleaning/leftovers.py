"""Private folders of runs that were killed, guardian and all, and who still uses one."""

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from sparkdiag.cleaning.found import Found, named, whole_folder
from sparkdiag.serving.private_folder import MARKER, base_folder

NAME = r"sparkdiag-[a-z0-9_]{8}"
MOST_BYTES = 4 << 20


def leftovers() -> tuple[Found, ...]:
    """Folders of runs where those are made, each with whoever uses it.

    Only ones that are this user's and carry the marker, or are empty: what has our kind of name alone is not ours.
    """
    folders = named(Path(base_folder()), NAME, _is_ours)
    users = users_of(folders)
    return tuple(
        found.model_copy(update={"how": "never", "because": f"process {users[folder]} uses it"})
        if folder in users
        else found
        for folder in folders
        for found in whole_folder("temporary", folder)
    )


def _is_ours(folder: Path) -> bool:
    try:
        if folder.is_symlink() or not folder.is_dir() or folder.stat().st_uid != os.getuid():
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
