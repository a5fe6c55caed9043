"""The command line: one thin module a command, mounted here. Heavy imports stay inside the commands."""

import errno
import os
import sys
import traceback
from typing import Annotated

import typer

from sparkdiag import __version__
from sparkdiag.cli import bisect, clean, doctor, env, kernel, post, report, repro, route, runs, scenario, triage, watch
from sparkdiag.cli.exit_codes import GIT_BISECT_CODES, git_bisect_code
from sparkdiag.cli.failures import show_error
from sparkdiag.cli.grouped import GroupedCommand
from sparkdiag.errors import DefectError, ExitCode, SparkdiagError, UsageError

COMPLETION = "_SPARKDIAG_COMPLETE"

app = typer.Typer(
    name="sparkdiag",
    help="Reproduce a vLLM prefill stall, look inside every engine process, and report what it was.\n\n"
    "Example: sparkdiag repro --dcp 2",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # Typer's boxes import Markdown, Pygments and tracebacks: twice the start-up time of --help
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command(
    "repro",
    short_help="Start a server, send a long prompt, judge how its prefill goes.",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": False},
)(repro.repro)
app.command(
    "bisect",
    cls=GroupedCommand,
    short_help="Find the commit that brought a stall, or took it away.",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": False},
)(bisect.bisect)
app.command(
    "route",
    cls=GroupedCommand,
    short_help="Tell from the source which kernel is reached, and why.",
)(route.route)
app.command("triage", short_help="Diagnose stacks that somebody pasted.")(triage.triage)
app.command(
    "watch",
    cls=GroupedCommand,
    short_help="Look into a server that already runs, and say whether it stalls.",
)(watch.watch)
app.command("doctor", short_help="Try out what a run needs of this machine.")(doctor.doctor)
app.command("report", short_help="Print the report of a run, offline and judged again.")(report.report)
app.command(
    "post",
    cls=GroupedCommand,
    short_help="Post the report of a run to a pull request.",
)(post.post)
app.add_typer(kernel.app, name="kernel")
app.add_typer(scenario.app, name="scenario")
app.add_typer(env.app, name="env")
app.add_typer(runs.app, name="runs")
app.command("clean", short_help="Uninstall what sparkdiag put on this machine; shows it first.")(clean.clean)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"sparkdiag {__version__}")
        raise typer.Exit()


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Hold the options that stand before a command."""


def main() -> None:
    """Entry point of the console script: whatever happens becomes one clear line and a documented exit code."""
    options = sys.argv[1 : sys.argv.index("--")] if "--" in sys.argv else sys.argv[1:]
    code = _code(as_json="--json" in options)
    if "--git-bisect" in options and code not in GIT_BISECT_CODES:
        code = git_bisect_code(ExitCode(code))  # git takes 2 to 127 for "bad", and this run has not even begun
    sys.exit(code)


def _code(*, as_json: bool) -> int:
    try:
        return int(app(standalone_mode=False) or 0)
    except SparkdiagError as error:
        problem = error
    except SystemExit as exit_:
        # Without standalone mode Click exits by itself for shell completion, whose code the shell reads (fish: 1 is an
        # answer), and for a closed pipe.
        if not exit_.code or COMPLETION in os.environ:
            raise
        return int(ExitCode.UNREAD) if exit_.code == 1 else ExitCode.USAGE
    except Exception as error:
        if COMPLETION in os.environ:  # what is said here would land in the line that somebody is typing
            return 1
        usage = _usage_error(error) or _full_disk(error)
        if usage is None:
            usage = _defect(error)
        elif not usage.message:
            return int(ExitCode.USAGE)
        problem = usage
    show_error(problem, as_json=as_json)
    return int(problem.exit_code)


def _full_disk(error: Exception) -> SparkdiagError | None:
    """What could not be written for lack of room, wherever it was to go: no defect of ours."""
    if not isinstance(error, OSError) or error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return None
    where = f"{error.filename}: " if error.filename else "what this command writes: "
    return SparkdiagError(f"{where}{os.strerror(error.errno)}", remedy="make room, and run it again")


def _defect(error: Exception) -> SparkdiagError:
    """What nobody expected, with its traceback on stderr."""
    from sparkdiag.harmless.printable import printable
    from sparkdiag.harmless.secrets import redact_text

    print(printable(redact_text(traceback.format_exc()), newlines=True), end="", file=sys.stderr)
    return DefectError(f"sparkdiag failed by itself: {type(error).__name__}: {redact_text(str(error))}")


def _usage_error(error: Exception) -> SparkdiagError | None:
    """What the option parser found wrong, in our words; without a message where it has printed the help already."""
    if not hasattr(error, "format_message"):
        return None
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()  # type: ignore[attr-defined]
        return UsageError("")
    path = context.command_path if context is not None else "sparkdiag"
    return UsageError(error.format_message().replace(": Value error, ", ": "), remedy=f"{path} --help")


if __name__ == "__main__":
    main()
