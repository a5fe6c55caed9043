"""The runs of a folder, each with the state it is in, its size, and what of it is not ours. Links are passed over."""

import os
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from sparkdiag.evidence.base import Value
from sparkdiag.evidence.bisection import Bisection
from sparkdiag.evidence.run import RunRecord
from sparkdiag.recording.bisection import DOCUMENT, JOURNAL
from sparkdiag.recording.events import EVERY_STREAM, STREAMS
from sparkdiag.recording.folder import POSTED, RECORD, SERVER_LOG
from sparkdiag.recording.in_use import TIMELINE, is_held
from sparkdiag.recording.listed_bisection import bisection_facts, is_bisection_folder, trial_folders
from sparkdiag.recording.record import UNKNOWN_VERSION, header_lines, is_header, read_record, record_document

State = Literal["running", "finished", "interrupted", "failed", "killed", "damaged"]
FOLDER_NAME = re.compile(r"(\d{8}T\d{6}Z)-[A-Za-z0-9.-]+-dcp\d+(-\d+)?")
"""Also of a bisection's folder, whose name goes on with ``bisect-``."""
_PLAIN = "|".join(map(re.escape, (RECORD, SERVER_LOG, POSTED)))
_FILE = rf"({_PLAIN}|report\.[a-z]+(\.json)?|({'|'.join(EVERY_STREAM)})\.jsonl)"
WRITTEN_BY_US = re.compile(rf"{_FILE}|\.{_FILE}\.[a-z0-9_]{{8}}")
"""Names of a run's files, and of the temporary ones that a writer killed between write and rename leaves."""


def is_evidence(path: Path) -> bool:
    """Whether ``path`` is a file that a run or a bisection was recorded in, which no page may replace."""
    beside = (RECORD, TIMELINE, JOURNAL)
    kept = (RECORD, SERVER_LOG, POSTED, JOURNAL, DOCUMENT, *(f"{stream}.jsonl" for stream in EVERY_STREAM))
    return path.name in kept and any((path.parent / name).exists() for name in beside)


class ListedRun(Value):
    """One run folder, or one bisection with the run folders of its trials, as ``runs list`` shows it and ``runs prune``
    weighs it."""

    path: str
    kind: Literal["run", "bisection"] = "run"
    state: State
    because: str = ""
    """Why the state is not what a finished run's record says; one line, may quote the folder's contents."""
    record: RunRecord | None = None
    bisection: Bisection | None = None
    began_s: float
    """Seconds since the epoch: by the record, else by the folder's name, else when it was last written to."""
    bytes: int = 0
    held: bool | None = False
    """A process writes it at this moment; None: cannot be told."""
    ours: bool = True
    """It is recognisably sparkdiag's: by its record, or by the header lines of its streams."""
    foreign: tuple[str, ...] = ()
    """Entries that sparkdiag did not write."""


def state_of(record: RunRecord | None, *, problem: str, held: bool | None) -> tuple[State, str]:
    """The state of a run by its record (``problem``: why there is none) and by who holds the folder. Pure."""
    if record is None or record.status == "unknown":
        if held:
            return "running", "it has only just begun"
        return "damaged", problem or "its record does not say how the run ended"
    if record.status != "running":
        return record.status, ""
    match held:
        case True:
            return "running", ""
        case False:
            return "killed", "its process is gone, and recorded no end"
        case None:
            return "running", "says its record; whether its process still lives cannot be told on this file system"


def is_run_folder(name: str, *, has_record: bool, is_json: bool, headers: Mapping[str, bytes]) -> bool:
    """Whether a folder is to be listed at all. Whole JSON that is not a record of ours belongs to somebody else. Pure.

    ``has_record``: there is a ``run.json``; ``is_json``: it holds a JSON object, though not a record of ours.
    """
    if FOLDER_NAME.fullmatch(name) or has_our_headers(headers):
        return True
    return has_record and not is_json


def has_our_headers(headers: Mapping[str, bytes]) -> bool:
    """Whether there are streams, each beginning with the line that our writer begins it with. Pure."""
    return bool(headers) and all(is_header(line, stream) for stream, line in headers.items())


