"""``sparkdiag runs``: the runs on this disk."""

import json
import shlex
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sparkdiag.cli.failures import printable
from sparkdiag.errors import UsageError

if TYPE_CHECKING:
    from sparkdiag.evidence.run import RunRecord

app = typer.Typer(help="List and prune run folders.\n\nExample: sparkdiag runs list", no_args_is_help=True)

Runs = Annotated[Path, typer.Option("--out", help="Folder that run folders are made in.")]


def _checked(out: Path) -> Path:
    """A folder that is not there yet holds no runs; a file never will."""
    if out.exists() and not out.is_dir():
        raise UsageError(f"--out {out} is a file, not a folder of runs", remedy="sparkdiag runs list --out FOLDER")
    return out


@app.command("list")
def list_(
    out: Runs = Path("runs"),
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> None:
    """List the runs, newest first.

    Example: sparkdiag runs list
    """
    from sparkdiag.recording.read import list_runs

    found = list_runs(_checked(out))
    if as_json:
        document = {"schema": 1, "runs": [_entry(path, record) for path, record in found]}
        typer.echo(json.dumps(document, indent=2))
        return
    if not found:
        typer.echo(f"no runs in {printable(str(out))}; next: sparkdiag repro --dcp 2", err=True)
    for path, record in found:
        typer.echo(printable(f"{record.started_at:<26}  {_what(record):<24}  {path}"))


@app.command()
def prune(
    keep: Annotated[int, typer.Option(min=0, help="How many of the newest finished runs to keep.")] = 20,
    out: Runs = Path("runs"),
    yes: Annotated[bool, typer.Option("--yes", help="Delete; without it only say what would go.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> None:
    """Delete old run folders: only ones that hold sparkdiag's own run.json, never one that still runs.

    Example: sparkdiag runs prune --keep 20 --yes
    """
    from sparkdiag.recording.read import list_runs

    old = [(path, record) for path, record in list_runs(_checked(out)) if record.status != "running"][keep:]
    for path, record in old:
        if not as_json:
            typer.echo(printable(f"{'deleted' if yes else 'would delete'} {path} ({_what(record)})"))
        if yes:
            _delete(path)
    if as_json:
        document = {"schema": 1, "deleted": yes, "runs": [_entry(path, record) for path, record in old]}
        typer.echo(json.dumps(document, indent=2))
    elif old and not yes:
        where = [] if out == Path("runs") else ["--out", str(out)]
        again = shlex.join(["sparkdiag", "runs", "prune", "--keep", str(keep), *where, "--yes"])
        typer.echo(printable(f"next: {again}"), err=True)


def _delete(path: Path) -> None:
    try:
        shutil.rmtree(path)
    except OSError as error:
        raise UsageError(f"cannot delete {path}: {error.strerror or error}", remedy="check who owns it") from error


def _what(record: "RunRecord") -> str:
    verdict = record.verdict
    if verdict is None:
        return record.status
    return (
        f"{verdict.outcome} ({verdict.mode or verdict.needle})" if verdict.mode or verdict.needle else verdict.outcome
    )


def _entry(path: Path, record: "RunRecord") -> dict[str, object]:
    verdict = record.verdict
    return {
        "run_dir": str(path),
        "started_at": record.started_at,
        "scenario": record.scenario.get("name"),
        "status": record.status,
        "dcp_world_size": record.dcp.size if record.dcp is not None else None,
        "outcome": verdict.outcome if verdict is not None else None,
        "mode": verdict.mode if verdict is not None else None,
        "function": verdict.function if verdict is not None else None,
        "needle": verdict.needle if verdict is not None else None,
    }
