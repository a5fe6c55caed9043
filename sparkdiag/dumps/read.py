"""From a pasted text to the looks in it. Pure; takes any text whatsoever.

markup -> lines -> prefixes apart (streams) -> pieces of one format (segments) -> each format's reader -> who it is,
when it was, and whether it can be believed.
"""

import importlib
import pkgutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Protocol

from sparkdiag.dumps import formats
from sparkdiag.dumps.formats import pyspy_json, pyspy_text
from sparkdiag.dumps.garbled import reason_for, reason_in, reason_of_lines, reason_of_pieces
from sparkdiag.dumps.kept import MOST_PROCESSES
from sparkdiag.dumps.markup import FENCE, plain_lines
from sparkdiag.dumps.naming import identified, named
from sparkdiag.dumps.prefixes import Stream, streams_of
from sparkdiag.dumps.segments import Segment, segments_of
from sparkdiag.dumps.stamps import Stamp, on_one_clock, stamp_in
from sparkdiag.evidence.dump import Pasted, ProcessDump

_FEWEST_SURE = 0.1
"""A format that is less sure is not asked to read."""
NOT_AN_ENGINE = "there is no stack in this text"


class Format(Protocol):
    """A module of ``dumps/formats``."""

    def claims(self, lines: Sequence[str]) -> float: ...

    def read(self, lines: Sequence[str]) -> tuple[ProcessDump, ...]: ...


@dataclass(frozen=True, slots=True)
class _Found:
    """A look, and where it stood."""

    dump: ProcessDump
    number: int
    stamp: Stamp | None


def read_dumps(text: str, *, source: str) -> Pasted:
    """Every stack in ``text``, whatever printed it and however it was pasted. Never raises."""
    lines, notes = plain_lines(text)
    streams = streams_of(lines)
    found: list[_Found] = []
    refused: list[str] = []
    for stream in streams:
        kept, reasons = _of_stream(stream)
        found += kept
        refused += reasons
    if not found:
        return _refused(source, lines, refused, notes)
    found.sort(key=lambda one: one.number)
    if len(found) > MOST_PROCESSES:
        notes = (*notes, f"of {len(found)} looks {MOST_PROCESSES} were read")
        del found[MOST_PROCESSES:]
    if len(streams) > 1 and len({(one.dump.pid, one.dump.host) for one in found}) > 1:
        notes = (*notes, "lines of several processes were told apart by their prefixes")
    if refused:
        notes = (*notes, *(f"a part was left out: {reason}" for reason in dict.fromkeys(refused)))
    return Pasted(source=source, looks=_timed(found), notes=notes)


def _refused(source: str, lines: Sequence[str], reasons: Sequence[str], notes: tuple[str, ...]) -> Pasted:
    garbled = reasons[0] if reasons else reason_of_pieces(lines)
    if garbled is not None:
        return Pasted(source=source, refused=garbled, refused_kind="garbled", notes=notes)
    failed = next((line for line in lines[:2000] if "ermission denied" in line or "Permission Denied" in line), None)
    reason = NOT_AN_ENGINE if failed is None else f"{NOT_AN_ENGINE}: the tool had no permission to look"
    return Pasted(source=source, refused=reason, refused_kind="not-an-engine", notes=notes)


def _of_stream(stream: Stream) -> tuple[list[_Found], list[str]]:
    """The looks in one writer's lines, and why others were refused."""
    if pyspy_json.claims(stream.lines):
        dumps = pyspy_json.read(stream.lines)
        if dumps:
            kept = [named(dump, above=identified(()), prefix=stream.identity) for dump in dumps]
            return [_Found(dump, stream.numbers[0], _stamp_of_json(dump)) for dump in kept], []
    found: list[_Found] = []
    refused: list[str] = []
    if pyspy_json.begins(stream.lines):
        refused.append(pyspy_json.CUT)
    for segment in segments_of(stream.lines):
        if segment.family == "py-spy":
            looks, reason = _of_py_spy(segment, stream)
        else:
            looks, reason = _of_format(segment, stream)
        reason = reason or reason_in([look.dump for look in looks])
        if reason is None:
            found += looks
        else:
            refused.append(reason)
    return found, refused


