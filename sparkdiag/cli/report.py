"""``sparkdiag report``: a run, a bisection or two runs beside each other, rendered from what was recorded."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sparkdiag.cli import completion
from sparkdiag.cli.report_formats import FILES, Format, rendered
from sparkdiag.cli.report_subject import Subject, TwoRuns, made_public, read_subject
from sparkdiag.errors import SparkdiagError, UsageError

if TYPE_CHECKING:
    from sparkdiag.evidence.redaction import Redactions


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(
            help="Folder of a run or a bisection (see: sparkdiag runs list); two runs are compared.",
            metavar="RUN [RUN]",
            autocompletion=completion.runs,
        ),
    ],
    form: Annotated[
        Format | None,
        typer.Option(
            "--format", help="md (the default) to paste, html to open, svg for slides, speedscope, trace for viewers."
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write; - is standard output.", metavar="FILE")
    ] = None,
    show_redactions: Annotated[
        bool, typer.Option("--show-redactions", help="List what is left out, by kind and count, in place of the page.")
    ] = False,
    not_secret: Annotated[
        list[str] | None,
        typer.Option("--not-secret", help="Fingerprint of a text that you have found harmless.", metavar="FINGERPRINT"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
) -> None:
    """Print the report of a run from its folder alone, offline, and judge it again with this version's judge.

    \b
    Example: sparkdiag report runs/20260526T081502Z-lab-dcp2 --format html

    Two runs are put side by side, whatever they are: DCP 1 and 2, good and bad, before and after a fix. Secrets, home
    folders, names of users and hosts and addresses are left out of every page.
    """
    if len(runs) > 2:
        raise UsageError(f"{len(runs)} runs: one is reported, two are compared", remedy="sparkdiag report RUN [RUN]")
    if len({path.resolve() for path in runs}) < len(runs):
        raise UsageError(f"{runs[0]} is named twice", remedy=f"sparkdiag report {runs[0]}")
    if as_json and form not in (None, Format.JSON):
        raise UsageError(f"--json and --format {form} ask for two things", remedy="leave one of them out")
    form = Format.JSON if as_json else form or Format.MD
    subject = read_subject(runs, with_trials=form is Format.HTML)
    shown, went = made_public(subject, not_secret=frozenset(not_secret or ()))
    if show_redactions:
        page = (_redactions_json(went) if as_json else _redactions_text(went)) + "\n"
        path = None if output is None or str(output) == "-" else output
    else:
        page = rendered(shown, form)
        path = _place(output, form, subject)
    if path is None:
        typer.echo(page, nl=False)
    else:
        _write(path, page)
        typer.echo(f"written: {path}", err=True)
    if not show_redactions:
        _warn(went)


def _place(output: Path | None, form: Format, subject: Subject) -> Path | None:
    """Where the page goes; None is standard output. A terminal is spared what is not made for reading there."""
    if output is not None:
        return None if str(output) == "-" else output
    if form not in FILES or not sys.stdout.isatty():
        return None
    if isinstance(subject, TwoRuns):
        raise UsageError(f"--format {form} is not for a terminal", remedy=f"name a file: -o compared-{FILES[form]}")
    return subject.folder / FILES[form]


def _write(path: Path, page: str) -> None:
    from sparkdiag.recording.folder import replace
    from sparkdiag.recording.listing import is_evidence

    if is_evidence(path):
        raise UsageError(
            f"{path} is what a run or a bisection was recorded in", remedy="name another file: --output FILE"
        )
    try:
        if path.exists() and not path.is_file():
            path.write_text(page, encoding="utf-8")  # a pipe or a device; a folder is refused by the system
        else:
            replace(path, page)
    except OSError as error:
        raise SparkdiagError(
            f"{path} cannot be written: {error.strerror or error}", remedy="name another file: --output FILE"
        ) from error


def _warn(went: "Redactions") -> None:
    """What only a person can tell stays on the page, so it is said wherever the page goes."""
    if went.unclassified:
        number = len(went.unclassified)
        typer.echo(
            f"note: {number} text(s) on it may be secrets: sparkdiag report RUN --show-redactions lists them", err=True
        )


def _redactions_text(went: "Redactions") -> str:
    from sparkdiag.reporting.redactions import redactions_text

    return redactions_text(went)


def _redactions_json(went: "Redactions") -> str:
    return json.dumps({"schema": 1, "redactions": went.model_dump(mode="json")}, indent=2)
