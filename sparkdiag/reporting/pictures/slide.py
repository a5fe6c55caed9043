"""The timeline as one picture for a slide. Pure."""

import textwrap

from markupsafe import Markup

from sparkdiag.evidence.stored import StoredRun
from sparkdiag.harmless.printable import printable
from sparkdiag.reporting.phrases import verdict_sentence
from sparkdiag.reporting.pictures import run_blocks as of_run
from sparkdiag.reporting.pictures.colours import palette_of
from sparkdiag.reporting.pictures.forecast_figure import forecast_figure
from sparkdiag.reporting.pictures.layout import NARROW, Layout
from sparkdiag.reporting.pictures.svg import element, joined, number
from sparkdiag.reporting.pictures.timeline import Drawn, timeline
from sparkdiag.reporting.pictures.tracks import window_of
from sparkdiag.reporting.where_samples import suspect_function

SIZE = (1600.0, 900.0)
_MARGIN, _HEAD = 40.0, 124.0
_LEFT_SHARE = 0.57
"""Of the width, for the timeline; progress and facts stand right of it."""
_SAID, _FACT, _LABEL = 140, 50, 190.0
"""Letters a line of the sentence and of a fact; room for a fact's name."""
_FACTS = ("DCP size", "Revision", "Suspect commit in it", "Scope", "Ledger", "Prompt")
_WIDER = Layout(width=720.0, left=160.0, right=706.0, about=6)


def slide(stored: StoredRun, *, title: str, style: str) -> str:
    """A whole SVG document: title, sentence, timeline, beside it progress and the answers, fitted into 16 to 9."""
    bands = of_run.run_bands(stored)
    course = of_run.run_course(stored)
    left = timeline(
        stored,
        bands,
        window=window_of(stored),
        palette=palette_of(bands, suspect=suspect_function(stored)),
        layout=_WIDER,
    )
    right = forecast_figure(stored, course, layout=NARROW)
    room = SIZE[0] - 3 * _MARGIN
    split = _MARGIN + room * _LEFT_SHARE + _MARGIN
    scale = (SIZE[0] - _MARGIN - split) / NARROW.width
    below = _HEAD + right.height * scale + 34
    drawn = element(
        "svg",
        element("title", title),
        Markup("<style>{}</style>").format(Markup(style)),  # noqa: S704 - our own style sheet
        element("rect", x=0, y=0, width=SIZE[0], height=SIZE[1], class_="paper"),
        element("text", title, x=_MARGIN, y=48, class_="slide-title"),
        _lines(verdict_sentence(stored), x=_MARGIN, y=80, width=_SAID, most=2, class_="slide-lead"),
        _placed(left, x=_MARGIN, scale=min(room * _LEFT_SHARE / _WIDER.width, (SIZE[1] - _HEAD - 20) / left.height)),
        _placed(right, x=split, scale=scale),
        _facts(stored, x=split, y=below),
        class_="light timeline",
        role="img",
        viewBox=f"0 0 {number(SIZE[0])} {number(SIZE[1])}",
        width=SIZE[0],
        height=SIZE[1],
        xmlns="http://www.w3.org/2000/svg",
    )
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{drawn}\n'


def _placed(drawn: Drawn, *, x: float, scale: float) -> Markup:
    place = f"translate({number(x)} {number(_HEAD)}) scale({number(round(scale, 3))})"
    return element("g", drawn.markup, transform=place)


def _facts(stored: StoredRun, *, x: float, y: float) -> Markup:
    """Those answers that fit a slide, as many as there is room for."""
    parts: list[Markup] = []
    for label, said in of_run.answers(stored).rows:
        if label not in _FACTS:
            continue
        lines = len(_broken(said, width=_FACT, most=3))
        if y + 22 * lines > SIZE[1] - 16:
            break
        parts.append(element("text", label, x=x, y=y, class_="slide-label"))
        parts.append(_lines(said, x=x + _LABEL, y=y, width=_FACT, most=3, class_="slide-fact"))
        y += 22 * lines + 10
    return joined(*parts)


def _lines(said: str, *, x: float, y: float, width: int, most: int, class_: str) -> Markup:
    step = 24 if class_ == "slide-lead" else 22
    shown = enumerate(_broken(said, width=width, most=most))
    return joined(*(element("text", line, x=x, y=y + step * n, class_=class_) for n, line in shown))


def _broken(said: str, *, width: int, most: int) -> list[str]:
    return textwrap.wrap(printable(said, limit=width * (most + 1)), width, max_lines=most, placeholder=" …")
