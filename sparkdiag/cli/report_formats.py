"""Every way to show what was asked about; one table, so that what there is and what is offered cannot differ."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

from sparkdiag.cli.report_subject import OneBisection, OneRun, Subject, TwoRuns
from sparkdiag.errors import UsageError


class Format(StrEnum):
    """What ``--format`` takes."""

    MD = "md"
    HTML = "html"
    JSON = "json"
    SVG = "svg"
    SPEEDSCOPE = "speedscope"
    TRACE = "trace"


FILES = {
    Format.HTML: "report.html",
    Format.SVG: "report.svg",
    Format.SPEEDSCOPE: "report.speedscope.json",
    Format.TRACE: "report.trace.json",
}
"""Where a page goes that is not for a terminal, in the run's folder."""


def rendered(subject: Subject, form: Format) -> str:
    """The page. Raises ``UsageError`` where there is none of that format for it."""
    make = _WAYS[type(subject)].get(form)
    if make is None:
        raise UsageError(f"--format {form}: {_WHY_NOT[type(subject)]}", remedy=_INSTEAD[type(subject)])
    return make(subject)


def _run_md(subject: OneRun) -> str:
    from sparkdiag.reporting.markdown import render_markdown

    return render_markdown(subject.run, judged_again=subject.again)


def _run_json(subject: OneRun) -> str:
    from sparkdiag.reporting.document import document_json

    # A program on this machine goes on from the folder: the name that it was asked by, and no other, stays whole.
    here = subject.run.model_copy(update={"run_dir": str(subject.folder)})
    return document_json(here, judged_again=subject.again) + "\n"


def _run_html(subject: OneRun) -> str:
    from sparkdiag.reporting.pictures.page import run_page

    return run_page(subject.run, judged_again=subject.again)


def _run_svg(subject: OneRun) -> str:
    from sparkdiag.reporting.pictures.page import timeline_svg

    return timeline_svg(subject.run)


def _runs_of(subject: OneRun | TwoRuns) -> tuple[Any, ...]:
    return (subject.run,) if isinstance(subject, OneRun) else (subject.a, subject.b)


def _speedscope(subject: OneRun | TwoRuns) -> str:
    from sparkdiag.reporting.viewers.speedscope import speedscope_json

    return speedscope_json(*_runs_of(subject)) + "\n"


def _trace(subject: OneRun | TwoRuns) -> str:
    from sparkdiag.reporting.viewers.trace import trace_json

    return trace_json(*_runs_of(subject)) + "\n"


def _two_md(subject: TwoRuns) -> str:
    from sparkdiag.reporting.comparison.markdown import render_comparison

    return render_comparison(subject.comparison)


def _two_json(subject: TwoRuns) -> str:
    from sparkdiag.reporting.comparison.document import comparison_json

    return comparison_json(subject.comparison) + "\n"


def _two_html(subject: TwoRuns) -> str:
    from sparkdiag.reporting.pictures.page import comparison_page

    return comparison_page(subject.comparison, subject.a, subject.b)


def _bisection_md(subject: OneBisection) -> str:
    from sparkdiag.reporting.bisection import render_bisection

    return render_bisection(subject.found)


def _bisection_json(subject: OneBisection) -> str:
    from sparkdiag.reporting.bisection_document import bisection_json

    return bisection_json(subject.found, run_dir=str(subject.folder)) + "\n"


def _bisection_html(subject: OneBisection) -> str:
    from sparkdiag.reporting.comparison.compare import compare
    from sparkdiag.reporting.pictures.page import bisection_page

    good, bad = subject.good, subject.bad
    beside = compare(good, bad) if good is not None and bad is not None else None
    return bisection_page(subject.found, comparison=beside, good=good, bad=bad)


_WAYS: Mapping[type, Mapping[Format, Callable[[Any], str]]] = {
    OneRun: {
        Format.MD: _run_md,
        Format.HTML: _run_html,
        Format.JSON: _run_json,
        Format.SVG: _run_svg,
        Format.SPEEDSCOPE: _speedscope,
        Format.TRACE: _trace,
    },
    TwoRuns: {
        Format.MD: _two_md,
        Format.HTML: _two_html,
        Format.JSON: _two_json,
        Format.SPEEDSCOPE: _speedscope,
        Format.TRACE: _trace,
    },
    OneBisection: {Format.MD: _bisection_md, Format.HTML: _bisection_html, Format.JSON: _bisection_json},
}
_WHY_NOT = {
    OneRun: "not for a run",
    TwoRuns: "one picture shows one run",
    OneBisection: "a bisection is many runs, each with a timeline of its own",
}
_INSTEAD = {
    OneRun: "sparkdiag report --help",
    TwoRuns: "--format html shows both side by side",
    OneBisection: "--format html, or name the folder of one of its trials",
}
