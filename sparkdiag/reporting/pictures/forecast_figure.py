"""How far the prefill came and when it would be done: measured, foreseen, and the healthy time, on one axis. Pure."""

from collections.abc import Sequence

from markupsafe import Markup

from sparkdiag.evidence.stored import StoredRun
from sparkdiag.evidence.verdict import Forecast
from sparkdiag.judging.course import CoursePoint
from sparkdiag.reporting.phrases import leading_forecast, seconds
from sparkdiag.reporting.pictures.curves import Point, path, thinned_curve
from sparkdiag.reporting.pictures.layout import WIDE, Layout
from sparkdiag.reporting.pictures.scale import Scale, time_label, time_ticks
from sparkdiag.reporting.pictures.svg import element, hint, joined, number
from sparkdiag.reporting.pictures.timeline import Drawn

_TOP, _HEIGHT = 24.0, 150.0
_BOTTOM = _TOP + _HEIGHT
HEIGHT = _BOTTOM + 44


def forecast_figure(
    stored: StoredRun, course: Sequence[CoursePoint], *, until_s: float | None = None, layout: Layout = WIDE
) -> Drawn:
    """Share of the prefill's work over time since sending. ``until_s``: the axis' end, where two are compared."""
    points = measured(stored, course)
    missing = _missing(stored, points)
    if missing:
        said = element("text", missing, x=layout.left + 8, y=_TOP + 40, class_="missing")
        title = element("text", "Prefill progress", x=4, y=_TOP + 12, class_="title")
        plot = element("rect", x=layout.left, y=_TOP, width=layout.right - layout.left, height=64.0, class_="plot")
        return Drawn(joined(plot, title, said), _TOP + 80)
    x = Scale(0.0, until_s or end_of(stored, points), layout.left, layout.right)
    y = Scale(0.0, 100.0, _BOTTOM, _TOP)
    parts = [_frame(x, y, about=layout.about), *_healthy(stored, x, y), *_foreseen(stored, points, x, y)]
    drawn = path([(at, share * 100) for at, share in thinned_curve(points)], x=x, y=y)
    told = f"{points[-1][1]:.1%} of the work after {seconds(points[-1][0])}"
    told += "" if is_seen(points) else "; nothing was seen in between"
    parts.append(
        element("path", hint(told), d=drawn, class_="curve measured" if is_seen(points) else "curve unseen-way")
    )
    parts.append(
        element(
            "circle", hint(told), cx=x.at(points[-1][0]), cy=y.at(points[-1][1] * 100), r=3.5, class_="measured-end"
        )
    )
    return Drawn(joined(*parts), HEIGHT)


def measured(stored: StoredRun, course: Sequence[CoursePoint]) -> tuple[Point, ...]:
    """(seconds since sending, share of the work); a first token is the end of the prefill.

    Where the loops were not seen but a forecast was made, there is the one point that it was made from.
    """
    client, verdict = stored.observation.client, stored.record.verdict
    if client.sent is None:
        return ()
    points = [(point.at_s - client.sent.t_s, point.fraction) for point in course if point.at_s >= client.sent.t_s]
    done_s = client.time_to_first_token_s
    if done_s is not None:
        points = [point for point in points if point[0] <= done_s] + [(done_s, 1.0)]
    forecast = _forecast(stored)
    if not points and forecast is not None and verdict is not None and verdict.decided_at_s is not None:
        points = [(max(0.0, verdict.decided_at_s - client.sent.t_s), forecast.fraction_done)]
    return ((0.0, 0.0), *points) if points else ()


def is_seen(points: Sequence[Point]) -> bool:
    """Whether the way was seen, and not its two ends alone."""
    return len(points) > 2


def end_of(stored: StoredRun, points: Sequence[Point]) -> float:
    """Where the axis ends: the forecast's upper end, the healthy time, or the last point."""
    verdict = stored.record.verdict
    ends = [points[-1][0] if points else 1.0]
    if verdict is not None and verdict.baseline is not None:
        ends.append(verdict.baseline.seconds)
    forecast = _forecast(stored)
    if forecast is not None:
        ends.append(forecast.high_s)
    return max(ends) * 1.02


