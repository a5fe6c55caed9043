"""The timeline as one picture for a slide. Pure."""

from markupsafe import Markup

from sparkdiag.evidence.stored import StoredRun
from sparkdiag.reporting.phrases import verdict_sentence
from sparkdiag.reporting.pictures import run_blocks as of_run
from sparkdiag.reporting.pictures.colours import palette_of
from sparkdiag.reporting.pictures.forecast_figure import forecast_figure
from sparkdiag.reporting.pictures.layout import SLIDE
from sparkdiag.reporting.pictures.svg import element, number
from sparkdiag.reporting.pictures.timeline import timeline
from sparkdiag.reporting.pictures.tracks import window_of

SIZE = (1600.0, 900.0)
_MARGIN, _HEAD = 40.0, 96.0


def slide(stored: StoredRun, *, title: str, style: str) -> str:
    """A whole SVG document: title, sentence, timeline and progress, fitted into 16 to 9."""
    marks = of_run.run_bands(stored)
    palette = palette_of(marks, suspect=of_run.suspect_of(stored))
    upper = timeline(stored, marks, window=window_of(stored), palette=palette, layout=SLIDE)
    lower = forecast_figure(stored, of_run.run_course(stored), layout=SLIDE)
    height = upper.height + 16 + lower.height
    room = (SIZE[0] - 2 * _MARGIN, SIZE[1] - _HEAD - _MARGIN / 2)
    scale = min(room[0] / SLIDE.width, room[1] / height)
    left = (SIZE[0] - SLIDE.width * scale) / 2
    said = verdict_sentence(stored)
    body = element(
        "g",
        upper.markup,
        element("g", lower.markup, transform=f"translate(0 {number(upper.height + 16)})"),
        transform=f"translate({number(left)} {number(_HEAD)}) scale({number(scale)})",
    )
    drawn = element(
        "svg",
        element("title", title),
        Markup("<style>{}</style>").format(Markup(style)),  # noqa: S704 - our own style sheet
        element("rect", x=0, y=0, width=SIZE[0], height=SIZE[1], class_="paper"),
        element("text", title, x=_MARGIN, y=44, class_="slide-title"),
        element("text", said if len(said) <= 150 else said[:149] + "…", x=_MARGIN, y=74, class_="slide-lead"),
        body,
        class_="light timeline",
        role="img",
        viewBox=f"0 0 {number(SIZE[0])} {number(SIZE[1])}",
        width=SIZE[0],
        height=SIZE[1],
        xmlns="http://www.w3.org/2000/svg",
    )
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{drawn}\n'
