"""A bisection's folder as ``runs list`` shows it: one unit, whatever number of run folders lies below it."""

import os
import re
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from sparkdiag.errors import RunFolderError
from sparkdiag.evidence.base import Value
from sparkdiag.evidence.bisection import Bisection
from sparkdiag.recording.bisection import (
    DOCUMENT,
    FOLDER_NAME,
    JOURNAL,
    LOCK,
    REPORT,
    TRIALS,
    has_ended,
    is_being_written,
)
from sparkdiag.recording.folder import POSTED, RECORD
from sparkdiag.recording.in_use import TIMELINE
from sparkdiag.recording.record import LARGEST_RECORD, open_regular

_FILE = rf"({'|'.join(map(re.escape, (JOURNAL, DOCUMENT, REPORT, POSTED)))}|report\.html)"
_WRITTEN_BY_US = re.compile(rf"{_FILE}|{re.escape(LOCK)}|\.{_FILE}\.[a-z0-9_]{{8}}")
_BEGIN = b'{"event":"begun"'

State = Literal["running", "finished", "interrupted", "damaged"]


class BisectionFacts(Value):
    """What the files directly in a bisection's folder tell."""

    state: State
    because: str = ""
    found: Bisection | None = None
    held: bool | None = False
    ours: bool = True
    foreign: tuple[str, ...] = ()
    """Entries beside the trials' folder that no bisection writes."""


def is_bisection_folder(folder: Path) -> bool:
    """Whether ``folder`` is to be taken for a bisection: by what its journal begins with, or by its name (which a run
    of a scenario called bisect-… has too)."""
    if _has_our_journal(folder):
        return True
    is_run = any((folder / name).exists() for name in (RECORD, TIMELINE))
    return FOLDER_NAME.fullmatch(folder.name) is not None and not is_run


def bisection_facts(folder: Path, entries: list[tuple[str, bool]]) -> BisectionFacts:
    """Of (name, is a plain file) of everything in ``folder``."""
    held = is_being_written(folder)
    ours = _has_our_journal(folder)
    found, problem = None, ""
    try:
        found = read_bisection(folder)
    except RunFolderError as error:
        problem = error.message
    state, because = state_of(ours=ours, ended=ours and has_ended(folder / JOURNAL), held=held, found=found is not None)
    return BisectionFacts(
        state=state,
        because=because or (problem if state == "damaged" else ""),
        found=found,
        held=held,
        ours=ours,
        foreign=foreign_beside_trials(entries),
    )


def state_of(*, ours: bool, ended: bool, held: bool | None, found: bool) -> tuple[State, str]:
    """The state of a bisection, and why it is not what its journal says; empty where that says it all. Pure."""
    if held:
        return "running", ""
    if not ours:
        return "damaged", f"its {JOURNAL} is missing or no bisection's"
    if not ended:
        return "interrupted", "it can be resumed"
    return ("finished", "") if found else ("damaged", "")


def foreign_beside_trials(entries: list[tuple[str, bool]]) -> tuple[str, ...]:
    """Of (name, is a plain file), what no bisection writes. Pure."""
    return tuple(
        sorted(name for name, plain in entries if (not plain or not _WRITTEN_BY_US.fullmatch(name)) and name != TRIALS)
    )


def trial_folders(folder: Path) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """The run folders of the trials, and what else lies among them."""
    try:
        with os.scandir(folder / TRIALS) as scanned:
            entries = [(Path(entry.path), entry.is_dir(follow_symlinks=False)) for entry in scanned]
    except FileNotFoundError:
        return (), ()
    except OSError:
        return (), (TRIALS,)
    folders = tuple(sorted(path for path, is_folder in entries if is_folder))
    return folders, tuple(sorted(f"{TRIALS}/{path.name}" for path, is_folder in entries if not is_folder))


def read_bisection(folder: Path) -> Bisection:
    """``bisection.json``: bounded, never through a link. Raises ``RunFolderError`` that says what is wrong with it."""
    path = folder / DOCUMENT
    remedy = "sparkdiag runs list"
    try:
        if path.is_symlink():
            raise RunFolderError(f"{path} is a link, which is not followed", remedy=remedy)
        with open_regular(path) as file:
            content = file.read(LARGEST_RECORD + 1)
    except OSError as error:
        raise RunFolderError(f"{path} cannot be read: {error.strerror or error}", remedy=remedy) from error
    if len(content) > LARGEST_RECORD:
        raise RunFolderError(f"{path} is larger than {LARGEST_RECORD} bytes", remedy=remedy)
    try:
        return Bisection.model_validate_json(content)
    except (ValidationError, ValueError) as error:
        raise RunFolderError(f"{path} is not a bisection's document, or not whole", remedy=remedy) from error


def _has_our_journal(folder: Path) -> bool:
    path = folder / JOURNAL
    try:
        if path.is_symlink():
            return False
        with open_regular(path) as file:
            return file.read(len(_BEGIN)) == _BEGIN
    except OSError:
        return False
