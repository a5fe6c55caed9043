"""What a process did, as slices of a trace: its stacks, its top frames, its recorded calls. Pure.

Slices of one thread lie one in the other or one after the other, never across: viewers drop what overlaps.
"""

import heapq
import json
from collections.abc import Sequence
from typing import Any

from sparkdiag.evidence.ledger import DispatchCall
from sparkdiag.evidence.stacks import Frame
from sparkdiag.reporting.bands import Band
from sparkdiag.reporting.timeline_rows import thinned
from sparkdiag.reporting.viewers.events import Track, micro
from sparkdiag.reporting.viewers.looks import LATEST_S, ProcessLooks, TimedLook, file_of, is_moment, shown

MOST_SLICES = 80_000
"""Of stacks and of calls each, of all processes together: with 250 bytes a slice the file stays below 60 MB."""
_MOST_DEPTH = 100
"""Outermost frames that are drawn; below them the innermost one."""
_MOST_LOCALS = 8
_ARGUMENT_CHARS = 300


class _Open:
    """A slice that goes on while looks show its function at its depth."""

    __slots__ = ("first", "from_us", "key", "looks")

    def __init__(self, key: tuple[str, str], *, from_us: int, first: Frame) -> None:
        self.key, self.from_us, self.first, self.looks = key, from_us, first, 0


def stack_slices(one: ProcessLooks, track: Track, *, most: int, left_out: list[str]) -> list[dict[str, Any]]:
    """The working thread's frames: what stays the same from look to look, from the outermost frame on, is one slice."""
    tid, events = track.thread("stacks")
    looks: Sequence[TimedLook] = one.looks
    slices = _slices(looks, most=most)
    while slices is None:
        looks = thinned(looks, max(2, len(looks) // 2))
        slices = _slices(looks, most=most if len(looks) > 2 else most + 4 * _MOST_DEPTH)
    if len(looks) < len(one.looks):
        left_out.append(f"{track.name}: stacks of {len(looks)} of {len(one.looks)} looks")
    for from_us, to_us, opened in slices:
        args = _frame_args(opened.first, looks=opened.looks)
        events.append(track.slice(tid, shown(opened.first.function) or "?", from_us=from_us, to_us=to_us, args=args))
    return events


def _slices(looks: Sequence[TimedLook], *, most: int) -> list[tuple[int, int, _Open]] | None:
    """(from, to, slice); None where there would be more than ``most``."""
    done: list[tuple[int, int, _Open]] = []
    open_: list[_Open] = []
    at_us = 0
    for look in looks:
        from_us, to_us = micro(look.from_s), micro(look.to_s)
        if to_us <= from_us:
            continue
        frames = _drawn(look.thread.frames)
        keys = [(frame.function, frame.filename) for frame in frames]
        same = 0 if from_us > at_us else _alike(open_, keys)  # nobody looked in between: nothing is known to go on
        done += [(one.from_us, at_us, one) for one in open_[same:]]
        if len(done) + len(frames) > most:
            return None
        del open_[same:]
        open_ += [_Open(keys[n], from_us=from_us, first=frames[n]) for n in range(same, len(frames))]
        for one in open_:
            one.looks += 1
        at_us = to_us
    return done + [(one.from_us, at_us, one) for one in open_]


def _drawn(frames: tuple[Frame, ...]) -> list[Frame]:
    """Outermost first."""
    outermost = list(reversed(frames))
    return outermost if len(outermost) <= _MOST_DEPTH else [*outermost[: _MOST_DEPTH - 1], outermost[-1]]


def _alike(open_: list[_Open], keys: list[tuple[str, str]]) -> int:
    """How many frames, from the outermost on, are the same."""
    same = 0
    for one, key in zip(open_, keys, strict=False):
        if one.key != key:
            break
        same += 1
    return same


def _frame_args(frame: Frame, *, looks: int) -> dict[str, Any]:
    args: dict[str, Any] = {"file": file_of(frame), "looks": looks, "line at the first look": min(frame.line, 2**31)}
    for name, value in sorted(frame.locals.items())[:_MOST_LOCALS]:
        args[f"{shown(name)} at the first look"] = _plain(value)
    return args


def band_slices(band: Band, track: Track) -> list[dict[str, Any]]:
    """Where the process was, in one row: the suspect function where it was on a stack, else the innermost one."""
    tid, events = track.thread("top frame")
    at_us = 0
    for span in thinned(band.spans, max(2, MOST_SLICES // 8)):
        if not is_moment(span.from_s) or not is_moment(span.to_s):
            continue
        from_us, to_us = max(at_us, micro(span.from_s)), micro(span.to_s)
        if to_us > from_us:
            args = {"looks": span.looks}
            events.append(track.slice(tid, shown(span.function) or "?", from_us=from_us, to_us=to_us, args=args))
            at_us = to_us
    return events


def call_slices(
    calls: Sequence[DispatchCall], track: Track, *, until_s: float, most: int, left_out: list[str]
) -> list[dict[str, Any]]:
    """The dispatch ledger's calls of one process, one in the other as they were called; the longest where there are
    more than can be shown. A call that had not returned goes on to ``until_s``."""
    tid, events = track.thread("dispatch ledger")
    timed = [(begin, end, call) for call in calls if (end := _end_us(call, until_s)) > (begin := _begin_us(call)) >= 0]
    if len(timed) > most:
        left_out.append(f"{track.name}: the longest {most} of {len(timed)} recorded calls")
        timed = heapq.nlargest(most, timed, key=lambda one: one[1] - one[0])
    timed.sort(key=lambda one: (one[0], -one[1], one[2].number))
    around: list[int] = []
    for begin, end, call in timed:
        while around and around[-1] <= begin:
            around.pop()
        # Calls of two threads may lie across each other; the row shows the part inside, ``took_s`` the whole.
        inside = min(end, around[-1]) if around else end
        around.append(inside)
        events.append(track.slice(tid, shown(call.function) or "?", from_us=begin, to_us=inside, args=_call_args(call)))
    return events


def _begin_us(call: DispatchCall) -> int:
    return micro(call.began_s) if is_moment(call.began_s) else -1


def _end_us(call: DispatchCall, until_s: float) -> int:
    """At least a microsecond, the least that is drawn; -1 for what is no time."""
    if not is_moment(call.began_s):
        return -1
    end_s = until_s if call.took_s is None else call.began_s + call.took_s
    return max(micro(min(max(end_s, 0.0), LATEST_S)) if end_s == end_s else 0, micro(call.began_s) + 1)


def _call_args(call: DispatchCall) -> dict[str, Any]:
    args: dict[str, Any] = {"module": shown(call.module), "number": call.number, "took_s": call.took_s}
    if call.took_s is None:
        args["took_s"] = "had not returned"
    if call.synced:
        args["device waited for"] = True
    for key, value in (("arguments", call.arguments), ("returned", call.returned), ("seen", call.seen)):
        if value is not None and value != {}:
            args[key] = shown_json(value)
    if call.raised is not None:
        args["raised"] = shown(call.raised)
    return args


def shown_json(value: object) -> str:
    """Whatever was noted, as one short text."""
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(", ", ": "))[: _ARGUMENT_CHARS + 1]
    except (ValueError, RecursionError):
        text = "cannot be shown"
    return shown(text)


def _plain(value: int | float | bool | str | None) -> int | float | bool | str | None:
    """A local as JSON that every viewer reads: large integers and what is no number as text."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, str):
        return shown(value)
    return value if abs(value) < 2**53 else shown(repr(value)[:40])
