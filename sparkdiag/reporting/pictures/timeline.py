"""The timeline as a picture: curves, one band a process, marks, all on one clock. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from sparkdiag.evidence.stacks import StackSample
from sparkdiag.evidence.stored import StoredRun
from sparkdiag.reporting.bands import Band, Span
from sparkdiag.reporting.pictures.colours import OTHERS, Palette
from sparkdiag.reporting.pictures.curves import Point, path, thinned_curve, usual_gap
from sparkdiag.reporting.pictures.layout import WIDE, Layout
from sparkdiag.reporting.pictures.scale import Scale, amount, ticks, time_label, time_ticks
from sparkdiag.reporting.pictures.svg import element, hint, joined, number
from sparkdiag.reporting.pictures.tracks import CurveTrack, Mark, Window, curve_tracks, marks_of

_CURVE, _BAND, _GAP = 62.0, 20.0, 14.0
_MARK_ROW, _AXIS = 16.0, 22.0
_LETTER = 6.6
"""Width of a letter of 12 pixels, about."""
_MOST_BANDS = 40
LETTERS = "ABCDEFGHIJ"


@dataclass(frozen=True)
class Drawn:
    """A part of a picture and its height."""

    markup: Markup
    height: float


def timeline(
    stored: StoredRun,
    bands: Sequence[Band],
    *,
    window: Window,
    palette: Palette,
    layout: Layout = WIDE,
    progress: Sequence[Point] = (),
) -> Drawn:
    """Everything from the marks down to the legend; ``bands`` and ``progress`` are the run's own."""
    x = Scale(window.begin_s, window.end_s, layout.left, layout.right)
    marks = _marks(marks_of(stored, window), x)
    parts, y = [marks.markup], marks.height
    for track in curve_tracks(stored, window, progress=progress):
        drawn = _curve(track, x, top=y)
        parts.append(drawn.markup)
        y += drawn.height
    looks = _looks(stored.observation.samples, x, window=window)
    rows = _bands(bands, x, window=window, palette=palette, top=y, looks=looks)
    parts.append(rows.markup)
    y += rows.height
    axis = _axis(x, window, top=marks.height, bottom=y, about=layout.about)
    legend = _legend(bands, palette, x, top=y + _AXIS + 12)
    return Drawn(joined(axis, *parts, legend.markup), y + _AXIS + 12 + legend.height)


def picture(drawn: Drawn, *, label: str, layout: Layout = WIDE) -> Markup:
    """``drawn`` as one element of a page."""
    return element(
        "svg",
        hint(label),
        drawn.markup,
        class_="timeline",
        role="img",
        aria_label=label,
        viewBox=f"0 0 {number(layout.width)} {number(drawn.height)}",
        width=layout.width,
        height=drawn.height,
        xmlns="http://www.w3.org/2000/svg",
    )


def _marks(marks: Sequence[Mark], x: Scale) -> Drawn:
    """Labels over their moments, in as many rows as keep them apart."""
    ends: list[float] = []
    parts = []
    for mark in marks:
        label = f"{mark.label} {mark.at_s:.1f} s" if abs(mark.at_s) > 1e-9 else mark.label
        at, width = x.at(mark.at_s), len(label) * _LETTER + 8
        left = at + width > x.stop
        begin = at - width if left else at
        row = next((n for n, end in enumerate(ends) if end <= begin), len(ends))
        ends[row : row + 1] = [begin + width]
        y = (row + 1) * _MARK_ROW - 3
        anchor = "end" if left else "start"
        parts.append(element("text", label, x=at + (-4 if left else 4), y=y, text_anchor=anchor, class_="mark"))
        parts.append(element("line", x1=at, x2=at, y1=y - 10, y2=y + 3, class_="mark-line"))
    return Drawn(joined(*parts), max(1, len(ends)) * _MARK_ROW + 6)


