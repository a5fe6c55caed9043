"""Threads followed over several looks at one process: which ones say what the engine does, and what of them counts.

A thread that waits spins: its innermost frames change and nothing moves. So a stack ends, for comparing, at the
outermost function near its top that waits. Pure.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from sparkdiag.evidence.dump import DumpFrame, DumpThread, ProcessDump

WAITS = frozenset(
    {
        "_poll",
        "_recv",
        "_recv_bytes",
        "_wait_for_tstate_lock",
        "acquire",
        "acquire_read",
        "acquire_write",
        "dequeue",
        "epoll",
        "get_response",
        "memory_fence",
        "poll",
        "recv",
        "recv_bytes",
        "recv_multipart",
        "sched_yield",
        "select",
        "sleep",
        "synchronize",
        "wait",
        "wait_for",
        "wait_until_ready",
    }
)
"""What is below (inside) one of them is its spin."""
_MAIN = "MainThread"
_NEAR_TOP = 12
_MOST_FRAMES = 400
_HELPER = re.compile(
    r"monitor|watchdog|heartbeat|metric|prometheus|usage|telemetry|tqdm|feeder|py-?spy|pythongc|anyio|asyncio"
    r"|zmq|logger|loki|sampler|resource.?tracker|shutdown|profil",
    re.IGNORECASE,
)
_HELPER_PATHS = re.compile(
    r"(?:^|/)(?:threading|queue|selectors|socketserver|socket|sched|concurrent/futures/\w+|asyncio/\w+|multiprocessing/\w+"
    r"|tqdm/\w+|prometheus_client/\w+|anyio/.*|uvloop/.*|zmq/.*|http/\w+|torch/_inductor/compile_worker/\w+|ray/.*)\.pyx?$"
)
"""A thread all of whose frames are here does nothing for the engine."""


@dataclass(frozen=True, slots=True)
class Followed:
    """One thread in one look. ``frames`` stand outermost first, without the spin of a wait."""

    place: int
    """Of the look."""
    at_s: float | None
    thread: DumpThread
    frames: tuple[DumpFrame, ...]
    waits: bool
    """Whether the last of ``frames`` is a function that waits: its line and locals are its spin."""


def follow(looks: Sequence[ProcessDump]) -> tuple[tuple[Followed, ...], ...]:
    """The threads that say what the engine does, the main one first, each with its looks in order."""
    found: dict[object, list[Followed]] = {}
    named = any(thread.name == _MAIN and thread.frames for look in looks for thread in look.threads)
    for place, look in enumerate(looks):
        main = _main(look, named=named)
        for number, thread in enumerate(look.threads):
            if not thread.frames or (thread is not main and _is_helper(thread)):
                continue
            series = found.setdefault("main" if thread is main else _key(thread, number), [])
            if series and series[-1].place == place:
                continue
            frames, waits = counting_frames(thread)
            series.append(Followed(place=place, at_s=look.at_s, thread=thread, frames=frames, waits=waits))
    first = [found.pop("main")] if "main" in found else []
    return tuple([tuple(series) for series in [*first, *found.values()]])


def counting_frames(thread: DumpThread) -> tuple[tuple[DumpFrame, ...], bool]:
    """(frames outermost first, whether the innermost of them waits): what spins inside a wait left out."""
    frames = thread.frames[:_MOST_FRAMES]
    cut = next((index for index in range(min(_NEAR_TOP, len(frames)) - 1, -1, -1) if frames[index].name in WAITS), None)
    return frames[cut or 0 :][::-1], cut is not None


def _main(look: ProcessDump, *, named: bool) -> DumpThread | None:
    """``named``: some look calls a thread so; then no other thread stands in for it where it is missing."""
    if named:
        return next((thread for thread in look.threads if thread.name == _MAIN and thread.frames), None)
    if look.pid is not None:
        for thread in look.threads:
            if thread.frames and thread.os_thread_id == look.pid:
                return thread
    return look.main_thread


def _key(thread: DumpThread, number: int) -> object:
    for value in (thread.os_thread_id, thread.thread_id, thread.name):
        if value is not None:
            return (type(value), value)
    return number


def _is_helper(thread: DumpThread) -> bool:
    if thread.name is not None and _helps(thread.name):
        return True
    return all(frame.native or (frame.path is not None and _helps_from(frame.path)) for frame in thread.frames)


@lru_cache(maxsize=1024)
def _helps(name: str) -> bool:
    return _HELPER.search(name) is not None


@lru_cache(maxsize=4096)
def _helps_from(path: str) -> bool:
    return _HELPER_PATHS.search(path) is not None
