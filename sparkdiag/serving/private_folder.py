"""The server's temporary folder: short enough for its sockets, marked so that only ours is ever removed."""

import os
import secrets
import shutil
import string
import tempfile
from pathlib import Path

from sparkdiag.serving.command import LONGEST_SOCKET_FOLDER

MARKER = ".sparkdiag-private"
PROBE_FOLDER = "probe"
"""In it, for the probe to write to."""
PREFIX = "sparkdiag-"
LETTERS = string.ascii_lowercase + string.digits + "_"
LENGTH = 8
"""Letters and length are ``mkdtemp``'s: ``sparkdiag clean`` knows the names by them."""


def unused_path() -> Path:
    """A path that nobody can foresee, where nothing is yet: for ``launch`` to have the guardian make it.

    A run's folder is not made here: until a guardian and its keeper stand, one kill -9 would leave it to nobody.
    """
    while True:
        path = Path(base_folder(), PREFIX + "".join(secrets.choice(LETTERS) for _ in range(LENGTH))).absolute()
        if not os.path.lexists(path):
            return path


def make_private_folder() -> Path:
    """A new folder that only this user can enter, there at once; see ``remove``."""
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=base_folder()))
    try:
        mark(folder)
    except OSError:
        folder.rmdir()
        raise
    return folder


def base_folder() -> str:
    """Where private folders are made: TMPDIR, or ``/tmp`` where its path is too long for sockets."""
    base = tempfile.gettempdir()
    if len(base) + len("/" + PREFIX) + LENGTH > LONGEST_SOCKET_FOLDER:
        return "/tmp"  # noqa: S108 - nobody else can enter the folder in it
    return base


def mark(folder: Path) -> None:
    """Let the guardian remove ``folder`` whole with the tree: so it goes even when sparkdiag is killed."""
    (folder / MARKER).touch()


def remove(folder: Path) -> None:
    """Remove a folder made here; any other is left alone."""
    if (folder / MARKER).is_file():
        shutil.rmtree(folder, ignore_errors=True)
