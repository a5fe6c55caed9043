"""``timeline.jsonl`` read back: what happened is read whole; of readings that come every second, of a very long run an
even part."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from sparkdiag.evidence.timeline import CpuPoint, GpuPoint, MetricPoint
from sparkdiag.recording.events import TimelineLine
from sparkdiag.recording.lines import count_of, read_stream, validated

MOST_POINTS = 20_000
"""Of a kind: a reading a second for five hours."""
POINTS_OF_MORE = 10_000
"""Of a kind, where there are more than those: no picture has as many columns."""
MOST_EVENTS = 200_000
"""Of all other lines together. The first of them are read."""
_TIMELINE: TypeAdapter[Any] = TypeAdapter(TimelineLine)
_KINDS: dict[bytes, type] = {b"metrics": MetricPoint, b"gpu": GpuPoint, b"cpu": CpuPoint}
_TOLD_BY = 15
_BEGINS = {(b'{"event":"%s",' % kind)[:_TOLD_BY]: kind for kind in _KINDS}
"""How our writer begins a reading's line; no other kind of line begins with the same bytes."""


class Points:
    """The timeline's lines, and of which kinds only a part was read."""

    def __init__(self, keep_each: dict[bytes, int]) -> None:
        self.events: list[Any] = []
        self.left_out = 0
        """Events beyond ``MOST_EVENTS``."""
        self._keep_each = {begin: each for begin, kind in _BEGINS.items() if (each := keep_each.get(kind, 1)) > 1}
        self._seen = dict.fromkeys(_BEGINS, 0)
        self._others = 0

    def in_all(self, kind: type) -> int | None:
        """How many readings of ``kind`` there are, where only a part of them was read."""
        return next((self._seen[begin] for begin in self._keep_each if _KINDS[_BEGINS[begin]] is kind), None)

    def wanted(self, lines: list[bytes]) -> Iterable[int]:
        """The indices of those that are not readings to be passed over. Of a long run nearly all are."""
        if not self._keep_each:
            return range(len(lines))
        begins = [line[:_TOLD_BY] for line in lines]
        found = [index for index, begin in enumerate(begins) if begin not in self._keep_each]
        for kind, each in self._keep_each.items():
            of_kind = [index for index, begin in enumerate(begins) if begin == kind]
            found += of_kind[-self._seen[kind] % each :: each]
            self._seen[kind] += len(of_kind)
        return sorted(found)

    def take(self, line: bytes) -> None:
        """One line. Raises ``ValueError`` where it cannot be read."""
        if line[:_TOLD_BY] not in _BEGINS:
            if self._others >= MOST_EVENTS:
                self.left_out += 1
                return
            self._others += 1
        self.events.append(validated(line, _TIMELINE))


def read_points(folder: Path, problems: list[str], *, most: int = MOST_POINTS) -> Points:
    """Everything in ``timeline.jsonl``, in its order."""
    begins = {b'\n{"event":"%s",' % kind: kind for kind in _KINDS}
    counts = count_of(folder / "timeline.jsonl", begins)
    many = min(most, POINTS_OF_MORE)
    points = Points({kind: -(-counts[begin] // many) for begin, kind in begins.items() if counts[begin] > most})
    read_stream(folder, "timeline", problems, take=points.take, wanted=points.wanted)
    if points.left_out:
        problems.append(f"timeline.jsonl: more than {MOST_EVENTS} events; {points.left_out} later ones were left out")
    return points
