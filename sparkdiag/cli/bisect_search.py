"""The search of ``sparkdiag bisect``: begun, gone on with, shown; and what is left when somebody stops it."""

import json
import sys
import textwrap
from datetime import UTC, datetime
from pathlib import Path
from shlex import join
from shutil import get_terminal_size
from typing import TYPE_CHECKING

import typer

from sparkdiag.cli.exit_codes import exit_code_of_bisection
from sparkdiag.cli.failures import print_error
from sparkdiag.cli.talk import say
from sparkdiag.errors import ExitCode, SparkdiagError, UsageError
from sparkdiag.harmless.excerpt import excerpt

if TYPE_CHECKING:
    from sparkdiag.bisecting.asking.options import Asked
    from sparkdiag.bisecting.asking.resolve import Question
    from sparkdiag.bisecting.question.request import BisectRequest
    from sparkdiag.evidence.bisection import Bisection
    from sparkdiag.recording.bisection import BisectionFolder


def begin(asked: "Asked", *, as_json: bool) -> ExitCode:
    """A new search, or with ``--dry-run`` its plan."""
    from sparkdiag.bisecting.asking.resolve import question

    asking = question(asked, command=("sparkdiag", *sys.argv[1:]))
    for line in (asking.because, *asking.notes):
        say(line)
    if asked.dry_run:
        return _plan(asking, as_json=as_json)
    return _begin(asking, asked=asked, as_json=as_json)


def _begin(asking: "Question", *, asked: "Asked", as_json: bool) -> ExitCode:
    """Search; and where releases were searched and a clone is named, go on between the two that were found. The one
    JSON document is then that of the commits."""
    from sparkdiag.bisecting.asking.between import commits_between
    from sparkdiag.recording.bisection import BisectionFolder

    scenario = asking.request.repro.scenario
    folder = BisectionFolder.create(
        Path(asked.out), scenario_name=scenario.name, dcp=scenario.server.dcp, now=datetime.now(UTC)
    )
    found = _search(asking.request, folder=folder, asked=asked, as_json=as_json)
    if isinstance(found, ExitCode):
        return found
    following = commits_between(asked, found) if asking.request.axis.kind == "releases" else None
    if following is None:
        return _told(found, folder=folder, asked=asked, as_json=as_json)
    if not as_json:
        _show(found, folder=folder, as_json=as_json)
    else:
        say(f"between {found.commits[0].parents[0]} and {found.commits[-1].sha}: {shown_path(_report(found, folder))}")
    for line in (following.because, *following.notes):
        say(line)
    return _begin(following, asked=asked, as_json=as_json)


def resume(asked: "Asked", *, as_json: bool) -> ExitCode:
    """Go on with a search that is there."""
    folder = folder_of(asked)
    request = _asked_before(asked, folder)
    repro = request.repro.model_copy(update={"wait_for_machine": asked.wait})
    say(f"going on with {shown_path(folder.path)}")
    found = _search(request.model_copy(update={"repro": repro}), folder=folder, asked=asked, as_json=as_json)
    if isinstance(found, ExitCode):
        return found
    return _told(found, folder=folder, asked=asked, as_json=as_json)


def _told(found: "Bisection", *, folder: "BisectionFolder", asked: "Asked", as_json: bool) -> ExitCode:
    """The answer shown, and written for git where that was asked."""
    _show(found, folder=folder, as_json=as_json)
    if asked.export_log is not None:
        try:
            _export(found, asked.export_log)
        except UsageError as problem:  # the answer stands whether or not git can be told of it
            say(f"{problem.message}; next: {problem.remedy}")
    return exit_code_of_bisection(found)


def export(asked: "Asked") -> ExitCode:
    """The log of a search that is there; nothing is searched."""
    from sparkdiag.bisecting.answer.kept import kept_bisection

    folder = folder_of(asked)
    _export(kept_bisection(folder.path), str(asked.export_log))
    return ExitCode.DONE


def _export(found: "Bisection", path: str) -> None:
    """Raises ``UsageError`` where there is nothing to tell git, or where the file cannot be written."""
    from sparkdiag.bisecting.question.git_log import export_log

    text = export_log(found)
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write --export {path}: {error.strerror or error}", remedy="--export FILE") from error
    say(f"git bisect log written to {path}; in the clone: git bisect replay {path}")


def _asked_before(asked: "Asked", folder: "BisectionFolder") -> "BisectRequest":
    """As its journal says, or, where that leaves out secrets or options are typed once more, as typed.

    Raises ``UsageError`` where what was typed is not what was asked before (``session.bisect`` looks at the rest).
    """
    from sparkdiag.bisecting.asking.options import KEPT_ON_RESUME, typed
    from sparkdiag.bisecting.asking.resolve import question
    from sparkdiag.bisecting.question.begun import begun_line, check_same, resume_request, with_kept_predictions

    line = begun_line(folder)
    typed_again = any(name not in KEPT_ON_RESUME for name in typed(asked))
    if not typed_again and not line.redacted:
        return resume_request(folder)  # or says that the options are to be typed again
    request = with_kept_predictions(question(asked, command=line.command, routes=False).request, line)
    try:
        check_same(request, line)
    except UsageError:
        if typed_again:
            raise
        return resume_request(folder)  # says that the options are to be typed again, and which
    return request


