"""What ``triage`` was asked, read and answered."""

import math
import sys
from pathlib import Path
from shlex import quote
from typing import Literal

import typer

from sparkdiag.cli.route_shown import columns
from sparkdiag.cli.talk import say
from sparkdiag.diagnosing.diagnose import compare, diagnose_pasted
from sparkdiag.diagnosing.order import Order, at_moments, order_of_texts
from sparkdiag.dumps.read import read_dumps
from sparkdiag.errors import ExitCode, UsageError
from sparkdiag.evidence.diagnosis import Diagnosis
from sparkdiag.evidence.dump import Pasted
from sparkdiag.reporting.route_document import document_text
from sparkdiag.reporting.triage import triage_text
from sparkdiag.reporting.triage_document import triage_document
from sparkdiag.reporting.triage_markdown import render_triage

STANDARD_INPUT = "-"
LARGEST_BYTES = 64 << 20
"""Of one file; more is no paste."""
Asked = Literal["auto"] | Order


def order_of(files: list[str], *, compare: bool, over_time: bool, together: bool) -> Asked:
    """Raises ``UsageError`` where the options contradict each other or the files."""
    given: dict[Order, bool] = {"compare": compare, "over-time": over_time, "together": together}
    chosen = [name for name, asked in given.items() if asked]
    if len(chosen) > 1:
        raise UsageError(f"--{chosen[0]} and --{chosen[1]} exclude each other", remedy="sparkdiag triage --help")
    if compare and len(files) != 2:
        raise UsageError(
            f"--compare takes two files, good and bad; {len(files)} given", remedy="sparkdiag triage --help"
        )
    if files.count(STANDARD_INPUT) > 1:
        raise UsageError("standard input (-) can be read once only", remedy="give files")
    if "" in files:
        raise UsageError("the name of a file is empty", remedy="sparkdiag triage --help")
    if twice := _twice(files):
        raise UsageError(
            f"{twice} is given twice: a look at a look is no second one", remedy="take a second dump, and give both"
        )
    return chosen[0] if chosen else "auto"


def _twice(files: list[str]) -> str | None:
    """A file that is named twice, by whatever path."""
    seen: set[tuple[int, int] | Path] = set()
    for name in files:
        path = Path(name)
        status = path.stat() if path.exists() else None
        key = path if status is None else (status.st_dev, status.st_ino)
        if name != STANDARD_INPUT and key in seen and not path.is_char_device():
            return name
        seen.add(key)
    return None


def answer(files: list[str], *, order: Asked, apart_s: float | None, form: str, as_json: bool) -> ExitCode:
    """Read, diagnose, print. Raises ``UsageError`` for a file that cannot be read."""
    if apart_s is not None and not math.isfinite(apart_s):
        raise UsageError(f"--apart-s {apart_s} is no number of seconds", remedy="sparkdiag triage --apart-s 30 A B")
    texts = [_pasted(name) for name in files]
    taken: Order = order_of_texts(texts) if order == "auto" else order
    if order == "auto" and len(texts) > 1:
        say(_told(taken))
    if taken == "over-time":
        texts = at_moments(texts, apart_s=apart_s)
    if taken == "over-time" and any(one.looks and one.looks == texts[0].looks for one in texts[1:]):
        say("two of these files hold the same to the letter: a copy of a dump would look so, too")
    found = compare(texts[:1], texts[1:]) if taken == "compare" else diagnose_pasted(texts, later=taken == "over-time")
    if as_json:
        typer.echo(document_text(triage_document(found)))
    elif form == "md":
        typer.echo(render_triage(found), nl=False)
    else:
        typer.echo(triage_text(found, columns=columns()))
    return exit_code_of(found)


def exit_code_of(found: Diagnosis) -> ExitCode:
    """README, "Exit codes"."""
    match found.finding:
        case "stalled":
            return ExitCode.STALL
        case "healthy" | "moving":
            return ExitCode.DONE
        case "unknown":
            return ExitCode.INCONCLUSIVE


def _told(order: Order) -> str:
    match order:
        case "compare":
            return "taken as a good server and a bad one (the same ranks, other pids); else: --over-time or --together"
        case "over-time":
            return "taken as looks at the same processes over time (pids in common); else: --together or --compare"
        case "together":
            return "taken as processes of one server; else: --over-time or --compare"


def _pasted(name: str) -> Pasted:
    if name == STANDARD_INPUT:
        if sys.stdin.isatty():
            say("reading stacks from the terminal; end with Ctrl-D")
        return read_dumps(_text(sys.stdin.buffer.read(LARGEST_BYTES + 1), "standard input"), source="standard input")
    return read_dumps(_text(_content(Path(name)), name), source=name)


def _content(path: Path) -> bytes:
    try:
        if path.is_fifo():
            say(f"reading {path}, a pipe: it ends when its writer does")
        with path.open("rb") as file:  # a pipe of the shell's, as in <(py-spy dump ...), is waited for
            return file.read(LARGEST_BYTES + 1)
    except IsADirectoryError as error:
        remedy = f"sparkdiag report {quote(str(path))}    # where it is a run's"
        raise UsageError(f"{path} is a folder", remedy=remedy) from error
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror or error}", remedy="sparkdiag triage --help"
        ) from error


def _text(content: bytes, name: str) -> str:
    if len(content) > LARGEST_BYTES:
        raise UsageError(
            f"{name} is larger than {LARGEST_BYTES >> 20} MiB, no paste is", remedy="give the part with the stacks"
        )
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16", errors="replace")  # what a PowerShell redirect writes
    return content.decode("utf-8-sig", errors="replace")