def _stamp_of_json(dump: ProcessDump) -> Stamp | None:
    return None if dump.at_s is None else Stamp(f"{dump.at_s:.1f} s", "relative", dump.at_s)


def _of_py_spy(segment: Segment, stream: Stream) -> tuple[list[_Found], str | None]:
    looks = pyspy_text.looks_in(segment.lines)
    if looks and segment.captions:
        looks[0].captions[:0] = segment.captions
    found, after = [], 0
    told = [look for look in looks if look.threads]
    for look in told:
        head = segment.start + look.head_at
        stamp = _stamp(stream, after, head) or _stamp_of(look.captions)
        dump = named(pyspy_text.as_dump(look), above=identified(look.captions), prefix=stream.identity)
        found.append(_Found(dump, stream.numbers[head], stamp))
        after = head + 1
    return found, reason_for(looks)


def _of_format(segment: Segment, stream: Stream) -> tuple[list[_Found], str | None]:
    lines = [line for line in segment.lines if line != FENCE]
    sure, module = max(((module.claims(lines), place, module) for place, module in enumerate(_modules())))[::2]
    if sure < _FEWEST_SURE:
        return [], None
    above = identified(segment.captions)
    stamp = _stamp(stream, 0, segment.start) or _stamp_of(segment.captions)
    found = [
        _Found(named(dump, above=above, prefix=stream.identity), stream.numbers[segment.start], stamp)
        for dump in module.read(lines)
        if dump.threads
    ]
    # When the second look of one piece was taken nobody knows: not when the first was.
    found[1:] = [replace(one, stamp=None) for one in found[1:]]
    return found, reason_of_lines(lines)


@cache
def _modules() -> tuple[Format, ...]:
    """Every format there is."""
    names = sorted(info.name for info in pkgutil.iter_modules(formats.__path__))
    modules = [importlib.import_module(f"{formats.__name__}.{name}") for name in names]
    return tuple(module for module in modules if hasattr(module, "claims") and hasattr(module, "read"))


def _stamp(stream: Stream, after: int, head: int) -> Stamp | None:
    """The last stamp that the log printed between ``after`` and the look's first line."""
    if not stream.stamps:
        return None
    for index in range(head, max(after, head - 50) - 1, -1):
        if (stamp := stream.stamps.get(index)) is not None:
            return stamp
    return None


def _stamp_of(captions: Sequence[str]) -> Stamp | None:
    stamps = [stamp for caption in captions if (stamp := stamp_in(caption)) is not None]
    return stamps[-1] if stamps else None


def _carried(found: Sequence[_Found]) -> list[_Found]:
    """A stamp above the dumps of several processes counts for each of them, until one of them comes again."""
    made: list[_Found] = []
    stamp: Stamp | None = None
    since: set[object] = set()
    for one in found:
        who = one.dump.pid if one.dump.pid is not None else one.dump.ranks.label or None
        if one.stamp is not None:
            stamp, since = one.stamp, set()
        elif stamp is not None and who is not None and who not in since and since:
            one = replace(one, stamp=stamp)  # noqa: PLW2901
        else:
            stamp = None
        since.add(who)
        made.append(one)
    return made


def _timed(found: Sequence[_Found]) -> tuple[ProcessDump, ...]:
    """The looks with their moments on one clock."""
    if not any(one.stamp is not None for one in found):
        return tuple(one.dump for one in found)
    found = _carried(found)
    moments = on_one_clock([one.stamp for one in found])
    return tuple(
        one.dump
        if one.stamp is None
        else one.dump.model_copy(update={"at": one.dump.at or one.stamp.text, "at_s": at_s})
        for one, at_s in zip(found, moments, strict=True)
    )