def _axis(x: Scale, window: Window, *, top: float, bottom: float, about: int) -> Markup:
    at = time_ticks(window.begin_s, window.end_s, about=about)
    step_s = at[1] - at[0] if len(at) > 1 else 1.0
    parts = []
    for value in at:
        place = x.at(value)
        class_ = "zero" if abs(value) < 1e-9 and window.from_sending else "grid"
        parts.append(element("line", x1=place, x2=place, y1=top, y2=bottom, class_=class_))
        label = time_label(value, step_s=step_s)
        parts.append(element("text", label, x=place, y=bottom + 15, text_anchor="middle", class_="tick"))
    since = "since sending" if window.from_sending else "since the first look"
    parts.append(element("text", since, x=4, y=bottom + 15, class_="tick"))
    clock = {"data_from": window.begin_s, "data_to": window.end_s, "data_x0": x.start, "data_x1": x.stop}
    return element("g", *parts, class_="axis", **clock)


def _curve(track: CurveTrack, x: Scale, *, top: float) -> Drawn:
    bottom = top + _CURVE
    y = Scale(0.0, track.high, bottom, top + 6)
    parts = [
        element("rect", x=x.start, y=top + 6, width=x.stop - x.start, height=_CURVE - 6, class_="plot"),
        element("text", track.title, x=4, y=top + 18, class_="title"),
    ]
    for value in ticks(track.high, about=2) if track.lines else ():
        parts.append(element("line", x1=x.start, x2=x.stop, y1=y.at(value), y2=y.at(value), class_="rule"))
        label = f"{amount(value)} {track.unit}".strip()
        parts.append(element("text", label, x=x.start - 6, y=y.at(value) + 4, text_anchor="end", class_="tick"))
    if track.missing:
        parts.append(element("text", track.missing, x=x.start + 8, y=(top + bottom) / 2 + 6, class_="missing"))
    for place, line in enumerate(track.lines):
        points = thinned_curve(line.points)
        drawn = path(points, x=x, y=y, gap_x=usual_gap(points))
        last = f"{line.name}: {amount(round(points[-1][1], 1))} {track.unit} at the end".replace(" %", "%")
        parts.append(
            element(
                "path",
                hint(last),
                d=drawn,
                class_=f"curve k{place % 8}",
                data_name=line.name if line.name == track.title else f"{track.title} {line.name}",
                data_unit=track.unit,
                data_high=f"{track.high:g}",
                data_y0=bottom,
                data_y1=top + 6,
            )
        )
    names = ", ".join(line.name for line in track.lines) if len(track.lines) > 1 else ""
    for row, said in enumerate(filter(None, (names, *_broken(track.note, 21)))):
        parts.append(element("text", said, x=4, y=top + 32 + 12 * row, class_="note"))
    shown = element("g", *parts, class_="track", data_track=track.title, data_height=_CURVE + _GAP)
    return Drawn(shown, _CURVE + _GAP)


