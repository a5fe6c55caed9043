"""``sparkdiag doctor``: what this machine lets a run do, found out by doing it."""

import json
import sys
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Annotated

import typer

from sparkdiag.cli import completion
from sparkdiag.cli.failures import print_error
from sparkdiag.cli.options import Dcp, Env, Tp
from sparkdiag.errors import ExitCode, SparkdiagError, UsageError
from sparkdiag.harmless.printable import printable

if TYPE_CHECKING:
    from collections.abc import Callable

    from sparkdiag.doctor.finding import Finding
    from sparkdiag.doctor.need import Asked

CLEAR_LINE = "\r\x1b[K"


def doctor(
    scenario: Annotated[
        str | None,
        typer.Option(help="Check for this scenario: a name, or a TOML file.", autocompletion=completion.scenarios),
    ] = None,
    env: Env = None,
    dcp: Dcp = None,
    tp: Tp = None,
    model: Annotated[str | None, typer.Option(help="Model path or name that the server would be given.")] = None,
    repo: Annotated[Path | None, typer.Option(help="vLLM clone that should hold the suspect commit.")] = None,
    out: Annotated[Path, typer.Option(help="Folder that run folders would be made in.")] = Path("runs"),
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout; talk goes to stderr.")] = False,
) -> None:
    """Try out what a repro of the same options needs of this machine; each finding says what to do next.

    Example: sparkdiag doctor

    \b
    Another: sparkdiag doctor --env existing:PYTHON --model MODEL --repo vllm

    Nothing is built, no server is started, no network is used. Exit 0: a run can work; 4: something fails.
    """
    from sparkdiag.reproducing.signals import Terminated, sigterm_raises

    asked = _asked(scenario=scenario, env=env, dcp=dcp, tp=tp, model=model, repo=repo, out=out)
    try:
        with sigterm_raises():
            code = _diagnose(asked, as_json=as_json)
    except (KeyboardInterrupt, Terminated) as stop:
        code = ExitCode.INTERRUPTED if isinstance(stop, KeyboardInterrupt) else ExitCode.TERMINATED
        typer.echo("\ninterrupted; everything started is stopped. Run it again with: sparkdiag doctor", err=True)
        if as_json:
            print_error(SparkdiagError("interrupted", remedy="sparkdiag doctor"), exit_code=code)
    raise typer.Exit(int(code))


def _asked(
    *,
    scenario: str | None,
    env: str | None,
    dcp: int | None,
    tp: int | None,
    model: str | None,
    repo: Path | None,
    out: Path,
) -> "Asked":
    """The same choice that ``repro`` makes; only what cannot be understood is refused here."""
    from sparkdiag.doctor.need import Asked
    from sparkdiag.reproducing.resolve import resolve

    for name, size in (("--dcp", dcp), ("--tp", tp)):
        if size is not None and size < 1:
            raise UsageError(f"{name}: found {size}; allowed: an integer, at least 1", remedy="sparkdiag doctor --help")
    resolved = resolve(env=env, scenario=scenario, model=model, repo=repo)
    typer.echo(f"{resolved.because}; scenario {resolved.scenario.name}", err=True)
    return Asked(
        scenario=resolved.scenario,
        spec=resolved.spec,
        model=resolved.model,
        repo=resolved.repo,
        runs_dir=str(out),
        dcp=dcp,
        tp=tp,
    )


def _diagnose(asked: "Asked", *, as_json: bool) -> ExitCode:
    from sparkdiag.doctor.diagnosis import diagnose
    from sparkdiag.doctor.finding import document, exit_code
    from sparkdiag.doctor.text import summary_line

    found = diagnose(asked, on_start=lambda name: _checking(name, as_json=as_json), on_finding=_teller(as_json))
    _clear()
    if as_json:
        what = {"scenario": asked.scenario.name, "env": asked.spec.text, "dcp": asked.dcp, "tp": asked.tp}
        print(json.dumps(document(found, asked=what), indent=2))
    else:
        print(summary_line(found))
    return exit_code(found)


def _teller(as_json: bool) -> "Callable[[Finding], None]":
    from sparkdiag.doctor.text import finding_lines

    columns = get_terminal_size().columns - 1

    def tell(finding: "Finding") -> None:
        _clear()
        if not as_json:
            print(printable("\n".join(finding_lines(finding, columns=columns)), newlines=True), flush=True)

    return tell


def _checking(name: str, *, as_json: bool) -> None:
    """Progress: a line that goes away, on a terminal; elsewhere a line a check where the findings come at the end."""
    if sys.stderr.isatty():
        print(f"{CLEAR_LINE}checking {name} …", end="", file=sys.stderr, flush=True)
    elif as_json:
        print(f"checking {name}", file=sys.stderr, flush=True)


def _clear() -> None:
    if sys.stderr.isatty():
        print(CLEAR_LINE, end="", file=sys.stderr, flush=True)
