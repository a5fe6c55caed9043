"""Curves of many points drawn with few: nothing that can be seen is lost. Pure."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from markupsafe import Markup

from sparkdiag.reporting.pictures.scale import Scale
from sparkdiag.reporting.pictures.svg import number

Point = tuple[float, float]
MOST_POINTS = 2000


def thinned_curve(points: Sequence[Point], *, most: int = MOST_POINTS) -> tuple[Point, ...]:
    """At most about ``most`` of ``points`` (in order of x): of each stretch the first, lowest, highest and last."""
    if len(points) <= most:
        return tuple(points)
    stretch = -(-len(points) * 4 // most)
    kept: list[Point] = []
    for begin in range(0, len(points), stretch):
        part = points[begin : begin + stretch]
        chosen = {0, len(part) - 1}
        chosen.add(min(range(len(part)), key=lambda n: part[n][1]))
        chosen.add(max(range(len(part)), key=lambda n: part[n][1]))
        kept += [part[n] for n in sorted(chosen)]
    return tuple(kept)


def path(points: Iterable[Point], *, x: Scale, y: Scale, gap_x: float | None = None) -> Markup:
    """The ``d`` of a path through ``points``; where two are further apart than ``gap_x``, it is interrupted."""
    parts: list[str] = []
    before: float | None = None
    for at, value in points:
        far = before is None or (gap_x is not None and at - before > gap_x)
        parts.append(f"{'M' if far else 'L'}{number(float(x.at(at)))} {number(float(y.at(value)))}")
        before = at
    return Markup("").join(map(Markup, parts))  # letters and numbers


def usual_gap(points: Sequence[Point]) -> float | None:
    """Beyond this distance nobody looked: five times the usual one."""
    if len(points) < 3:
        return None
    distances = sorted(b[0] - a[0] for a, b in pairwise(points))
    return 5 * distances[len(distances) // 2] or None