def _broken(said: str, width: int) -> list[str]:
    lines: list[str] = []
    for word in said.split():
        if lines and len(lines[-1]) + 1 + len(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines[:3]


def _looks(samples: Sequence[StackSample], x: Scale, *, window: Window) -> dict[int, tuple[int, ...]]:
    """Of each process the pixels in which it was looked at."""
    found: dict[int, set[int]] = {}
    for sample in samples:
        at = window.since(sample.at_s)
        if sample.usable and window.begin_s <= at <= window.end_s:
            found.setdefault(sample.pid, set()).add(round(x.at(at)))
    return {pid: tuple(sorted(pixels)) for pid, pixels in found.items()}


def _bands(
    bands: Sequence[Band],
    x: Scale,
    *,
    window: Window,
    palette: Palette,
    top: float,
    looks: dict[int, tuple[int, ...]],
) -> Drawn:
    parts = [element("text", "Top frames", x=4, y=top + 12, class_="title")]
    y = top + 20
    if not bands:
        parts.append(element("text", "no stack was taken", x=x.start + 8, y=top + 14, class_="missing"))
    for band in bands[:_MOST_BANDS]:
        name = f"{band.process.name} ({band.process.pid})"
        parts.append(element("text", name, x=x.start - 6, y=y + 14, text_anchor="end", class_="row"))
        parts.append(element("rect", x=x.start, y=y + 2, width=x.stop - x.start, height=_BAND - 4, class_="unseen"))
        spans = _spans(band, x, window=window, palette=palette, top=y)
        parts.append(element("g", *spans, class_="band", data_name=band.process.name))
        ticks_at = (Markup(f"M{at} {number(y + _BAND - 2)}v-3") for at in looks.get(band.process.pid, ()))  # noqa: S704
        parts.append(element("path", d=joined(*ticks_at), class_="look"))
        y += _BAND
    if len(bands) > _MOST_BANDS:
        said = f"… and {len(bands) - _MOST_BANDS} more processes"
        parts.append(element("text", said, x=x.start, y=y + 14, class_="note"))
        y += _BAND
    height = y - top + 4
    title = "Top frame of each process"
    return Drawn(element("g", *parts, class_="bands track", data_track=title, data_height=height), height)


def _spans(band: Band, x: Scale, *, window: Window, palette: Palette, top: float) -> list[Markup]:
    """Of spans that would lie on the same pixel the one with most looks is drawn."""
    best: dict[int, Span] = {}
    for span in band.spans:
        if window.since(span.to_s) >= window.begin_s:
            pixel = round(x.at(window.since(span.from_s)))
            if pixel not in best or best[pixel].looks < span.looks:
                best[pixel] = span
    return [_span(span, x, window=window, palette=palette, top=top) for span in best.values()]


def _span(span: Span, x: Scale, *, window: Window, palette: Palette, top: float) -> Markup:
    begin, end = x.at(window.since(span.from_s)), x.at(window.since(span.to_s))
    width, colour = max(3.0, end - begin), palette.of(span.function)
    looks = "1 look" if span.looks == 1 else f"{span.looks} looks"
    told = f"{span.function}: {looks}, {window.since(span.from_s):.1f} to {window.since(span.to_s):.1f} s"
    parts = [hint(told), element("rect", x=begin, y=top + 2, width=width, height=_BAND - 4, class_=f"c{colour}")]
    label = span.function if len(span.function) * _LETTER + 8 < width else LETTERS[colour] if width > 11 else ""
    if label:
        parts.append(element("text", label, x=begin + 4, y=top + 13, class_=f"on-c{colour}"))
    return element("g", *parts, class_="span", data_told=told)


def _legend(bands: Sequence[Band], palette: Palette, place: Scale, *, top: float) -> Drawn:
    """Colour, letter and name of each function that has a colour, with its share of all looks."""
    looks: dict[int, int] = {}
    names: dict[int, str] = {}
    for span in (span for band in bands for span in band.spans):
        colour = palette.of(span.function)
        looks[colour] = looks.get(colour, 0) + span.looks
        names[colour] = span.function if colour != OTHERS else "other functions"
    total = sum(looks.values())
    parts, x, y = [], place.start, top
    for colour in sorted(names):
        name = names[colour] if len(names[colour]) <= 44 else names[colour][:43] + "…"
        said = f"{LETTERS[colour]}  {name}, {looks[colour] / total:.0%} of {total} looks"
        width = len(said) * _LETTER + 34
        if x + width > place.stop and x > place.start:
            x, y = place.start, y + 18
        parts.append(element("rect", x=x, y=y, width=12, height=12, class_=f"c{colour}"))
        parts.append(element("text", said, x=x + 18, y=y + 11, class_="row"))
        x += width
    caption = "Each tick is a look; a colour runs from the first to the last in a row that saw the function."
    lines = _broken(caption, int((place.stop - place.start) / 6))
    for row, said in enumerate(lines):
        parts.append(element("text", said, x=place.start, y=y + 31 + 14 * row, class_="note"))
    return Drawn(element("g", *parts, class_="legend below"), y - top + 26 + 14 * len(lines))
