"""What surrounds a search on the command line: help in groups, exit codes, lists, options refused at once."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sparkdiag.cli.app import app
from sparkdiag.cli.exit_codes import exit_code_of_bisection
from sparkdiag.errors import ExitCode, UsageError
from sparkdiag.evidence.bisection import Bisection, Commit
from sparkdiag.recording.bisection import BisectionFolder

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def test_the_help_shows_options_in_groups_each_option_once() -> None:
    shown = CliRunner().invoke(app, ["bisect", "--help"], terminal_width=80).stdout
    headings = [line for line in shown.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert headings == [
        "What is searched:",
        "What counts as a trial's answer:",
        "The search itself:",
        "How each trial is run:",
        "Options:",
    ]
    options = [line.split()[0] for line in shown.splitlines() if line.startswith("  --")]
    assert len(options) == len(set(options))
    assert {"--good", "--looks-for", "--resume", "--dcp", "--json"} <= set(options)


def test_found_is_done_and_anything_less_is_inconclusive() -> None:
    assert exit_code_of_bisection(Bisection(outcome="found")) is ExitCode.DONE
    assert exit_code_of_bisection(Bisection(outcome="candidates")) is ExitCode.INCONCLUSIVE
    assert exit_code_of_bisection(Bisection(outcome="inconclusive")) is ExitCode.INCONCLUSIVE


@pytest.mark.parametrize(
    "options",
    [("--axis", "dcp=1,2", "--good", "a"), ("--confidence", "0.3"), ("--repeat", "0"), ("--folder", "x"), ("x",)],
)
def test_a_contradiction_is_refused_before_anything_is_looked_at(options: tuple[str, ...], tmp_path: Path) -> None:
    refused = CliRunner().invoke(app, ["bisect", "--out", str(tmp_path / "runs"), *options])
    assert isinstance(refused.exception, UsageError)
    assert refused.exception.remedy
    assert not (tmp_path / "runs").exists()


def searched(runs: Path) -> BisectionFolder:
    folder = BisectionFolder.create(runs, scenario_name="lab", dcp=2, now=NOW)
    folder.journal.write_text('{"event":"begun","schema":1}\n{"event":"ended","at":"","outcome":"found"}\n')
    folder.write_document(
        Bisection(outcome="found", scenario="lab", dcp=2, commits=(Commit(sha="a" * 40, subject="\x1b[2J@b"),))
    )
    return folder


def test_runs_list_and_report_know_a_bisection(tmp_path: Path) -> None:
    folder = searched(tmp_path)
    listed = CliRunner().invoke(app, ["runs", "list", "--out", str(tmp_path)])
    assert listed.stdout.startswith("bisect: found, 0 trials")
    page = CliRunner().invoke(app, ["report", str(folder.path)]).stdout
    assert page.startswith("## sparkdiag bisect: `aaaaaaaaaa` (found)")
    assert "\x1b" not in page and "`\\x1b[2J@b`" in page
    assert '"subject": "\\u001b[2J@b"' in CliRunner().invoke(app, ["report", str(folder.path), "--json"]).stdout
