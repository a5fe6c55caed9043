"""The command line: one thin module a command, mounted here. Heavy imports stay inside the commands."""

import sys
from typing import Annotated

import typer

from sparkdiag import __version__
from sparkdiag.cli import env, report, repro, runs, scenario
from sparkdiag.cli.failures import show_error
from sparkdiag.errors import SparkdiagError

app = typer.Typer(
    name="sparkdiag",
    help="Reproduce a vLLM prefill stall, look inside every engine process, and report what it was.\n\n"
    "Example: sparkdiag repro --dcp 2",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command("repro", context_settings={"allow_extra_args": True, "ignore_unknown_options": False})(repro.repro)
app.command("report")(report.report)
app.add_typer(scenario.app, name="scenario")
app.add_typer(env.app, name="env")
app.add_typer(runs.app, name="runs")


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
    """Entry point of the console script: errors become one clear line and an exit code."""
    try:
        app()
    except SparkdiagError as error:
        show_error(error, as_json="--json" in sys.argv)
        sys.exit(int(error.exit_code))


if __name__ == "__main__":
    main()
