import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from sparkdiag.evidence.observation import Observation
from sparkdiag.evidence.verdict import Verdict
from sparkdiag.reporting.live import LiveView
from sparkdiag.reporting.view_state import Task, ViewLine, ViewState, one_line, view_lines
from tests.unit.reporting.sample_runs import CRAWLING, CRAWLING_VERDICT, SUSPECT

STATE = ViewState(phase="observing", phase_began_s=60, observation=CRAWLING.observation, verdict=CRAWLING_VERDICT)


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def lines_of(state: ViewState) -> dict[str, str]:
    return {line.label: line.text for line in view_lines(state, now_s=80)}


def screen(*, width: int = 80, terminal: bool = False, plain: bool = False) -> tuple[LiveView, io.StringIO, Clock]:
    out, clock = io.StringIO(), Clock()
    console = Console(file=out, width=width, force_terminal=terminal, _environ={"TERM": "xterm"})
    return LiveView(console, plain=plain, clock=clock), out, clock


def test_it_shows_phase_prompt_kv_ranks_forecast_and_verdict() -> None:
    shown = lines_of(STATE)
    assert shown["phase"] == "observing, 20 s (run 80 s)"
    assert shown["prompt"] == "20000 tokens sent 22 s ago, the server counts 0"
    assert shown["KV cache"] == "50.0% used"
    assert shown["TP0_DCP0"] == f"{SUSPECT} 95% · call 3 of layer 1: head 2/4, key 1024/6000"
    assert shown["forecast"].startswith("first token after 240 s")
    assert shown["healthy"] == "8.2 s (fast-kernel)"
    assert shown["verdict"] == f"stalled (crawling) in {SUSPECT}"


def test_before_there_is_a_verdict_the_ranks_show_their_innermost_frame() -> None:
    shown = lines_of(STATE.model_copy(update={"verdict": None}))
    assert shown["TP1_DCP1"] == SUSPECT
    assert "verdict" not in shown
    empty = ViewState(phase="loading", observation=Observation(now_s=1, processes=CRAWLING.observation.processes))
    assert lines_of(empty)["TP0_DCP0"] == "not sampled yet"


def test_an_open_verdict_says_why() -> None:
    verdict = Verdict(outcome="inconclusive", reason="too early")
    assert lines_of(ViewState(verdict=verdict))["verdict"] == "none yet: too early"


@pytest.mark.parametrize("columns", [10, 40, 80])
def test_every_line_fits(columns: int) -> None:
    for line in view_lines(STATE, now_s=80):
        fitted = line.fitted(columns)
        assert 1 <= len(fitted) <= 2
        assert all(len(text) <= columns for text in fitted)


def test_a_narrow_line_goes_on_below_its_text_and_no_further() -> None:
    line = ViewLine(label="verdict", text="stalled (crawling) in _fp8_mqa_logits_torch")
    assert line.fitted(40) == ("verdict   stalled (crawling) in", "          _fp8_mqa_logits_torch")
    assert ViewLine(label="x", text="word " * 30).fitted(30)[1].endswith("…")
    assert ViewLine(label="verdict", text="abcdef").fitted(8) == ("verdict…",)


@given(st.text(), st.integers(min_value=1, max_value=200))
def test_no_text_from_a_process_steers_the_terminal(text: str, columns: int) -> None:
    hostile = f"{text}\x1b[2J\n\r[bold]\u202e"
    ranks = tuple(rank.model_copy(update={"top_function": hostile, "name": hostile}) for rank in CRAWLING_VERDICT.ranks)
    verdict = CRAWLING_VERDICT.model_copy(update={"function": hostile, "ranks": ranks})
    state = STATE.model_copy(update={"verdict": verdict, "detail": hostile})
    shown = [text for line in view_lines(state, now_s=80) for text in line.fitted(columns)] + [
        one_line(state, now_s=80)
    ]
    for line in shown:
        assert not {"\x1b", "\n", "\r", "\u202e"} & set(line)


