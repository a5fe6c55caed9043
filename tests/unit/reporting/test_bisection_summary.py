"""The terminal's end of a bisection, its document, and the screen while it goes on."""

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from sparkdiag.evidence.bisection import Bisection
from sparkdiag.reporting.bisection_document import bisection_document, bisection_json
from sparkdiag.reporting.bisection_summary import bisection_summary, trial_table
from sparkdiag.reporting.live_bisection import LiveBisection
from tests.unit.reporting.sample_bisections import CANDIDATES, EVERY, FOUND, SAME, SHAS, poisoned


def shown(found: Bisection, columns: int | None = 80) -> list[str]:
    return bisection_summary(
        found, columns=columns, report="runs/x/report.md", next_="sparkdiag report runs/x"
    ).splitlines()


@pytest.mark.parametrize("name", list(EVERY))
def test_it_fits_eighty_columns(name: str) -> None:
    assert all(len(line) <= 80 for line in shown(EVERY[name])), shown(EVERY[name])


def test_the_answer_comes_first_and_the_report_and_next_command_last() -> None:
    lines = shown(FOUND, None)
    assert lines[0].startswith(
        "found, a regression: The stall torch-fallback in _fp8_mqa_logits_torch (worker) begins at "
    )
    assert f'{SHAS[3][:10]} "change number 3 (#4003)" (2026-05-13, pull request 4003)' in lines[0]
    assert lines[-2:] == ["report:      runs/x/report.md", "next:        sparkdiag report runs/x"]
    assert "because:     both ends have it (stall); next: a wider range, or another --dcp" in shown(SAME, None)
    assert [line for line in shown(CANDIDATES, None) if line.startswith(f"  {SHAS[2][:10]} ")]


@given(st.text(max_size=60))
def test_no_text_steers_the_terminal_or_adds_a_line(text: str) -> None:
    hostile = poisoned(f"{text}\x1b[2J\r\n\u202e")
    lines = shown(hostile)
    assert all(line.isprintable() for line in lines)
    assert len(trial_table(hostile, hostile.trials, columns=80)) == 1 + len(hostile.trials)
    assert all(len(line) <= 80 for line in trial_table(hostile, hostile.trials, columns=80))


@given(st.text(max_size=60))
def test_the_document_is_ascii_and_holds_what_programs_ask(text: str) -> None:
    made = bisection_json(poisoned(text), run_dir=text)
    assert made.isascii()
    assert json.loads(made)["commits"][0]["subject"] == text


def test_the_documents_keys_stay() -> None:
    made = bisection_document(FOUND, run_dir="runs/x")
    assert made["schema"] == 1
    assert {"outcome", "direction", "commits", "trials", "reason", "notes", "command", "run_dir"} <= set(made)
    assert made["commits"][0] == {
        "sha": SHAS[3],
        "subject": "change number 3 (#4003)",
        "committed_at": "2026-05-13T08:00:00+00:00",
        "pull_request": 4003,
    }
    assert made["trials"][6]["reused_from"] == SHAS[3]
    assert made["trials"][7] | {"outcome": "not-started", "reason": "ImportError: no topk"} == made["trials"][7]


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def screen(*, terminal: bool) -> tuple[LiveBisection, io.StringIO, Clock]:
    out, clock = io.StringIO(), Clock()
    console = Console(file=out, width=80, height=30, force_terminal=terminal, _environ={"TERM": "xterm"})
    return LiveBisection(console, axis="commits", clock=clock), out, clock


def test_without_a_terminal_each_trial_is_a_line_when_it_begins_and_when_it_ends() -> None:
    view, out, _ = screen(terminal=False)
    with view:
        view.update(FOUND.model_copy(update={"trials": ()}))
        view.trial_begins(SHAS[0], subject="begin\x1b[2J", purpose="end", minutes_left=12.2)
        view.trial.phase("loading", "a model")
        view.update(FOUND.model_copy(update={"trials": FOUND.trials[:1]}))
        view.trial_begins(SHAS[5], subject="", purpose="control", minutes_left=None)
        view.update(FOUND.model_copy(update={"trials": FOUND.trials[:2]}))
    lines = out.getvalue().splitlines()
    assert view.table_lost() == []
    assert lines[0] == f'trial 1 (end): {SHAS[0][:10]} "begin\\x1b[2J", about 12 minutes left'
    assert lines[1].endswith("loading: a model")
    assert lines[2].split()[:4] == [SHAS[0][:10], "end", "completed,", "retrieved"]
    assert lines[3] == f"trial 2 (control, not sampled): {SHAS[5][:10]}"
    assert len(lines) == 5


def test_on_a_terminal_the_table_stands_over_the_running_trial_and_phases_do_not_scroll() -> None:
    view, _out, clock = screen(terminal=True)
    with view:
        view.update(FOUND)
        view.trial_begins(SHAS[0], subject="begin", purpose="confirm", minutes_left=12.2)
        view.trial.phase("loading")
        clock.now_s = 330.0
        drawn = view.trial._render().plain.splitlines()
    assert drawn[0].split() == ["point", "why", "verdict", "side", "min", "evidence"]
    assert len(drawn) == 1 + len(FOUND.trials) + 2
    assert drawn[-2] == f'trial 9 (confirm): {SHAS[0][:10]} "begin", about 7 minutes left'
    assert drawn[-1].startswith("phase     loading, 330 s")
    assert all(len(line) < 80 for line in drawn)
    assert view.table_lost() == drawn[: 1 + len(FOUND.trials)]
    clock.now_s = 3000.0
    assert "about a minute left" in view.trial._render().plain
