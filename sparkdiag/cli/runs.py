"""``sparkdiag runs``: the runs on this disk."""

import json
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sparkdiag.errors import ExitCode, UsageError
from sparkdiag.harmless.printable import printable

if TYPE_CHECKING:
    from sparkdiag.recording.listing import ListedRun
    from sparkdiag.recording.prune import Left

KEEP = 20
GIB = 1024**3

app = typer.Typer(help="List and prune run folders.\n\nExample: sparkdiag runs list", no_args_is_help=True)

Runs = Annotated[Path, typer.Option("--out", help="Folder that run folders are made in.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")]


def _checked(out: Path) -> Path:
    """A folder that is not there yet holds no runs; a file never will."""
    if out.exists() and not out.is_dir():
        raise UsageError(f"--out {out} is a file, not a folder of runs", remedy="sparkdiag runs list --out FOLDER")
    return out


@app.command("list", short_help="List the runs, newest first, with state and size.")
def list_(out: Runs = Path("runs"), as_json: AsJson = False) -> None:
    """List the runs, newest first, with state and size; one whose record cannot be read is "damaged", with the reason.

    Example: sparkdiag runs list
    """
    from sparkdiag.recording.listing import listed_runs
    from sparkdiag.reporting.phrases import size

    found = listed_runs(_checked(out))
    total = sum(run.bytes for run in found)
    if as_json:
        document = {"schema": 1, "out": str(out), "exists": out.exists(), "bytes": total}
        typer.echo(json.dumps(document | {"runs": [_entry(run) for run in found]}, indent=2))
        return
    for run in found:
        because = f"  ({run.because})" if run.because else ""
        typer.echo(printable(f"{_what(run):<22} {size(run.bytes):>9} {run.path}{because}"))
    if found:
        damaged = sum(run.state == "damaged" for run in found)
        told = f", {damaged} of them damaged (sparkdiag report RUN shows what is left of one)" if damaged else ""
        typer.echo(printable(f"{len(found)} run(s) in {out}, {size(total)}{told}"), err=True)
    else:
        why = f"no runs in {out}" if out.exists() else f"no runs: there is no folder {out}"
        typer.echo(printable(f"{why}; next: sparkdiag repro --dcp 2"), err=True)


@app.command(short_help="Delete old run folders, never one in use.")
def prune(
    keep: Annotated[
        int | None,
        typer.Option(min=0, help=f"The newest so many stay in any case; {KEEP} where no other limit is given, else 0."),
    ] = None,
    older_than: Annotated[
        float | None, typer.Option(min=0, metavar="DAYS", help="Runs that began longer ago go.")
    ] = None,
    max_gib: Annotated[float | None, typer.Option(min=0, help="The oldest go until the rest fits.")] = None,
    damaged: Annotated[
        bool, typer.Option("--damaged", help="Damaged folders may go too, where it shows that sparkdiag wrote them.")
    ] = False,
    out: Runs = Path("runs"),
    yes: Annotated[bool, typer.Option("--yes", help="Delete; without it only say what would go.")] = False,
    as_json: AsJson = False,
) -> None:
    """Delete old run folders: never one in use, never through a link, never one holding files of somebody else.

    Example: sparkdiag runs prune --older-than 30 --max-gib 5 --yes
    """
    from sparkdiag.recording.listing import listed_runs
    from sparkdiag.recording.prune import DAY_S, Limits, choose

    only_keep = older_than is None and max_gib is None
    limits = Limits(
        keep=keep if keep is not None else KEEP if only_keep else 0,
        older_than_s=older_than * DAY_S if older_than is not None else None,
        max_bytes=int(max_gib * GIB) if max_gib is not None else None,
        damaged=damaged,
    )
    found = listed_runs(_checked(out))
    chosen, left = choose(found, limits, now_s=time.time())
    gone, failed = _deleted(chosen) if yes else (chosen, ())
    if as_json:
        _emit_pruned(gone, (*left, *failed), deleted=yes)
    else:
        _show_pruned(gone, (*left, *failed), deleted=yes)
        if not damaged and any(run.state == "damaged" for run in found):
            typer.echo("damaged folders stay; --damaged takes those that sparkdiag wrote", err=True)
        if chosen and not yes:
            given = {"--keep": keep, "--older-than": older_than, "--max-gib": max_gib}
            options = [word for name, value in given.items() if value is not None for word in (name, f"{value:g}")]
            where = [] if out == Path("runs") else ["--out", str(out)]
            again = ["sparkdiag", "runs", "prune", *options, *(["--damaged"] if damaged else []), *where, "--yes"]
            typer.echo(printable(f"next: {shlex.join(again)}"), err=True)
    if failed:
        raise typer.Exit(int(ExitCode.ENVIRONMENT))