def foreign_entries(entries: Iterable[tuple[str, bool]]) -> tuple[str, ...]:
    """Of (name, is a plain file), the names that no run writes. Pure."""
    return tuple(sorted(name for name, plain in entries if not plain or not WRITTEN_BY_US.fullmatch(name)))


def began_s(record: RunRecord | None, *, name: str, written_s: float) -> float:
    """When the run began, in seconds since the epoch. Pure."""
    if record is not None:
        try:
            return datetime.fromisoformat(record.started_at).timestamp()
        except (ValueError, OverflowError, OSError):
            pass
    if (match := FOLDER_NAME.fullmatch(name)) is not None:
        try:
            return datetime.strptime(match[1], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()
        except ValueError:
            pass
    return written_s


def listed_runs(runs_dir: Path) -> tuple[ListedRun, ...]:
    """Every run folder in ``runs_dir``, newest first; a folder that is not there holds none."""
    try:
        with os.scandir(runs_dir) as entries:
            folders = [Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return ()
    found = filter(None, map(look_at, folders))
    return tuple(sorted(found, key=lambda run: (run.began_s, Path(run.path).name), reverse=True))


def list_runs(runs_dir: Path) -> tuple[tuple[Path, RunRecord], ...]:
    """Folder and record of each run whose record can be read, newest first."""
    return tuple((Path(run.path), run.record) for run in listed_runs(runs_dir) if run.record is not None)


def look_at(folder: Path) -> ListedRun | None:
    """The run in ``folder``; None where that is no run folder or cannot be entered."""
    try:
        with os.scandir(folder) as scanned:
            entries = [
                (entry.name, entry.is_file(follow_symlinks=False), entry.stat(follow_symlinks=False))
                for entry in scanned
            ]
    except OSError:
        return None
    if is_bisection_folder(folder):
        return _look_at_bisection(folder, entries)
    headers = header_lines(folder, STREAMS)
    record, problem, is_json = _our_record(folder)
    has_record = any(name == RECORD for name, _, _ in entries)
    if record is None and not is_run_folder(folder.name, has_record=has_record, is_json=is_json, headers=headers):
        return None
    held = is_held(folder)
    state, because = state_of(record, problem=problem, held=held)
    return ListedRun(
        path=str(folder),
        state=state,
        because=because,
        record=record,
        began_s=began_s(
            record, name=folder.name, written_s=max((facts.st_mtime for _, _, facts in entries), default=0.0)
        ),
        bytes=sum(facts.st_size for _, plain, facts in entries if plain),
        held=held,
        ours=record is not None or has_our_headers(headers),
        foreign=foreign_entries((name, plain) for name, plain, _ in entries),
    )


def _look_at_bisection(folder: Path, entries: list[tuple[str, bool, os.stat_result]]) -> ListedRun:
    facts = bisection_facts(folder, [(name, plain) for name, plain, _ in entries])
    folders, among = trial_folders(folder)
    trials = [(path, look_at(path)) for path in folders]
    strange = [
        f"{path.parent.name}/{path.name}" + (f"/{run.foreign[0]}" if run is not None and run.foreign else "")
        for path, run in trials
        if run is None or run.foreign or run.kind == "bisection"
    ]
    return ListedRun(
        path=str(folder),
        kind="bisection",
        state=facts.state,
        because=facts.because,
        bisection=facts.found,
        began_s=began_s(None, name=folder.name, written_s=max((stat.st_mtime for _, _, stat in entries), default=0.0)),
        bytes=sum(stat.st_size for _, plain, stat in entries if plain)
        + sum(run.bytes for _, run in trials if run is not None),
        held=facts.held,
        ours=facts.ours,
        foreign=tuple(sorted([*facts.foreign, *among, *strange])),
    )


def _our_record(folder: Path) -> tuple[RunRecord | None, str, bool]:
    """The record, or why there is none, and whether ``run.json`` is whole JSON all the same."""
    if (folder / RECORD).is_symlink():
        return None, f"{RECORD} is a link, which is not followed", False
    document, problem = record_document(folder)
    if document is None:
        return None, problem, False
    record = read_record(folder, [])
    if record.started_at and record.sparkdiag_version != UNKNOWN_VERSION:
        return record, "", True
    return None, f"{RECORD} is not a record of sparkdiag's", True
