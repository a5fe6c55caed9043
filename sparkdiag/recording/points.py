"""``timeline.jsonl`` read back: what happened is read whole; of readings that come every second, of a very long run an
even part."""

from collections import Counter
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from sparkdiag.evidence.timeline import CpuPoint, GpuPoint, MetricPoint
from sparkdiag.recording.events import TimelineLine
from sparkdiag.recording.lines import line_count, numbered_lines, read_stream, validated

MOST_POINTS = 60_000
"""Of a kind: a reading a second for sixteen hours."""
MOST_EVENTS = 200_000
"""Of all other lines together. The first of them are read."""
_TIMELINE: TypeAdapter[Any] = TypeAdapter(TimelineLine)
_KINDS: dict[bytes, type] = {b"metrics": MetricPoint, b"gpu": GpuPoint, b"cpu": CpuPoint}
_BEGINS = {b'{"event":"%s",' % kind: kind for kind in _KINDS}
_LENGTHS = sorted({len(begin) for begin in _BEGINS})


class Points:
    """The timeline's lines, and of which kinds only a part was read."""

    def __init__(self, keep_each: dict[bytes, int]) -> None:
        self.events: list[Any] = []
        self.seen: Counter[type] = Counter()
        self.keep_each = keep_each
        self.passed = 0
        self._others = 0

    def in_all(self, kind: type) -> int | None:
        """How many readings of ``kind`` there are, where only a part of them was read."""
        thinned = any(_KINDS[name] is kind and each > 1 for name, each in self.keep_each.items())
        return self.seen[kind] if thinned else None

    def take(self, line: bytes) -> None:
        """One line. Raises ``ValueError`` where it cannot be read."""
        kind = kind_of(line)
        if kind is None:
            self._take_other(line)
            return
        value_type = _KINDS[kind]
        self.seen[value_type] += 1
        if (self.seen[value_type] - 1) % self.keep_each.get(kind, 1) == 0:
            self.events.append(validated(line, _TIMELINE))

    def _take_other(self, line: bytes) -> None:
        if self._others >= MOST_EVENTS:
            self.passed += 1
            return
        event = validated(line, _TIMELINE)
        self._others += 1
        self.events.append(event)


def kind_of(line: bytes) -> bytes | None:
    """Of a reading, how our writer begins it."""
    for length in _LENGTHS:
        kind = _BEGINS.get(line[:length])
        if kind is not None:
            return kind
    return None


def read_points(folder: Path, problems: list[str], *, most: int = MOST_POINTS) -> Points:
    """Everything in ``timeline.jsonl``, in its order."""
    points = Points(_keep_each(folder / "timeline.jsonl", most=most))
    read_stream(folder, "timeline", problems, take=points.take)
    if points.passed:
        problems.append(f"timeline.jsonl: more than {MOST_EVENTS} events; {points.passed} later ones were left out")
    return points


def _keep_each(path: Path, *, most: int) -> dict[bytes, int]:
    """Of which kind every how many-th is read. The file is looked through for it only where it is long."""
    if line_count(path) <= most:
        return {}
    try:
        seen = Counter(kind for _, line in numbered_lines(path, []) if (kind := kind_of(line)) is not None)
    except OSError:
        return {}
    return {kind: -(-count // most) for kind, count in seen.items() if count > most}
