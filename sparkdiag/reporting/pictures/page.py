"""Pages to open: one file each, complete without a network, a script or colours. Pure.

What a page may do is stated in it (Content-Security-Policy): nothing is loaded, and of styles and scripts only the ones
that were put in here count, known by their hash (https://www.w3.org/TR/CSP3/#csp-header).
"""

import base64
import hashlib
from functools import cache
from importlib.resources import files
from pathlib import PurePath
from typing import Literal

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from sparkdiag.evidence.bisection import Bisection
from sparkdiag.evidence.comparison import Comparison
from sparkdiag.evidence.stored import StoredRun
from sparkdiag.harmless.printable import printable
from sparkdiag.reporting.phrases import headline, verdict_sentence
from sparkdiag.reporting.pictures import run_blocks as of_run
from sparkdiag.reporting.pictures.bisection_blocks import bisection_blocks, bisection_lead, bisection_title
from sparkdiag.reporting.pictures.blocks import Beside, Block, Facts, Page, Table
from sparkdiag.reporting.pictures.colours import palette_of
from sparkdiag.reporting.pictures.forecast_figure import end_of, measured
from sparkdiag.reporting.pictures.layout import NARROW
from sparkdiag.reporting.pictures.slide import slide
from sparkdiag.reporting.pictures.tracks import window_of, with_highs
from sparkdiag.reporting.pictures.written import diagnosis_of, parts_of
from sparkdiag.reporting.unsampled import watched_headline
from sparkdiag.reporting.where_samples import suspect_function

Tone = Literal["bad", "good", "open"]
_LONGEST = 20_000


def run_page(stored: StoredRun, *, judged_again: StoredRun | None = None) -> str:
    """A run: verdict and answers, evidence, timeline, progress, flame graph, and all numbers below."""
    run = of_run.gone_through(stored)
    palette = palette_of(run.bands, suspect=suspect_function(stored))
    blocks: list[Block] = [
        of_run.answers(stored),
        *diagnosis_of(stored),
        *of_run.evidence(stored, judged_again),
        of_run.timeline_figure(run, window=window_of(stored), palette=palette),
        of_run.progress_figure(run),
        of_run.flame_figure(run, palette=palette),
        *parts_of(stored),
    ]
    return _rendered(
        Page(
            title=_title(stored),
            lead=verdict_sentence(stored),
            tone=_tone(stored),
            about=_about(stored),
            blocks=blocks,
            version=stored.record.sparkdiag_version,
        )
    )


def comparison_page(comparison: Comparison, a: StoredRun, b: StoredRun) -> str:
    """Two runs side by side, on the same clock and with the same colours."""
    return _rendered(
        Page(
            title="two runs compared",
            lead=f"{comparison.sentence}.",
            tone="open",
            about=f"A: {PurePath(comparison.a.run_dir).name}, {comparison.a.headline}. "
            f"B: {PurePath(comparison.b.run_dir).name}, {comparison.b.headline}.",
            blocks=[*_compared(comparison, names=("A", "B")), *_side_by_side(a, b, names=("A", "B"))],
        )
    )


def bisection_page(
    found: Bisection,
    *,
    comparison: Comparison | None = None,
    good: StoredRun | None = None,
    bad: StoredRun | None = None,
) -> str:
    """The answer and its trials; good against bad where the folders of two telling trials were there."""
    blocks: list[Block] = [*bisection_blocks(found)]
    if comparison is not None and good is not None and bad is not None:
        names = ("without it", "with it")
        shown = [(name, PurePath(run.run_dir).name) for name, run in zip(names, (good, bad), strict=True)]
        blocks += [Facts(rows=shown), *_compared(comparison, names=names), *_side_by_side(good, bad, names=names)]
    tone: Tone = "good" if found.outcome == "found" else "open"
    about = f"scenario {found.scenario}" if found.scenario else ""
    return _rendered(
        Page(title=bisection_title(found), lead=bisection_lead(found), tone=tone, about=about, blocks=blocks)
    )