def _forecast(stored: StoredRun) -> Forecast | None:
    verdict, client = stored.record.verdict, stored.observation.client
    if verdict is None or not verdict.forecasts or client.first_token_s is not None:
        return None
    return leading_forecast(verdict.forecasts)


def _missing(stored: StoredRun, points: Sequence[Point]) -> str:
    if stored.observation.client.sent is None:
        return "no prompt of ours was sent: how far one had come is not known"
    if not points:
        return "neither the suspect's loops nor a forecast: how far it had come is not known"
    return ""


def _frame(x: Scale, y: Scale, *, about: int) -> Markup:
    parts = [
        element("rect", x=x.start, y=_TOP, width=x.stop - x.start, height=_HEIGHT, class_="plot"),
        element("text", "Prefill progress", x=4, y=_TOP + 12, class_="title"),
        element("text", "share of its work", x=4, y=_TOP + 27, class_="note"),
        element("text", "since sending", x=4, y=_BOTTOM + 16, class_="tick"),
    ]
    for value in (0.0, 25.0, 50.0, 75.0, 100.0):
        parts.append(element("line", x1=x.start, x2=x.stop, y1=y.at(value), y2=y.at(value), class_="rule"))
        parts.append(
            element("text", f"{value:.0f} %", x=x.start - 6, y=y.at(value) + 4, text_anchor="end", class_="tick")
        )
    at = time_ticks(x.low, x.high, about=about)
    for value in at:
        label = time_label(value, step_s=at[1] - at[0] if len(at) > 1 else 1.0)
        parts.append(element("line", x1=x.at(value), x2=x.at(value), y1=_TOP, y2=_BOTTOM, class_="grid"))
        parts.append(element("text", label, x=x.at(value), y=_BOTTOM + 16, text_anchor="middle", class_="tick"))
    return element("g", *parts)


def _healthy(stored: StoredRun, x: Scale, y: Scale) -> list[Markup]:
    verdict = stored.record.verdict
    if verdict is None or verdict.baseline is None or not verdict.baseline.seconds > 0:
        return []
    at = x.at(verdict.baseline.seconds)
    told = f"healthy: {seconds(verdict.baseline.seconds)} to the first token ({verdict.baseline.source})"
    line = element("line", hint(told), x1=x.at(0.0), y1=y.at(0.0), x2=at, y2=y.at(100.0), class_="healthy")
    label = f"healthy {verdict.baseline.seconds:.3g} s"
    near_end = at + 90 > x.stop
    anchor, shift = ("end", -8) if near_end else ("start", 6)
    return [line, element("text", label, x=at + shift, y=_TOP + 14, text_anchor=anchor, class_="healthy-label")]


def _foreseen(stored: StoredRun, points: Sequence[Point], x: Scale, y: Scale) -> list[Markup]:
    forecast = _forecast(stored)
    if forecast is None or not points:
        return []
    begin, share = points[-1]
    low, best, high = (max(at, begin) for at in (forecast.low_s, forecast.best_s, forecast.high_s))
    corners = ((begin, share * 100), (low, 100.0), (high, 100.0))
    places = (f"{number(float(x.at(at)))},{number(float(y.at(value)))}" for at, value in corners)
    outline = Markup(" ").join(map(Markup, places))
    told = f"forecast: first token after {seconds(best)}, between {seconds(low)} and {seconds(high)}"
    dashed = path([(begin, share * 100), (best, 100.0)], x=x, y=y)
    label = f"forecast {best:.3g} s ({low:.3g} to {high:.3g} s)"
    return [
        element("polygon", hint(told), points=outline, class_="range"),
        element("path", hint(told), d=dashed, class_="forecast"),
        element("text", label, x=x.stop - 8, y=_BOTTOM - 10, text_anchor="end", class_="forecast-label"),
    ]
