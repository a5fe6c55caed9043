"""The server's temporary folder as the guardian sees it: made for the tree, and gone with it. Standard library only.

It may be killed at any line here, and so may sparkdiag: whatever is on the disk then must show whoever is left that it
may go. So the marker comes first and goes last, and a folder without it is removed only while nothing is in it.
"""

# The guardian starts in milliseconds, so no pathlib:
# ruff: noqa: PTH102, PTH106, PTH108, PTH112, PTH113, PTH114, PTH118, PTH208

import contextlib
import os
import shutil
import stat
from collections.abc import Iterable


def make_folder(folder: str, marker: str, inside: Iterable[str]) -> None:
    """Make it, marked, with the folders ``inside``, all for this user alone. Raises ``OSError``; then it is not there.

    Whatever is there already, be it a link that leads nowhere, is an error: it is somebody's, so never ours to remove.
    """
    os.mkdir(folder, 0o700)
    try:
        os.close(os.open(os.path.join(folder, marker), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        for name in inside:
            os.mkdir(os.path.join(folder, name), 0o700)
    except OSError:
        sweep_folder(folder, marker, made=True)
        raise


def sweep_folder(folder: str, marker: str, *, made: bool) -> list[str]:
    """Remove it whole when it is marked, and while it is empty when it was to be ``made`` for the tree; of any other
    folder only the sockets in it. Returns what was removed."""
    if not folder or not os.path.isdir(folder) or (made and os.path.islink(folder)):
        return []
    if marker and os.path.isfile(os.path.join(folder, marker)):
        _remove_whole(folder, marker)
        return [folder]
    if made:  # killed before it was marked, or after the marker was removed
        with contextlib.suppress(OSError):
            os.rmdir(folder)
            return [folder]
        return []
    return _remove_sockets(folder)


def _remove_whole(folder: str, marker: str) -> None:
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            if name == marker:
                continue
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path, ignore_errors=True)
            else:
                os.unlink(path)
    shutil.rmtree(folder, ignore_errors=True)


def _remove_sockets(folder: str) -> list[str]:
    removed = []
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        with contextlib.suppress(OSError):
            if stat.S_ISSOCK(os.lstat(path).st_mode):
                os.unlink(path)
                removed.append(path)
    return removed
