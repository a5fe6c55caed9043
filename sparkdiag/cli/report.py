"""``sparkdiag report``: a run, judged again from its folder and rendered; or a bisection."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sparkdiag.cli import completion
from sparkdiag.errors import RunFolderError

if TYPE_CHECKING:
    from sparkdiag.evidence.stored import StoredRun


class Format(StrEnum):
    """What ``--format`` takes."""

    MD = "md"
    JSON = "json"


def report(
    run: Annotated[
        Path,
        typer.Argument(
            help="Folder of a run or a bisection (see: sparkdiag runs list).",
            metavar="RUN",
            autocompletion=completion.runs,
        ),
    ],
    form: Annotated[Format, typer.Option("--format", help="What to print.")] = Format.MD,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
) -> None:
    """Print the report of a run from its folder alone, offline, and judge it again with this version's judge.

    \b
    Example: sparkdiag report runs/20260526T081502Z-lab-1a2b3c4d-dcp2 > report.md

    The folder of a bisection is reported as it stands.
    """
    from sparkdiag.recording.listed_bisection import is_bisection_folder
    from sparkdiag.recording.read import read_run
    from sparkdiag.reporting.document import document_json
    from sparkdiag.reporting.markdown import render_markdown
    from sparkdiag.reproducing.ending import compared

    if is_bisection_folder(run):
        _report_bisection(run, as_json=as_json or form is Format.JSON)
        return
    stored = compared(read_run(run))
    again = judged_again(stored)
    if as_json or form is Format.JSON:
        typer.echo(document_json(stored, judged_again=again))
    else:
        typer.echo(render_markdown(stored, judged_again=again), nl=False)


def _report_bisection(folder: Path, *, as_json: bool) -> None:
    from sparkdiag.recording.listed_bisection import read_bisection
    from sparkdiag.reporting.bisection import render_bisection
    from sparkdiag.reporting.bisection_document import bisection_json

    try:
        found = read_bisection(folder)
    except RunFolderError as lost:
        from sparkdiag.bisecting.answer.kept import rebuilt_bisection  # all of a search, and git: only where it must be

        found = rebuilt_bisection(folder, lost=lost.message)
    if as_json:
        typer.echo(bisection_json(found, run_dir=str(folder)))
    else:
        typer.echo(render_bisection(found), nl=False)


def judged_again(stored: "StoredRun") -> "StoredRun | None":
    """The run with today's verdict; None where that is the stored one or the run cannot be judged."""
    from sparkdiag.judging.judge import judge
    from sparkdiag.reporting.phrases import scenario_of

    if stored.record.watched:
        return _watched_again(stored)
    scenario = scenario_of(stored)
    old = stored.record.verdict
    if scenario is None or stored.observation.client.sent is None:
        return None
    new = judge(stored.observation, scenario, old.baseline if old is not None else None)
    if old is not None and (
        (new.outcome, new.mode, new.kind, new.function, new.needle)
        == (old.outcome, old.mode, old.kind, old.function, old.needle)
    ):
        return None
    record = stored.record.model_copy(update={"verdict": new})
    return stored.model_copy(update={"record": record})


def _watched_again(stored: "StoredRun") -> "StoredRun | None":
    """The same for a server that was only watched: what its stacks mean to today's signatures."""
    from sparkdiag.judging.judge import judge
    from sparkdiag.reporting.phrases import scenario_of
    from sparkdiag.watching.conclusion import conclusion_of

    old, before, scenario = stored.record.verdict, stored.record.diagnosis, scenario_of(stored)
    prompt = None
    if stored.observation.client.sent is not None and scenario is not None:
        prompt = judge(stored.observation, scenario, old.baseline if old is not None else None)
    reason = before.reason if before is not None else None
    found = conclusion_of(stored.observation, prompt=prompt, why_no_stacks=reason or "none was kept")
    new = found.verdict
    if (
        old is not None
        and before is not None
        and (new.outcome, new.mode, new.kind, new.function) == (old.outcome, old.mode, old.kind, old.function)
        and (found.diagnosis.kind, found.diagnosis.finding) == (before.kind, before.finding)
    ):
        return None
    record = stored.record.model_copy(update={"verdict": new, "diagnosis": found.diagnosis})
    return stored.model_copy(update={"record": record})
