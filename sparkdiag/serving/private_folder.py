"""The server's temporary folder: short enough for its sockets, marked so that only ours is ever removed."""

import shutil
import tempfile
from pathlib import Path

from sparkdiag.serving.command import LONGEST_SOCKET_FOLDER

MARKER = ".sparkdiag-private"


def make_private_folder() -> Path:
    """A new folder that only this user can enter. The guardian removes it with the tree; see ``remove``."""
    folder = Path(tempfile.mkdtemp(prefix="sparkdiag-", dir=base_folder()))
    mark(folder)
    return folder


def base_folder() -> str:
    """Where private folders are made: TMPDIR, or ``/tmp`` where its path is too long for sockets."""
    base = tempfile.gettempdir()
    if len(base) + len("/sparkdiag-12345678") > LONGEST_SOCKET_FOLDER:
        return "/tmp"  # noqa: S108 - mkdtemp's folder is private
    return base


def mark(folder: Path) -> None:
    """Let the guardian remove ``folder`` whole with the tree: so it goes even when sparkdiag is killed."""
    (folder / MARKER).touch()


def remove(folder: Path) -> None:
    """Remove a folder made here; any other is left alone."""
    if (folder / MARKER).is_file():
        shutil.rmtree(folder, ignore_errors=True)