def timeline_svg(stored: StoredRun) -> str:
    """The timeline and the progress alone, for a slide: 16 to 9, light, with its own title and styles."""
    return slide(stored, title=f"sparkdiag: {_title(stored)}", style=_asset("picture.css"))


def _compared(found: Comparison, *, names: tuple[str, str]) -> list[Block]:
    rows = sorted(found.rows, key=lambda row: not row.differs)
    return [
        Table(
            title="What differs, and what does not",
            head=("", *names),
            rows=[(row.what, row.a, row.b) for row in rows],
            marked=frozenset(place for place, row in enumerate(rows) if row.differs),
            note=" · ".join(found.caveats),
        ),
        Table(
            title="Where the workers were",
            head=("innermost function", *names),
            rows=[(one.function, f"{one.a:.0%}", f"{one.b:.0%}") for one in found.stack_difference],
        ),
    ]


def _side_by_side(a: StoredRun, b: StoredRun, *, names: tuple[str, str]) -> list[Block]:
    suspect = suspect_function(a) or suspect_function(b)
    runs = of_run.gone_through(a), of_run.gone_through(b)
    palette = palette_of([*runs[0].bands, *runs[1].bands], suspect=suspect)
    windows = with_highs(a, window_of(a)), with_highs(b, window_of(b))
    spans = windows[0].stretched(windows[1]), windows[1].stretched(windows[0])
    until_s = max(end_of(run.stored, measured(run.stored, run.course)) for run in runs)
    one, other = names
    return [
        Beside(
            left=of_run.timeline_figure(
                runs[0], window=spans[0], palette=palette, title=f"Timeline, {one}", layout=NARROW
            ),
            right=of_run.timeline_figure(
                runs[1], window=spans[1], palette=palette, title=f"Timeline, {other}", layout=NARROW
            ),
        ),
        Beside(
            left=of_run.progress_figure(runs[0], until_s=until_s, title=f"Progress, {one}", layout=NARROW),
            right=of_run.progress_figure(runs[1], until_s=until_s, title=f"Progress, {other}", layout=NARROW),
        ),
        Beside(
            left=of_run.flame_figure(runs[0], palette=palette, title=f"Flame graph, {one}", layout=NARROW),
            right=of_run.flame_figure(runs[1], palette=palette, title=f"Flame graph, {other}", layout=NARROW),
        ),
    ]


def _title(stored: StoredRun) -> str:
    verdict = stored.record.verdict
    if stored.record.diagnosis is not None and stored.observation.client.sent is None:
        return f"watch: {watched_headline(stored.record.diagnosis)}"
    where = f" in {verdict.function}" if verdict is not None and verdict.function else ""
    return f"{headline(stored)}{where}"


def _tone(stored: StoredRun) -> Tone:
    verdict = stored.record.verdict
    if verdict is None or verdict.outcome == "inconclusive":
        return "open"
    return "good" if verdict.outcome == "completed" and verdict.needle in ("retrieved", None) else "bad"


def _about(stored: StoredRun) -> str:
    begun = f", {stored.record.started_at}" if stored.record.started_at else ""
    return f"{PurePath(stored.run_dir).name}{begun}"


def _rendered(page: Page) -> str:
    style, script = _asset("picture.css") + _asset("page.css"), _asset("page.js")
    return _template().render(
        page=page,
        style=Markup(style),  # noqa: S704 - ours, not escaped twice
        script=Markup(script),  # noqa: S704 - ours, not escaped twice
        policy=_policy(style=style, script=script),
    )


def _policy(*, style: str, script: str) -> str:
    """Nothing from anywhere but the very texts of ours."""
    return (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def _asset(name: str) -> str:
    return files("sparkdiag.reporting.pictures").joinpath(name).read_text(encoding="utf-8")


def _shown(said: object, limit: int = _LONGEST) -> str:
    return printable(str(said), newlines=True, limit=limit)


@cache
def _template() -> Template:
    made = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    made.filters["shown"] = _shown
    return made.from_string(_asset("page.html.j2"))
