"""One thing of sparkdiag's on this machine, and whether it may go."""

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

from sparkdiag.environment.growth import folder_bytes
from sparkdiag.evidence.base import Value

Kind = Literal["environment", "lab", "lock", "cache", "temporary", "completion", "config", "runs", "shared"]
How = Literal["environment", "file", "folder", "line", "never"]


class Found(Value):
    """What lies at ``path`` (for ``line``: the line of that file) and what is to become of it."""

    kind: Kind
    path: str
    how: How
    """How it is removed; ``never``: it is the user's or somebody else's, and only shown."""
    bytes: int | None = 0
    """None: not measured."""
    line: str = ""
    because: str = ""
    """Why it stays."""


def plain_file(kind: Kind, path: Path) -> Iterator[Found]:
    """``path`` where it is a file and no link."""
    if path.is_file() and not path.is_symlink():
        yield Found(kind=kind, path=str(path), how="file", bytes=path.stat().st_size)


def whole_folder(kind: Kind, path: Path) -> Iterator[Found]:
    """``path`` where it is a folder and no link."""
    if path.is_dir() and not path.is_symlink():
        yield Found(kind=kind, path=str(path), how="folder", bytes=folder_bytes(path))


def named(folder: Path, pattern: str, wanted: Callable[[Path], bool] = lambda _: True) -> list[Path]:
    """Entries of ``folder`` whose whole name is ``pattern``, sorted; nothing where ``folder`` is a link."""
    if folder.is_symlink():
        return []
    try:
        names = sorted(os.listdir(folder))  # noqa: PTH208 - a name is matched before anything is a path
    except OSError:
        return []
    return [folder / name for name in names if re.fullmatch(pattern, name) and wanted(folder / name)]


def begins_with(path: Path, start: str) -> bool:
    """Whether the file at ``path``, which is no link, begins with ``start``."""
    if path.is_symlink() or not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return file.read(len(start.encode())) == start.encode()
    except OSError:
        return False
