"""What every viewer's file is made of: the processes of a run in order, and how long each look at them stands. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePosixPath
from statistics import median

from sparkdiag.evidence.processes import ProcessInfo
from sparkdiag.evidence.stacks import Frame, StackSample, ThreadStack
from sparkdiag.evidence.stored import StoredRun
from sparkdiag.harmless.printable import printable
from sparkdiag.reporting.call_tree import working_thread
from sparkdiag.reporting.safe_text import without_home
from sparkdiag.reporting.timeline_rows import thinned

NAME_CHARS = 200
LATEST_S = 1e9
"""Thirty years on the run clock: what is said to be later was never measured, and viewers count in 64 bits."""
_GAPS = 4.0
"""A look stands until the next one, but for no longer than this many usual gaps: beyond, nobody looked."""
_LONE_S = 1.0


@dataclass(frozen=True, slots=True)
class TimedLook:
    """One look at one process: where its working thread was, and from when to when that stands."""

    from_s: float
    to_s: float
    thread: ThreadStack


@dataclass(frozen=True, slots=True)
class ProcessLooks:
    """One process, its looks in order of time without an overlap; never empty."""

    process: ProcessInfo
    looks: tuple[TimedLook, ...]


def suspect_of(stored: StoredRun) -> str | None:
    """The function that the verdict names."""
    return stored.record.verdict.function if stored.record.verdict is not None else None


def run_name(stored: StoredRun) -> str:
    """The run folder's own name."""
    return shown(PurePosixPath(stored.run_dir).name) or "run"


def shown(text: str) -> str:
    """``text`` from outside for a viewer's label."""
    return printable(without_home(text), limit=NAME_CHARS)


def process_label(process: ProcessInfo) -> str:
    """``Worker_TP0_DCP0 (pid 4711)``."""
    return f"{shown(process.name)} (pid {process.pid})"


def file_of(frame: Frame) -> str:
    return shown(frame.short_filename or frame.filename)


def is_moment(at_s: float) -> bool:
    """Whether a viewer can show ``at_s``: a number on the run clock that can have been measured."""
    return math.isfinite(at_s) and 0 <= at_s <= LATEST_S


def looks_of(stored: StoredRun, *, most: int) -> tuple[ProcessLooks, ...]:
    """Of every process that was looked at, workers first, together at most about ``most`` looks."""
    observation = stored.observation
    samples: dict[int, list[StackSample]] = {}
    count = 0
    for sample in observation.samples:
        if sample.usable and is_moment(sample.started_s) and is_moment(sample.ended_s):
            samples.setdefault(sample.pid, []).append(sample)
            count += 1
    share = min(1.0, most / max(count, 1))
    workers = {process.pid for process in observation.workers}
    processes = {process.pid: process for process in observation.processes}  # of a reused pid the last one
    for pid in samples:
        if pid not in processes:
            processes[pid] = ProcessInfo(pid=pid, started_at_s=0.0, role="other", title="")
    ordered = sorted(processes.values(), key=lambda one: (one.pid not in workers, one.name, one.pid))
    found = [
        ProcessLooks(process, _timed(thinned(of_it, max(2, int(len(of_it) * share))), suspect_of(stored)))
        for process in ordered
        if (of_it := samples.get(process.pid))
    ]
    return tuple(one for one in found if one.looks)


def _timed(samples: Sequence[StackSample], function: str | None) -> tuple[TimedLook, ...]:
    """A look stands from its beginning to the beginning of the next, or for as long as gaps usually are."""
    seen = []
    for sample in sorted(samples, key=lambda one: one.started_s):
        thread = working_thread(sample, function=function)
        if thread is not None and thread.frames:
            seen.append((sample.started_s, sample.ended_s, thread))
    gaps = [after[0] - before[0] for before, after in pairwise(seen)]
    usual_s = median(gaps) if gaps else _LONE_S
    made = []
    for index, (started_s, ended_s, thread) in enumerate(seen):
        until_s = max(started_s + _GAPS * usual_s, ended_s) if gaps[index:] else max(started_s + usual_s, ended_s)
        to_s = min(until_s, seen[index + 1][0]) if gaps[index:] else until_s
        if to_s > started_s:  # two looks at one moment: the later one stands
            made.append(TimedLook(started_s, to_s, thread))
    return tuple(made)


def suspect_first(looks: Sequence[ProcessLooks], function: str | None) -> int:
    """Index of the process with the suspect on most of its looks; 0 where there is none."""
    if function is None:
        return 0
    hits = [sum(look.thread.find(function) is not None for look in one.looks) for one in looks]
    return hits.index(max(hits)) if hits else 0
