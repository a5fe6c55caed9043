"""The search of ``sparkdiag bisect``: begun, gone on with, shown; and what is left when somebody stops it."""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from shlex import join
from shutil import get_terminal_size
from typing import TYPE_CHECKING

import typer

from sparkdiag.cli.exit_codes import exit_code_of_bisection
from sparkdiag.cli.failures import print_error
from sparkdiag.errors import ExitCode, SparkdiagError, UsageError
from sparkdiag.harmless.excerpt import one_line

if TYPE_CHECKING:
    from sparkdiag.bisecting.asked import Asked
    from sparkdiag.bisecting.asking import Question
    from sparkdiag.bisecting.request import BisectRequest
    from sparkdiag.evidence.bisection import Bisection
    from sparkdiag.recording.bisection import BisectionFolder


def begin(asked: "Asked", *, as_json: bool) -> ExitCode:
    """A new search, or with ``--dry-run`` its plan."""
    from sparkdiag.bisecting.asking import question
    from sparkdiag.recording.bisection import BisectionFolder

    asking = question(asked, command=("sparkdiag", *sys.argv[1:]))
    for line in (asking.because, *asking.notes):
        say(line)
    if asked.dry_run:
        return _plan(asking, as_json=as_json)
    scenario = asking.request.repro.scenario
    folder = BisectionFolder.create(
        Path(asked.out), scenario_name=scenario.name, dcp=scenario.server.dcp, now=datetime.now(UTC)
    )
    return _search(asking.request, folder=folder, asked=asked, as_json=as_json)


def resume(asked: "Asked", *, as_json: bool) -> ExitCode:
    """Go on with a search that is there."""
    folder = folder_of(asked)
    request = _asked_before(asked, folder)
    repro = request.repro.model_copy(update={"wait_for_machine": asked.wait})
    say(f"going on with {shown_path(folder.path)}")
    return _search(request.model_copy(update={"repro": repro}), folder=folder, asked=asked, as_json=as_json)


def _asked_before(asked: "Asked", folder: "BisectionFolder") -> "BisectRequest":
    """As its journal says, or, where that leaves out secrets or options are typed once more, as typed.

    Raises ``UsageError`` where what was typed is not what was asked before (``session.bisect`` looks at the rest).
    """
    from sparkdiag.bisecting.asked import KEPT_ON_RESUME, typed
    from sparkdiag.bisecting.asking import question
    from sparkdiag.bisecting.question import begun_line, check_same, resume_request

    line = begun_line(folder)
    typed_again = any(name not in KEPT_ON_RESUME for name in typed(asked))
    if not typed_again and not line.redacted:
        return resume_request(folder)
    request = question(asked, command=line.command).request
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
    from sparkdiag.bisecting.forecast import forecast
    from sparkdiag.bisecting.plan import plan_document, plan_lines
    from sparkdiag.bisecting.runner import ReproRunner
    from sparkdiag.harmless.documents import redact_document
    from sparkdiag.recording.bisection import BisectionFolder
    from sparkdiag.reporting.live import LiveView

    nowhere = BisectionFolder(Path(asking.request.repro.runs_dir))
    runner = ReproRunner(asking.request, folder=nowhere, view=LiveView(plain=True))
    expected = forecast(asking.request, minutes=runner.minutes)
    if as_json:
        typer.echo(json.dumps(redact_document(plan_document(asking, expected)), indent=2))
    else:
        for line in (*plan_lines(asking, expected), "nothing was started"):
            typer.echo(one_line(line, limit=400))
    return ExitCode.DONE


def _search(request: "BisectRequest", *, folder: "BisectionFolder", asked: "Asked", as_json: bool) -> ExitCode:
    from sparkdiag.bisecting.forecast import forecast
    from sparkdiag.bisecting.plan import forecast_line
    from sparkdiag.bisecting.recorded import RecordedDetails
    from sparkdiag.bisecting.runner import ReproRunner
    from sparkdiag.bisecting.session import bisect
    from sparkdiag.reporting.live_bisection import LiveBisection
    from sparkdiag.reproducing.signals import Terminated, sigterm_raises

    request = request.model_copy(update={"repro": request.repro.model_copy(update={"runs_dir": str(folder.trials)})})
    details = RecordedDetails(request, folder=folder)
    view = LiveBisection(axis=request.axis.kind, plain=as_json)
    try:
        with sigterm_raises(), view:
            runner = ReproRunner(request, folder=folder, view=view.trial)
            if not asked.resume:
                say(forecast_line(forecast(request, minutes=runner.minutes)))
            say(f"bisection's folder: {shown_path(folder.path)}")
            found = bisect(request, folder=folder, runner=runner, view=view, details=details)
    except (KeyboardInterrupt, Terminated) as stop:
        return _stopped(stop, folder=folder, as_json=as_json)
    _show(found, folder=folder, as_json=as_json)
    return exit_code_of_bisection(found)


def _stopped(stop: BaseException, *, folder: "BisectionFolder", as_json: bool) -> ExitCode:
    code = ExitCode.INTERRUPTED if isinstance(stop, KeyboardInterrupt) else ExitCode.TERMINATED
    again = join(["sparkdiag", "bisect", "--resume", "--folder", shown_path(folder.path)])
    say("interrupted; everything started is stopped, the trials that ended are kept. Go on with:")
    say(again)
    if as_json:
        print_error(SparkdiagError("interrupted", remedy=again), exit_code=code)
    return code


def _show(found: "Bisection", *, folder: "BisectionFolder", as_json: bool) -> None:
    """Write ``report.md`` beside the journal and print the summary, or the one JSON document."""
    from sparkdiag.reporting.bisection import render_bisection
    from sparkdiag.reporting.bisection_document import bisection_json
    from sparkdiag.reporting.bisection_summary import bisection_summary

    report = folder.write_report(render_bisection(found))
    if as_json:
        typer.echo(bisection_json(found, run_dir=str(folder.path)))
    else:
        columns = get_terminal_size().columns - 1 if sys.stdout.isatty() else None
        near = shown_path(report if report.is_file() else folder.path)
        next_ = join(["sparkdiag", "report", shown_path(folder.path)])
        typer.echo(bisection_summary(found, columns=columns, report=near, next_=next_))
    for problem in folder.problems:
        say(problem)


def say(text: str) -> None:
    """One line of talk on stderr, unable to steer the terminal."""
    typer.echo(one_line(text, limit=1000), err=True)


def shown_path(path: Path) -> str:
    """``path`` as short as it can be typed in this folder."""
    here = Path.cwd()
    return str(path.relative_to(here) if here in path.parents else path)
