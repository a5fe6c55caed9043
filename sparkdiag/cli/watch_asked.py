"""What ``watch`` was asked, done and answered."""

import os
import sys
from pathlib import Path
from shlex import join
from shutil import get_terminal_size
from typing import Any

import typer

from sparkdiag.cli.exit_codes import exit_code_of
from sparkdiag.cli.failures import print_error
from sparkdiag.cli.talk import say
from sparkdiag.errors import ExitCode, SparkdiagError, UsageError
from sparkdiag.evidence.run import RunRecord
from sparkdiag.harmless.documents import redact_argv
from sparkdiag.recording.folder import RunFolder
from sparkdiag.recording.read import read_run
from sparkdiag.reporting.document import document_json
from sparkdiag.reporting.live import LiveView
from sparkdiag.reporting.summary import wrapped
from sparkdiag.reporting.watched import watched_summary
from sparkdiag.reproducing.ending import keep_report, stored_run
from sparkdiag.reproducing.signals import Terminated, sigterm_raises
from sparkdiag.watching.request import NEEDLE_TOKENS, WatchRequest, scenario_for
from sparkdiag.watching.session import watch_server
from sparkdiag.watching.verdict import nothing_bad

LONGEST_S = 30 * 86_400.0
FEWEST_TOKENS, MOST_TOKENS = 64, 10_000_000


def asked(
    *,
    scenario: str | None,
    prompt_tokens: int | None,
    api_key_env: str | None,
    stacks: bool,
    until_stall: bool,
    out: Path,
    **given: Any,
) -> tuple[WatchRequest, str | None]:
    """The request, checked, and the key, apart from it. Raises ``UsageError``."""
    if given["url"] is None and given["pid"] is None:
        raise UsageError(
            "watch needs to know which server: by its address, or by one of its processes",
            remedy="sparkdiag watch --url http://127.0.0.1:8000",
        )
    needle = given["send_needle"]
    only_with_needle = (
        ("--prompt-tokens", prompt_tokens),
        ("--baseline-s", given["baseline_s"]),
        ("--model", given["model"]),
        ("--api-key-env", api_key_env),
    )
    lonely = [name for name, value in only_with_needle if value is not None and not needle]
    if lonely:
        raise UsageError(f"{', '.join(lonely)}: nothing is sent", remedy="add --send-needle, or leave it out")
    if until_stall and needle:
        raise UsageError("--until-stall sends nothing", remedy="leave out --send-needle")
    _check_number("--for-s", given["for_s"], least=1.0, most=LONGEST_S)
    _check_number("--baseline-s", given["baseline_s"], least=0.001, most=LONGEST_S)
    _check_number("--prompt-tokens", prompt_tokens, least=FEWEST_TOKENS, most=MOST_TOKENS)
    request = WatchRequest(
        scenario=scenario_for(scenario),
        prompt_tokens=prompt_tokens or NEEDLE_TOKENS,
        take_stacks=stacks,
        runs_dir=str(out),
        command=("sparkdiag", *sys.argv[1:]),
        **given,
    )
    return request, _api_key(api_key_env)


def _check_number(option: str, value: float | None, *, least: float, most: float) -> None:
    if value is not None and not least <= value <= most:
        raise UsageError(
            f"{option}: found {value:g}; allowed: from {least:g} to {most:g}", remedy=f"{option} {least:g}"
        )


def _api_key(name: str | None) -> str | None:
    if name is None:
        return None
    value = os.environ.get(name, "").strip()
    if not value:
        # Not named: somebody may have put the key itself there.
        raise UsageError(
            "there is no variable of that name (--api-key-env), or it is empty",
            remedy="name the variable, not the key: read -rs KEY && export KEY; sparkdiag watch … --api-key-env KEY",
        )
    return value


def run_watch(request: WatchRequest, *, api_key: str | None, as_json: bool) -> ExitCode:
    """Watch, and answer; a run that is cut short answers with what it had."""
    folders: list[Path] = []
    code: ExitCode | None = None
    try:
        with sigterm_raises(), LiveView(plain=as_json) as view:
            folder, record = watch_server(request, view=view, api_key=api_key, on_folder=folders.append)
    except (KeyboardInterrupt, Terminated) as stop:
        code = ExitCode.INTERRUPTED if isinstance(stop, KeyboardInterrupt) else ExitCode.TERMINATED
        again = join(redact_argv(request.command))
        if not folders:
            say(f"interrupted before anything was looked at. Again: {again}")
            if as_json:
                print_error(SparkdiagError("interrupted", remedy=again), exit_code=code)
            return code
        say(f"interrupted; the server was left as it is. Again: {again}")
        folder, record = RunFolder(folders[0]), None
    _answer(folder, record, as_json=as_json)
    return code if code is not None else _exit_code(record)


def _exit_code(record: RunRecord | None) -> ExitCode:
    if record is None:
        return ExitCode.INCONCLUSIVE
    code = exit_code_of(record.verdict)
    sent = record.timings_s.prompt_to_verdict_s is not None
    well = record.diagnosis is not None and nothing_bad(record.diagnosis)
    return ExitCode.DONE if code is ExitCode.INCONCLUSIVE and well and not sent else code


def _answer(folder: RunFolder, record: RunRecord | None, *, as_json: bool) -> None:
    """Write ``report.md`` beside the evidence and print the summary, or the one JSON document."""
    stored = read_run(folder.path) if record is None else stored_run(folder, record)
    report, lost = keep_report(folder, stored)
    if as_json:
        typer.echo(document_json(stored))
    else:
        text = watched_summary(stored, report=report)
        typer.echo(wrapped(text, columns=get_terminal_size().columns - 1) if sys.stdout.isatty() else text)
    if lost:
        say(f"not everything could be written to {folder.path}: {'; '.join(lost)}")
