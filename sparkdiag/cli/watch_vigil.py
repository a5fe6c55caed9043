"""``watch --until-stall``: hours of waiting told in a few lines, and what was kept."""

import json
from dataclasses import asdict
from typing import Any

import typer

from sparkdiag.cli.talk import say
from sparkdiag.errors import ExitCode
from sparkdiag.evidence.base import SCHEMA
from sparkdiag.harmless.excerpt import one_line
from sparkdiag.reproducing.signals import sigterm_raises
from sparkdiag.watching.request import WatchRequest
from sparkdiag.watching.until_stall import watch_until_stall
from sparkdiag.watching.vigil_seams import VigilEvent, VigilSummary


def run_vigil(request: WatchRequest, *, as_json: bool) -> ExitCode:
    """Keep watch until Ctrl-C, SIGTERM or the end of ``--for-s``; tell what was kept."""
    with sigterm_raises():
        summary = watch_until_stall(request, tell=_tell)
    if as_json:
        typer.echo(json.dumps(_document(summary), indent=2))
    else:
        for line in _lines(summary):
            typer.echo(one_line(line, limit=500))
    return _exit_code(summary)


def _tell(event: VigilEvent) -> None:
    where = f" -> {event.run_dir}" if event.run_dir is not None else ""
    say(f"{event.t_s:8.0f} s  {event.kind}: {event.text}{where}")


def _exit_code(summary: VigilSummary) -> ExitCode:
    if summary.ended == "interrupted":
        return ExitCode.INTERRUPTED
    if summary.ended == "terminated":
        return ExitCode.TERMINATED
    labels = {capture.label for capture in summary.captures}
    if "stalled" in labels:
        return ExitCode.STALL
    return ExitCode.INCONCLUSIVE if labels or summary.not_kept else ExitCode.DONE


def _document(summary: VigilSummary) -> dict[str, Any]:
    made = asdict(summary)
    for capture in made["captures"]:
        capture["run_dir"] = str(capture.pop("path"))
    return {"schema": SCHEMA, **made}


def _lines(summary: VigilSummary) -> list[str]:
    hours = f"{summary.watched_s / 3600:.1f} h" if summary.watched_s >= 3600 else f"{summary.watched_s:.0f} s"
    lines = [
        f"watched for {hours}: {len(summary.captures)} kept, {summary.looks} closer looks "
        f"({summary.looks_cpu_s:.1f} s of CPU time)"
    ]
    lines += [f"{one.label} at {one.found_s:.0f} s: {one.because}" for one in summary.captures]
    lines += [f"report:   sparkdiag report {one.path}" for one in summary.captures]
    return lines
