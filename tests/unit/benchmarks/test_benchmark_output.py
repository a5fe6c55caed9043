"""What a benchmark prints, and which options it takes."""

import json

import pytest

from benchmarks import __main__ as command
from benchmarks import machine
from benchmarks.asked import Asked, Benchmark, Findings
from benchmarks.machine import Load
from benchmarks.paired import Pair, compare
from benchmarks.shown import Result, as_json, as_text
from sparkdiag.errors import BusyError

QUIET = Load(cores=2, busy_share=0.01, load_average=0.1)
BUSY = Load(cores=2, busy_share=0.9, load_average=7.0)
SEVEN: list[Pair] = [(8.0 + place / 100, 8.1 + place / 50) for place in range(7)]


def result(pairs: list[Pair], *, unit: str = "s", goal: float | None = 1.01) -> Result:
    compared = compare(pairs, measured="default", reference="nobody", unit=unit, goal=goal, note="on two cores")
    return Result(name="prefill", question="who slows it", load=QUIET, comparisons=(compared,), notes=("a remark",))


def test_the_text_names_both_sides_the_ratio_its_interval_and_the_goal() -> None:
    text = as_text(result(SEVEN))
    assert "nobody   median 8.03 s" in text
    assert "default  median 8.16 s" in text
    assert "95% interval" in text and "1.01 or less: missed" in text
    assert "on two cores" in text and "a remark" in text and "2 cores, 1% busy" in text


def test_noise_that_reaches_over_the_goal_is_said_with_its_size() -> None:
    noisy = [(8.0, 7.6), (8.0, 8.5), (8.0, 7.8), (8.0, 8.4), (8.0, 8.0), (8.0, 8.3)]
    assert "not resolved (noise of +-" in as_text(result(noisy))


def test_too_few_pairs_are_said_to_be_too_few() -> None:
    text = as_text(result(SEVEN[:2]))
    assert "no interval: fewer than 5 pairs" in text and "not resolved (fewer than 5 pairs)" in text


def test_milliseconds_are_shown_where_they_are_the_unit_and_seconds_are_stored() -> None:
    shown = result([(0.020, 0.030)] * 5, unit="ms", goal=None)
    assert "median 20 ms" in as_text(shown) and "goal" not in as_text(shown)
    entry = json.loads(as_json(shown))["comparisons"][0]
    assert entry["pairs"][0] == [0.020, 0.030]
    assert entry["medians_s"] == {"measured": 0.030, "reference": 0.020}


def test_the_json_document_carries_schema_load_and_answer() -> None:
    document = json.loads(as_json(result(SEVEN)))
    assert (document["schema"], document["name"], document["load"]["cores"]) == (1, "prefill", 2)
    assert document["comparisons"][0]["answer"] == "missed"


def test_a_busy_machine_is_refused_unless_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "look", lambda: BUSY)
    with pytest.raises(BusyError, match="90% busy"):
        machine.quiet(anyway=False)
    assert machine.quiet(anyway=True) == BUSY


def test_figures_of_a_busy_machine_say_so(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    def measure(_asked: Asked) -> Findings:
        return Findings((), {}, ("its own note",))

    monkeypatch.setattr(command, "quiet", lambda *, anyway: BUSY)
    monkeypatch.setattr(command, "look", lambda: QUIET)
    benchmark = Benchmark(question="?", about_s=1, measure=measure)
    found = command.run("prefill", benchmark, asked=Asked.model_validate({"out": tmp_path}), anyway=True)
    assert found.notes == ("measured on a busy machine: says little", "its own note")
    assert (found.load, found.load_after) == (BUSY, QUIET)


@pytest.mark.parametrize("arguments", [["nope"], ["cli", "--pairs", "0"], ["cli", "--pairs", "x"], []])
def test_wrong_options_are_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command.parser().parse_args(arguments)
    assert ended.value.code == 2
    assert "usage:" in capsys.readouterr().err


def test_pairs_asked_for_win_over_quick(tmp_path: object) -> None:
    asked = Asked.model_validate({"quick": True, "pairs": 7, "out": tmp_path})
    assert asked.pairs_or(25, quick=3) == 7
    assert Asked.model_validate({"quick": True, "out": tmp_path}).pairs_or(25, quick=3) == 3
    assert Asked.model_validate({"out": tmp_path}).pairs_or(25, quick=3) == 25
