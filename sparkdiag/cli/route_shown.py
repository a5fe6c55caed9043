"""An answer of ``sparkdiag route`` on stdout: one JSON document, a page, or text for the terminal."""

import sys
from collections.abc import Callable
from shutil import get_terminal_size
from typing import Any

import typer

from sparkdiag.cli.route_asked import Asked
from sparkdiag.errors import ExitCode
from sparkdiag.evidence.route import Truth
from sparkdiag.reporting.route_document import document_text

STALL_CODES: dict[Truth, ExitCode] = {
    "true": ExitCode.STALL,
    "unknown": ExitCode.INCONCLUSIVE,
    "false": ExitCode.DONE,
}
"""Of ``--fail-on-stall``: what may stall is not safe."""


def show(
    asked: Asked, *, document: Callable[[], dict[str, Any]], page: Callable[[], str], text: Callable[[], str]
) -> None:
    """Print one of the three; only that one is made."""
    if asked.as_json:
        typer.echo(document_text(document()))
    elif asked.form == "md":
        typer.echo(page(), nl=False)
    else:
        typer.echo(text())


def columns() -> int | None:
    """Of the terminal; None where the answer goes into a pipe or a file."""
    return get_terminal_size().columns - 1 if sys.stdout.isatty() else None
