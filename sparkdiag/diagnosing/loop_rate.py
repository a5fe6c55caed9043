"""How fast an index advances: a slope that single values cannot bend. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from sparkdiag.diagnosing.chains import Sample
from sparkdiag.diagnosing.tracks import Track

_FROM_LOOKS = 3
"""Fewer say that it advances, not how fast."""
_MOST_POINTS = 40
_CLOCKS = (1.0, 10.0, 100.0, 1e3, 1e6)
_CLOCK_SHARE = 0.02


@dataclass(frozen=True, slots=True)
class Stretch:
    """A run in time. ``position`` is where it stands, with the part of the pass that the inner loop tells."""

    over_s: float | None
    per_s: float | None
    position: float


def run_told(track: Track) -> tuple[int, ...]:
    """The run that a finding tells of: the last one that is long enough for a rate, else the longest, the later of
    equals."""
    long = [run for run in track.runs if len(run) >= _FROM_LOOKS]
    return long[-1] if long else max(reversed(track.runs), key=len)


def stretch_of(track: Track, nested: Track | None, samples: Sequence[Sample], run: Sequence[int]) -> Stretch:
    """The run's time and rate (units of the index a second). Short runs of several calls are taken together."""
    points = _points(track, nested, samples, run)
    over_s = points[-1][0] - points[0][0] if len(points) > 1 and points[-1][0] > points[0][0] else None
    return Stretch(
        over_s=over_s,
        per_s=_rate(track, nested, samples, points),
        position=_position(track, nested, samples, run[-1], _width(track, samples)),
    )


def follows_a_clock(track: Track, samples: Sequence[Sample]) -> bool:
    """Whether it counts seconds, or parts of them, and no work."""
    rate = stretch_of(track, None, samples, run_told(track)).per_s
    return rate is not None and any(abs(rate / clock - 1) < _CLOCK_SHARE for clock in _CLOCKS)


def _rate(
    track: Track, nested: Track | None, samples: Sequence[Sample], points: Sequence[tuple[float, float]]
) -> float | None:
    if len(points) >= _FROM_LOOKS:
        slope = median_slope(points)
    else:
        slopes, looks = [], 0
        for run in track.runs:
            shorter = _points(track, nested, samples, run)
            looks += len(shorter)
            slopes += [(y1 - y0) / (t1 - t0) for (t0, y0), (t1, y1) in pairwise(shorter) if t1 > t0]
        slope = median(slopes) if len(slopes) > 1 and looks >= _FROM_LOOKS else None
    return slope if slope is not None and slope > 0 else None


def _points(
    track: Track, nested: Track | None, samples: Sequence[Sample], run: Sequence[int]
) -> list[tuple[float, float]]:
    width = _width(track, samples)
    timed = [(samples[i].at_s, _position(track, nested, samples, i, width)) for i in run]
    return [(at_s, position) for at_s, position in timed if at_s is not None]


def _position(track: Track, nested: Track | None, samples: Sequence[Sample], index: int, width: int) -> float:
    values = samples[index].values
    position = float(values[track.name])
    if nested is None or nested.stop is None:
        return position
    inner, stop = values.get(nested.name), values.get(nested.stop)
    if inner is None or not stop or not 0 <= inner <= stop:
        return position
    return position + width * inner / stop


def _width(track: Track, samples: Sequence[Sample]) -> int:
    """How far one pass takes the index: by its step's local, else the least advance that was seen."""
    if track.step is not None:
        return max(1, samples[track.runs[-1][-1]].values.get(track.step, 1))
    advances = [
        samples[b].values[track.name] - samples[a].values[track.name] for run in track.runs for a, b in pairwise(run)
    ]
    edges = [
        samples[i].values[track.edge] - samples[i].values[track.name]
        for run in track.runs
        for i in run
        if track.edge is not None and track.edge in samples[i].values
    ]
    positive = [value for value in (edges or advances) if value > 0]
    return int(median(positive)) if edges and positive else min(positive, default=1)


def median_slope(points: Sequence[tuple[float, float]]) -> float | None:
    """Median of the slopes between all pairs (Theil and Sen), https://doi.org/10.1080/01621459.1968.10480934."""
    stride = max(1, -(-len(points) // _MOST_POINTS))
    some = [*points[:-1:stride], points[-1]]
    slopes = [(y1 - y0) / (t1 - t0) for place, (t0, y0) in enumerate(some) for t1, y1 in some[place + 1 :] if t1 > t0]
    return median(slopes) if slopes else None
