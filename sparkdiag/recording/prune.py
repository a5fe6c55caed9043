"""Which runs to delete, and deleting them: never one that goes on, never a file that a run did not write."""

import os
from collections.abc import Sequence
from pathlib import Path

from sparkdiag.evidence.base import Value
from sparkdiag.recording.bisection import JOURNAL, TRIALS, nobody_writes
from sparkdiag.recording.folder import RECORD
from sparkdiag.recording.in_use import unheld
from sparkdiag.recording.listed_bisection import foreign_beside_trials, trial_folders
from sparkdiag.recording.listing import ListedRun, foreign_entries, look_at

DAY_S = 86400.0


class Limits(Value):
    """What may stay. The newest ``keep`` runs stay whatever the other limits say."""

    keep: int
    older_than_s: float | None = None
    """Runs that began longer ago go."""
    max_bytes: int | None = None
    """The oldest go until what is left fits."""
    damaged: bool = False
    """Damaged folders count as runs, where they are recognisably ours."""


class Left(Value):
    """A run that the limits would have deleted, and why it stays."""

    run: ListedRun
    because: str


def why_left(run: ListedRun) -> str:
    """Why ``run`` is never deleted; empty where it may be. Pure."""
    if run.held:
        return "it is being written"
    if run.held is None:
        return "whether it is being written cannot be told on this file system"
    if not run.ours:
        return "nothing in it shows that sparkdiag wrote it"
    if run.foreign:
        return f"it holds what sparkdiag did not write: {', '.join(run.foreign[:3])}"
    return ""


def choose(
    runs: Sequence[ListedRun], limits: Limits, *, now_s: float
) -> tuple[tuple[ListedRun, ...], tuple[Left, ...]]:
    """Of ``runs``, newest first: those to delete, and those that only something else than the limits keeps. Pure."""
    counted = [run for run in runs if run.state != "running" and (run.state != "damaged" or limits.damaged)]
    beyond = counted[limits.keep :]
    if limits.older_than_s is None and limits.max_bytes is None:
        chosen = list(beyond)
    else:
        oldest = now_s - limits.older_than_s if limits.older_than_s is not None else float("-inf")
        chosen = [run for run in beyond if run.began_s < oldest]
        if limits.max_bytes is not None:
            chosen = _until_it_fits(runs, beyond, chosen, max_bytes=limits.max_bytes)
    left = tuple(Left(run=run, because=why) for run in chosen if (why := why_left(run)))
    return tuple(run for run in chosen if not why_left(run)), left


def _until_it_fits(
    runs: Sequence[ListedRun], beyond: Sequence[ListedRun], chosen: list[ListedRun], *, max_bytes: int
) -> list[ListedRun]:
    """``chosen`` and more of ``beyond``, the oldest first. What cannot be deleted does not make others go."""
    total = sum(run.bytes for run in runs) - sum(run.bytes for run in chosen if not why_left(run))
    gone = {run.path for run in chosen}
    for run in reversed(beyond):
        if total <= max_bytes:
            break
        if run.path not in gone and not why_left(run):
            gone.add(run.path)
            total -= run.bytes
    return [run for run in beyond if run.path in gone]


def delete(run: ListedRun) -> str:
    """Delete the folder of ``run``; empty, or why it was left. Raises ``OSError`` where the system refuses.

    The record goes last, so that a folder that was only half deleted is still known for what it is.
    """
    return _delete_bisection(Path(run.path)) if run.kind == "bisection" else _delete_run(Path(run.path))


def _delete_run(path: Path) -> str:
    with unheld(path) as free:
        if not free:
            return "it is being written"
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            with os.scandir(folder) as entries:
                found = [(entry.name, entry.is_file(follow_symlinks=False)) for entry in entries]
            if foreign := foreign_entries(found):
                return f"it holds what sparkdiag did not write: {', '.join(foreign[:3])}"
            for name, _ in sorted(found, key=lambda entry: (entry[0] == RECORD, entry[0].endswith(".jsonl"))):
                os.unlink(name, dir_fd=folder)
        finally:
            os.close(folder)
        path.rmdir()
    return ""


def _delete_bisection(path: Path) -> str:
    """The trials' run folders first, the journal last. All or nothing as far as can be seen beforehand."""
    with nobody_writes(path) as free:
        if not free:
            return "it is being written"
        again = look_at(path)
        if again is None or again.kind != "bisection":
            return "it is no bisection any more"
        if again.foreign:
            return f"it holds what sparkdiag did not write: {', '.join(again.foreign[:3])}"
        for trial in trial_folders(path)[0]:
            if why := _delete_run(trial):
                return f"{trial.parent.name}/{trial.name}: {why}"
        if (path / TRIALS).exists():
            (path / TRIALS).rmdir()
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            with os.scandir(folder) as entries:
                found = [(entry.name, entry.is_file(follow_symlinks=False)) for entry in entries]
            if foreign := foreign_beside_trials(found):
                return f"it holds what sparkdiag did not write: {', '.join(foreign[:3])}"
            for name, _ in sorted(found, key=lambda entry: entry[0] == JOURNAL):
                os.unlink(name, dir_fd=folder)
        finally:
            os.close(folder)
        path.rmdir()
    return ""