def folder_of(asked: "Asked") -> "BisectionFolder":
    """The bisection that is meant. Raises ``UsageError`` where none is there, ``RunFolderError`` for another folder."""
    from sparkdiag.recording.bisection import BisectionFolder

    if asked.folder is not None:
        return BisectionFolder.open(Path(asked.folder))
    newest = BisectionFolder.newest_unfinished(Path(asked.out))
    if newest is None:
        raise UsageError(
            f"there is no unfinished bisection in {asked.out}",
            remedy="name one: sparkdiag bisect --resume --folder DIR (see: sparkdiag runs list)",
        )
    return newest


def _plan(asking: "Question", *, as_json: bool) -> ExitCode:
    from sparkdiag.bisecting.asking.plan import plan_document, plan_lines, planned_environments
    from sparkdiag.bisecting.steps.forecast import forecast
    from sparkdiag.bisecting.trials.runner import ReproRunner
    from sparkdiag.harmless.documents import redact_document
    from sparkdiag.recording.bisection import BisectionFolder
    from sparkdiag.reporting.live import LiveView

    nowhere = BisectionFolder(Path(asking.request.repro.runs_dir))
    runner = ReproRunner(asking.request, folder=nowhere, view=LiveView(plain=True))
    expected = forecast(asking.request, minutes=runner.minutes)
    environments = planned_environments(asking.request, expected)
    if as_json:
        typer.echo(json.dumps(redact_document(plan_document(asking, expected, environments)), indent=2))
    else:
        for line in (*plan_lines(asking, expected, environments), "nothing was started"):
            typer.echo(_hanging(excerpt(line, limit=400)))
    return ExitCode.DONE


def _hanging(line: str) -> str:
    """A line of the plan, on a terminal broken between words with its text under itself."""
    if not sys.stdout.isatty():
        return line
    columns = max(get_terminal_size().columns - 1, 40)
    return textwrap.fill(line, columns, subsequent_indent=" " * 14, break_long_words=False, break_on_hyphens=False)


def _search(
    request: "BisectRequest", *, folder: "BisectionFolder", asked: "Asked", as_json: bool
) -> "Bisection | ExitCode":
    """The answer, or how it ended when somebody stopped it."""
    import sparkdiag.reporting.bisection
    import sparkdiag.reporting.bisection_document
    import sparkdiag.reporting.bisection_summary  # noqa: F401 - shows the end of a search that may outlive an upgrade
    from sparkdiag.bisecting.asking.plan import forecast_line
    from sparkdiag.bisecting.session import bisect
    from sparkdiag.bisecting.steps.forecast import forecast
    from sparkdiag.bisecting.trials.runner import ReproRunner
    from sparkdiag.reporting.live_bisection import LiveBisection
    from sparkdiag.reproducing.signals import Terminated, sigterm_raises

    request = request.model_copy(update={"repro": request.repro.model_copy(update={"runs_dir": str(folder.trials)})})
    view = LiveBisection(axis=request.axis.kind, plain=as_json)
    try:
        with sigterm_raises(), view:
            runner = ReproRunner(request, folder=folder, view=view.trial)
            if not asked.resume:
                view.note(forecast_line(forecast(request, minutes=runner.minutes)))
            view.note(f"bisection's folder: {shown_path(folder.path)}")
            return bisect(request, folder=folder, runner=runner, view=view)
    except (KeyboardInterrupt, Terminated) as stop:
        for line in view.table_lost():
            typer.echo(line, err=True)
        return _stopped(stop, folder=folder, as_json=as_json)
    except SparkdiagError:
        if folder.journal.is_file():
            say("the trials that ended are kept. When it is mended, go on with:")
            say(_resume_line(folder), to_copy=True)
        raise


def _resume_line(folder: "BisectionFolder") -> str:
    return join(["sparkdiag", "bisect", "--resume", "--folder", shown_path(folder.path)])


def _stopped(stop: BaseException, *, folder: "BisectionFolder", as_json: bool) -> ExitCode:
    code = ExitCode.INTERRUPTED if isinstance(stop, KeyboardInterrupt) else ExitCode.TERMINATED
    again = _resume_line(folder)
    say("interrupted; everything started is stopped, the trials that ended are kept. Go on with:")
    say(again, to_copy=True)
    if as_json:
        print_error(SparkdiagError("interrupted", remedy=again), exit_code=code)
    return code


def _show(found: "Bisection", *, folder: "BisectionFolder", as_json: bool) -> None:
    """Write ``report.md`` beside the journal and print the summary, or the one JSON document."""
    from sparkdiag.reporting.bisection_document import bisection_json
    from sparkdiag.reporting.bisection_summary import bisection_summary
    from sparkdiag.reporting.follow_up import follow_up

    report = _report(found, folder)
    if as_json:
        typer.echo(bisection_json(found, run_dir=str(folder.path)))
    else:
        columns = get_terminal_size().columns - 1 if sys.stdout.isatty() else None
        near = shown_path(report)
        next_ = follow_up(found) or join(["sparkdiag", "report", shown_path(folder.path)])
        typer.echo(bisection_summary(found, columns=columns, report=near, next_=next_))
    for problem in folder.problems:
        say(problem)


def _report(found: "Bisection", folder: "BisectionFolder") -> Path:
    """Write ``report.md``, fit to be posted; the folder where that fails."""
    from sparkdiag.recording.identities import identities_here
    from sparkdiag.reporting.bisection import render_bisection
    from sparkdiag.reporting.public import public

    shown, _ = public(found, identities=identities_here())
    report = folder.write_report(render_bisection(shown))
    return report if report.is_file() else folder.path


def shown_path(path: Path) -> str:
    """``path`` as short as it can be typed in this folder."""
    here = Path.cwd()
    return str(path.relative_to(here) if here in path.parents else path)
