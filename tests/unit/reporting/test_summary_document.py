import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.evidence.verdict import Forecast
from sparkdiag.reporting.document import document, document_json
from sparkdiag.reporting.phrases import size
from sparkdiag.reporting.summary import summary, wrapped
from tests.unit.reporting.sample_runs import COMPLETED, CRAWLING, EVERY, FAILED, SHA, SUSPECT


def test_the_document_holds_the_promised_keys() -> None:
    made = document(CRAWLING)
    assert {"outcome", "mode", "kind", "function", "baseline", "for", "against"} <= made["verdict"].keys()
    assert made["verdict"]["outcome"] == "stalled"
    assert made["verdict"]["function"] == SUSPECT
    assert made["verdict"]["for"][0]["source"] == "stacks"
    assert made["needle"] is None
    assert made["dcp_world_size"] == 2
    assert made["revision"].items() >= {"sha": SHA, "proved": True, "contains_suspect_commit": "yes"}.items()
    assert made["timings_s"].items() >= {"ready": 57.2, "prompt_to_verdict": 21.5}.items()
    assert made["run_dir"] == CRAWLING.run_dir
    assert made["schema"] == 1


@pytest.mark.parametrize("name", list(EVERY))
def test_every_run_has_one_document_with_the_same_keys(name: str) -> None:
    made = json.loads(document_json(EVERY[name]))
    assert made.keys() == document(CRAWLING).keys()


def test_a_run_without_a_verdict_says_so() -> None:
    made = document(FAILED)
    assert made["verdict"] is None
    assert made["dcp_world_size"] is None
    assert made["error"] == "the server never became ready"


def test_completed_names_the_needle() -> None:
    made = document(COMPLETED)
    assert made["needle"] == "retrieved"
    assert made["finish_reason"] == "stop"


def test_infinite_forecasts_do_not_break_json() -> None:
    verdict = CRAWLING.record.verdict
    assert verdict is not None
    endless = Forecast(low_s=1, best_s=float("inf"), high_s=float("nan"), fraction_done=0, source="loop-variables")
    record = CRAWLING.record.model_copy(update={"verdict": verdict.model_copy(update={"forecasts": (endless,)})})
    made = json.loads(document_json(CRAWLING.model_copy(update={"record": record})))
    assert made["verdict"]["forecasts"][0]["best_s"] is None


def test_a_verdict_of_today_is_added() -> None:
    made = document(CRAWLING, judged_again=COMPLETED)
    assert made["verdict"]["outcome"] == "stalled"
    assert made["judged_again"]["outcome"] == "completed"


def test_the_summary_says_what_where_and_what_next() -> None:
    lines = summary(CRAWLING).splitlines()
    assert lines[0] == f"stalled (crawling) in {SUSPECT}"
    assert any(line.startswith("DCP:      2 (worker titles") for line in lines)
    assert any(SHA in line and "f8f18ce66b: yes" in line for line in lines)
    assert lines[-2] == f"report:   {CRAWLING.run_dir}"
    assert lines[-1].startswith("next:     sparkdiag repro --dcp 1")
    assert len(lines) <= 14


@pytest.mark.parametrize("name", list(EVERY))
def test_every_summary_ends_with_the_next_command(name: str) -> None:
    assert summary(EVERY[name]).splitlines()[-1].startswith("next:     ")


@given(st.text())
def test_the_summary_cannot_steer_a_terminal(text: str) -> None:
    record = FAILED.record.model_copy(update={"error": text + "\x1b]0;x\x07\r\u202e"})
    shown = summary(FAILED.model_copy(update={"record": record, "problems": (text,)}))
    assert not {"\x1b", "\r", "\x07", "\u202e"} & set(shown)
    assert len(shown.splitlines()) == len(summary(FAILED).splitlines()) + 1


@pytest.mark.parametrize(
    ("command", "control"),
    [
        ("sparkdiag repro", "sparkdiag repro --dcp 1"),
        ("sparkdiag repro --dcp 2 --json", "sparkdiag repro --dcp 1"),
        (
            "sparkdiag repro --dcp=4 --tp 4 --env existing:/v --model m -- --enforce-eager",
            "sparkdiag repro --tp 4 --env existing:/v --model m --dcp 1 -- --enforce-eager",
        ),
        ("python x.py", "sparkdiag repro --dcp 1"),
    ],
)
def test_the_control_is_the_same_command_at_dcp_1(command: str, control: str) -> None:
    record = CRAWLING.record.model_copy(update={"command": tuple(command.split())})
    last = summary(CRAWLING.model_copy(update={"record": record})).splitlines()[-1]
    assert last == f"next:     {control}    # the healthy control"


def test_on_a_terminal_lines_break_between_words_and_hang_under_their_label() -> None:
    text = "The prefill " + "crawls on " * 20 + "\n  for:     " + "a word " * 40 + "\nDCP:      " + "2 " * 60
    lines = wrapped(text, columns=80).split("\n")
    assert all(len(line) <= 80 for line in lines)
    assert lines[1].startswith(("crawls", "on"))
    labelled = next(at for at, line in enumerate(lines) if line.startswith("  for:"))
    assert lines[labelled + 1].startswith(" " * 11 + "a")
    assert lines[-1].startswith(" " * 10 + "2")
    assert wrapped(text, columns=80).split() == text.split()


def test_what_is_to_be_copied_stays_on_one_line() -> None:
    text = f"report:   /a b/{'x' * 120}/report.md\nnext:     sparkdiag repro {'--model x ' * 20}--dcp 1"
    assert wrapped(text, columns=80) == text


@pytest.mark.parametrize(
    ("bytes_", "shown"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (5 * 1024**2, "5.0 MiB"), (3 * 1024**4, "3072.0 GiB")],
)
def test_a_size_is_told_in_the_unit_that_fits(bytes_: int, shown: str) -> None:
    assert size(bytes_) == shown