def test_progress_names_unit_share_and_time_left() -> None:
    task = Task(name="torch", total=230e6, unit="bytes", at=115e6, began_s=10)
    assert task.text(20) == "torch: 115/230 MB, about 10 s left"
    assert Task(name="lock").text(3) == "lock"
    texts = [line.text for line in view_lines(ViewState(task=task), now_s=20)]
    assert any(text.endswith(" 50%") for text in texts)


def test_plain_lines_come_at_each_phase_and_seldom_between() -> None:
    view, out, clock = screen()
    with view:
        view.phase("observing")
        for _ in range(20):
            clock.now_s += 1
            view.update(CRAWLING.observation, CRAWLING_VERDICT)
        view.phase("stopping", "the server")
    lines = out.getvalue().splitlines()
    assert lines[0] == "   0.0 s  observing"
    assert lines[-1] == "  20.0 s  stopping: the server"
    assert 3 <= len(lines) - 2 <= 5
    assert all(SUSPECT in line and "stalled (crawling)" in line for line in lines[1:-1])


def test_the_clock_of_a_phase_runs_on_while_its_detail_changes() -> None:
    view, _, clock = screen()
    view.phase("loading", "5 s: importing vLLM")
    clock.now_s += 20
    view.phase("loading", "25 s: loading weights")
    clock.now_s += 5
    assert (view.state.detail, view.now_s() - view.state.phase_began_s) == ("25 s: loading weights", 25)
    view.phase("ready")
    assert view.now_s() - view.state.phase_began_s == 0


def test_markup_in_notes_is_shown_as_it_is() -> None:
    view, out, _ = screen()
    view.note("a [bold]b[/bold] [/nothing] \x1b[31mc :smile:")
    assert out.getvalue() == "a [bold]b[/bold] [/nothing] \\x1b[31mc :smile:\n"


def test_a_live_terminal_keeps_notes_and_takes_the_view_away() -> None:
    view, out, _ = screen(terminal=True)
    with view:
        view.phase("observing")
        view.update(CRAWLING.observation, CRAWLING_VERDICT)
        view.note("kept")
    text = out.getvalue()
    assert "kept" in text
    assert "\x1b[" in text


def test_json_asks_for_plain_lines_also_on_a_terminal() -> None:
    view, out, _ = screen(terminal=True, plain=True)
    with view:
        view.phase("observing")
    assert out.getvalue() == "   0.0 s  observing\n"


@pytest.mark.parametrize("terminal", [True, False])
def test_long_work_is_shown_and_its_end_stays(terminal: bool) -> None:
    view, out, clock = screen(terminal=terminal)
    with view:
        sink = view.progress_sink()
        sink.start("installing", total=10, unit="packages")
        clock.now_s += 6
        sink.advance(5)
        assert view.state.task is not None
        sink.finish("10 packages")
        sink.say("said")
        sink.advance(3)
    assert view.state.task is None
    assert "installing: 10 packages (6.0 s)" in out.getvalue()
    assert "said" in out.getvalue()
    if not terminal:
        assert "installing: 5/10 packages, about 6 s left" in out.getvalue()


def test_no_color_is_respected() -> None:
    out = io.StringIO()
    console = Console(file=out, width=80, force_terminal=True, _environ={"NO_COLOR": "1", "TERM": "xterm-256color"})
    with LiveView(console) as view:
        view.update(CRAWLING.observation, CRAWLING_VERDICT)
    assert "\x1b[31m" not in out.getvalue()
    assert "\x1b[1;31m" not in out.getvalue()
    assert "stalled (crawling)" in out.getvalue()


def test_a_view_that_ends_by_an_error_gives_the_terminal_back() -> None:
    view, out, _ = screen(terminal=True)
    with pytest.raises(KeyError), view:
        raise KeyError("x")
    assert out.getvalue().rstrip().endswith("\x1b[?25h") or "\x1b[?25h" in out.getvalue()