def _deleted(chosen: "tuple[ListedRun, ...]") -> "tuple[tuple[ListedRun, ...], tuple[Left, ...]]":
    """What is gone, and what could not be deleted; one that cannot be does not keep the others."""
    from sparkdiag.recording.prune import Left, delete

    gone, failed = [], []
    for run in chosen:
        try:
            why = delete(run)
        except OSError as error:
            why = f"it cannot be deleted: {error.strerror or error}"
        if why:
            failed.append(Left(run=run, because=why))
        else:
            gone.append(run)
    return tuple(gone), tuple(failed)


def _show_pruned(gone: "tuple[ListedRun, ...]", left: "tuple[Left, ...]", *, deleted: bool) -> None:
    from sparkdiag.reporting.phrases import size

    verb = "deleted" if deleted else "would delete"
    for run in gone:
        typer.echo(printable(f"{verb} {run.path} ({_what(run)}, {size(run.bytes)})"))
    for one in left:
        typer.echo(printable(f"left {one.run.path}: {one.because}"))
    typer.echo(f"{verb} {len(gone)} run(s), {size(sum(run.bytes for run in gone))}", err=True)


def _emit_pruned(gone: "tuple[ListedRun, ...]", left: "tuple[Left, ...]", *, deleted: bool) -> None:
    document = {
        "schema": 1,
        "deleted": deleted,
        "bytes": sum(run.bytes for run in gone),
        "runs": [_entry(run) for run in gone],
        "left": [{"run_dir": one.run.path, "because": one.because} for one in left],
    }
    typer.echo(json.dumps(document, indent=2))


def _what(run: "ListedRun") -> str:
    if run.kind == "bisection":
        return _what_bisection(run)
    verdict = run.record.verdict if run.record is not None else None
    if verdict is None or run.state in ("killed", "damaged"):
        return run.state
    detail = verdict.mode or verdict.needle
    return f"{verdict.outcome} ({detail})" if detail else verdict.outcome


def _what_bisection(run: "ListedRun") -> str:
    found = run.bisection
    if found is None:
        return f"bisect: {run.state}"
    said = found.outcome if run.state == "finished" else run.state
    return f"bisect: {said}, {len(found.trials)} trial" + ("" if len(found.trials) == 1 else "s")


def _entry(run: "ListedRun") -> dict[str, object]:
    if run.kind == "bisection":
        return _bisection_entry(run)
    record = run.record
    verdict = record.verdict if record is not None else None
    return {
        **_folder_entry(run),
        "started_at": record.started_at if record is not None else None,
        "scenario": record.scenario.get("name") if record is not None else None,
        "status": record.status if record is not None else None,
        "dcp_world_size": record.dcp.size if record is not None and record.dcp is not None else None,
        "outcome": verdict.outcome if verdict is not None else None,
        "mode": verdict.mode if verdict is not None else None,
        "function": verdict.function if verdict is not None else None,
        "needle": verdict.needle if verdict is not None else None,
    }


def _folder_entry(run: "ListedRun") -> dict[str, object]:
    """What is told of a run and of a bisection alike."""
    return {
        "run_dir": run.path,
        "kind": run.kind,
        "state": run.state,
        "because": run.because or None,
        "bytes": run.bytes,
    }


def _bisection_entry(run: "ListedRun") -> dict[str, object]:
    found = run.bisection
    return {
        **_folder_entry(run),
        "scenario": found.scenario if found is not None else None,
        "dcp_world_size": found.dcp if found is not None else None,
        "outcome": found.outcome if found is not None else None,
        "direction": found.direction if found is not None else None,
        "commits": [commit.sha for commit in found.commits] if found is not None else [],
        "trials": len(found.trials) if found is not None else 0,
    }
