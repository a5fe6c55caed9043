"""The folder of one bisection: its journal, its document, its report, and the run folders of its trials below it."""

import fcntl
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from sparkdiag.errors import BusyError, ExitCode, RunFolderError
from sparkdiag.evidence.bisection import Bisection
from sparkdiag.harmless.documents import redact_document
from sparkdiag.harmless.secrets import redact_text
from sparkdiag.recording.folder import make_unique, replace
from sparkdiag.recording.in_use import unlocked

JOURNAL = "journal.jsonl"
DOCUMENT = "bisection.json"
REPORT = "report.md"
TRIALS = "trials"
LOCK = ".lock"
FOLDER_NAME = re.compile(r"(\d{8}T\d{6}Z)-bisect-[A-Za-z0-9.-]+-dcp\d+(-\d+)?")
_TAIL_BYTES = 64 * 1024


def bisection_folder_name(*, scenario_name: str, dcp: int, now: datetime) -> str:
    """``20260526T081502Z-bisect-lab-dcp2``: sorts by time, holds no character a shell or a URL minds."""
    when = now.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    scenario = re.sub(r"[^A-Za-z0-9.-]+", "-", scenario_name).strip("-.")[:40] or "scenario"
    return f"{when}-bisect-{scenario}-dcp{dcp}"


class BisectionFolder:
    """One bisection on disk. What cannot be written beside the journal is remembered and ends nothing."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._failures: dict[str, str] = {}

    @classmethod
    def create(cls, runs_dir: Path, *, scenario_name: str, dcp: int, now: datetime) -> "BisectionFolder":
        """A new folder, unique even when two begin in one second. Raises ``RunFolderError`` when it cannot be made."""
        name = bisection_folder_name(scenario_name=scenario_name, dcp=dcp, now=now)
        try:
            path = make_unique(runs_dir, name).resolve()
            (path / TRIALS).mkdir()
            sync_folder(runs_dir)
        except OSError as error:
            failure = RunFolderError(
                f"cannot make a folder for the bisection in {runs_dir}: {error.strerror or error}",
                remedy="name a folder you may write to: --out DIR",
            )
            failure.exit_code = ExitCode.ENVIRONMENT
            raise failure from error
        return cls(path)

    @classmethod
    def open(cls, path: Path) -> "BisectionFolder":
        """An earlier bisection's folder. Raises ``RunFolderError`` when that is none."""
        if not (path / JOURNAL).is_file():
            raise RunFolderError(
                f"{path} holds no bisection: there is no {JOURNAL} in it",
                remedy="name the folder of a bisection: --folder DIR (sparkdiag runs list)",
            )
        return cls(path.resolve())

    @classmethod
    def newest_unfinished(cls, runs_dir: Path) -> "BisectionFolder | None":
        """The newest bisection in ``runs_dir`` whose journal tells of no end; None when all ended, or none is there."""
        try:
            with os.scandir(runs_dir) as entries:
                names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        except OSError:
            return None
        for name in sorted(filter(FOLDER_NAME.fullmatch, names), reverse=True):
            journal = runs_dir / name / JOURNAL
            if journal.is_file() and not has_ended(journal):
                return cls((runs_dir / name).resolve())
        return None

    @property
    def journal(self) -> Path:
        """The truth: one line a step."""
        return self.path / JOURNAL

    @property
    def document(self) -> Path:
        """``bisection.json``: what the journal amounts to."""
        return self.path / DOCUMENT

    @property
    def report(self) -> Path:
        """The rendered report."""
        return self.path / REPORT

    @property
    def trials(self) -> Path:
        """Where the trials' run folders go."""
        return self.path / TRIALS

    @property
    def problems(self) -> tuple[str, ...]:
        """What could not be written, and is lost as long as it stands here."""
        return tuple(self._failures.values())

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Be the only one who writes this bisection, until the block ends or this process is gone, however it goes.

        Raises ``BusyError`` when another process does, ``RunFolderError`` when the folder cannot be written to. On a
        file system without locks nobody can tell, and that is no reason to search nothing.
        """
        try:
            fd = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
        except OSError as error:
            raise self.unwritable(error) from error
        try:
            _lock(fd, self.path)
            yield
        finally:
            os.close(fd)

    def unwritable(self, error: OSError) -> RunFolderError:
        """What to raise when the journal cannot be written: the search ends, and what was found so far stays."""
        failure = RunFolderError(
            f"cannot write the bisection in {self.path}: {error.strerror or error}",
            remedy=f"make room or give the right to write, then: sparkdiag bisect --resume --folder {self.path}",
        )
        failure.exit_code = ExitCode.ENVIRONMENT
        return failure

    def write_document(self, bisection: Bisection) -> None:
        """Replaces ``bisection.json`` at once. A full disk is remembered in ``problems``: the journal has it all."""
        document = redact_document(bisection.model_dump(mode="json", by_alias=True))
        self._guarded(DOCUMENT, json.dumps(document, indent=2, ensure_ascii=False) + "\n")

    def write_report(self, text: str) -> Path:
        """Keeps the rendered report and returns its path (which may be missing: see ``problems``)."""
        self._guarded(REPORT, redact_text(text))
        return self.report

    def _guarded(self, name: str, text: str) -> None:
        try:
            replace(self.path / name, text)
        except OSError as error:
            self._failures[name] = f"{name} could not be written: {error.strerror or error}"
        else:
            self._failures.pop(name, None)


def sync_folder(folder: Path) -> None:
    """A new file's name is on the disk only when its folder is (fsync(2)). Raises ``OSError``."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def is_being_written(folder: Path) -> bool | None:
    """Whether a process writes the bisection in ``folder`` at this moment; None where that cannot be told."""
    with nobody_writes(folder) as free:
        return None if free is None else not free


@contextmanager
def nobody_writes(folder: Path) -> Iterator[bool | None]:
    """True when nobody writes the bisection in ``folder``, nor does while the block runs; None: cannot be told."""
    with unlocked(folder / LOCK) as free:
        yield free


def has_ended(journal: Path) -> bool:
    """Whether the last whole line of a journal tells of the search's end; reads no more than the file's tail."""
    with suppress(OSError), journal.open("rb") as file:
        file.seek(max(0, journal.stat().st_size - _TAIL_BYTES))
        whole, _, _torn = file.read(_TAIL_BYTES).rpartition(b"\n")
        last = whole.rpartition(b"\n")[2]
        return last.startswith(b'{"event":"ended"') and len(last) < _TAIL_BYTES
    return False


def _lock(fd: int, folder: Path) -> None:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise BusyError(
            f"another process is searching in {folder}",
            remedy="wait for its end, or begin another bisection without --resume",
        ) from None
    except OSError:
        return  # no locks here
