"""Files for viewers: what every reader of these formats relies on, and speedscope's own schema where it is at hand."""

import json
import os
from collections import defaultdict
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from sparkdiag.evidence.stacks import Frame, StackSample, ThreadStack
from sparkdiag.evidence.stored import StoredRun
from sparkdiag.recording.read import read_run
from sparkdiag.reporting.viewers.speedscope import speedscope_json
from sparkdiag.reporting.viewers.trace import trace_json
from tests.unit.reporting.sample_runs import CRAWLING, EVERY, SUSPECT

LEDGER = Path(__file__).parents[2] / "recordings" / "h200-ledger" / "slow250"


def speedscope(*runs: StoredRun) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(speedscope_json(*runs))
    return found


def trace(*runs: StoredRun) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(trace_json(*runs))["traceEvents"]
    return found


def sampled(*looks: tuple[float, str], pid: int = 102) -> StoredRun:
    """A run with these looks (start, innermost function) at one worker."""
    samples = tuple(
        StackSample(
            pid=pid,
            started_s=at_s,
            ended_s=at_s + 0.1,
            threads=(
                ThreadStack(
                    thread_name="MainThread",
                    frames=(
                        Frame(function=name, filename="a.py", line=1),
                        Frame(function="main", filename="a.py", line=9),
                    ),
                ),
            ),
        )
        for at_s, name in looks
    )
    observation = CRAWLING.observation.model_copy(update={"samples": samples})
    return CRAWLING.model_copy(update={"observation": observation})


@pytest.mark.parametrize("name", EVERY)
def test_speedscope_profiles_hold_together(name: str) -> None:
    document = speedscope(EVERY[name])
    frames, profiles = document["shared"]["frames"], document["profiles"]
    assert 0 <= document["activeProfileIndex"] < len(profiles)
    for profile in profiles:
        assert len(profile["samples"]) == len(profile["weights"])
        assert all(0 <= index < len(frames) for stack in profile["samples"] for index in stack)
        assert all(weight > 0 for weight in profile["weights"])
        assert sum(profile["weights"]) == pytest.approx(profile["endValue"] - profile["startValue"], abs=1e-5)


def test_speedscope_puts_workers_first_and_opens_at_the_suspect() -> None:
    document = speedscope(CRAWLING)
    names = [profile["name"] for profile in document["profiles"]]
    assert names == ["Worker_TP0_DCP0 (pid 102)", "Worker_TP1_DCP1 (pid 103)", "EngineCore (pid 101)"]
    opened = document["profiles"][document["activeProfileIndex"]]
    innermost = document["shared"]["frames"][opened["samples"][0][-1]]
    assert innermost["name"] == SUSPECT
    assert innermost["file"] == "sparklab/ops.py"


def test_two_runs_are_told_apart() -> None:
    other = EVERY["completed"].model_copy(update={"run_dir": "runs/other"})
    names = [profile["name"] for profile in speedscope(CRAWLING, other)["profiles"]]
    assert len(names) == len(set(names))
    assert any(name.startswith("other: Worker") for name in names)


def test_a_gap_in_which_nobody_looked_stays_a_gap() -> None:
    looks = [(float(second), "f") for second in (60, 61, 62, 63, 90, 91)]
    (profile,) = speedscope(sampled(*looks))["profiles"]
    assert profile["samples"].count([]) == 1
    assert profile["weights"][profile["samples"].index([])] == pytest.approx(23.0)
    slices = [one for one in trace(sampled(*looks)) if one["ph"] == "X" and one["name"] == "main"]
    assert [(one["ts"], one["dur"]) for one in slices] == [(60_000_000, 7_000_000), (90_000_000, 2_000_000)]


def test_frames_that_stay_are_one_slice() -> None:
    events = trace(sampled((60, "f"), (61, "f"), (62, "g")))
    threads = {one["tid"]: one["args"]["name"] for one in events if one["name"] == "thread_name"}
    slices = [one for one in events if one["ph"] == "X" and threads[one["tid"]] == "stacks"]
    assert [(one["name"], one["ts"], one["dur"], one["args"]["looks"]) for one in slices] == [
        ("main", 60_000_000, 3_000_000, 3),
        ("f", 60_000_000, 2_000_000, 2),
        ("g", 62_000_000, 1_000_000, 1),
    ]


def in_order(events: list[dict[str, Any]]) -> None:
    """What a viewer drops or draws wrongly: unsorted, across each other, without a length, unnamed."""
    named = {(one["pid"], one["tid"]) for one in events if one["name"] == "thread_name"}
    processes = {one["pid"] for one in events if one["name"] == "process_name"}
    timed = [one for one in events if one["ph"] != "M"]
    assert [one["ts"] for one in timed] == sorted(one["ts"] for one in timed)
    assert {one["ph"] for one in events} <= {"M", "X", "C", "i"}
    around: dict[tuple[int, int], list[int]] = defaultdict(list)
    for one in timed:
        assert isinstance(one["ts"], int)
        assert one["ts"] >= 0
        assert one["pid"] in processes
        if one["ph"] == "X":
            where = (one["pid"], one["tid"])
            assert where in named
            assert one["dur"] > 0
            ends = around[where]
            while ends and ends[-1] <= one["ts"]:
                ends.pop()
            assert not ends or one["ts"] + one["dur"] <= ends[-1], "slices lie across each other"
            ends.append(one["ts"] + one["dur"])
        if one["ph"] == "C":
            assert all(isinstance(value, (int, float)) for value in one["args"].values())


@pytest.mark.parametrize("name", EVERY)
def test_trace_events_are_in_order(name: str) -> None:
    in_order(trace(EVERY[name]))


def test_a_run_with_a_ledger_shows_its_calls_counters_and_verdict() -> None:
    events = trace(read_run(LEDGER))
    in_order(events)
    names = {one["name"] for one in events}
    assert {"KV cache use", "GPU 0 power", "requests running", "prompt sent", "prefill by its loops"} <= names
    assert any(name.startswith("verdict: stalled (crawling)") for name in names)
    threads = {one["tid"]: one["args"]["name"] for one in events if one["name"] == "thread_name"}
    calls = [one for one in events if one["ph"] == "X" and threads[one["tid"]] == "dispatch ledger"]
    assert len(calls) > 1000
    assert any("seen" in one["args"] for one in calls)


def test_text_from_outside_stays_text() -> None:
    evil = '"}]</script>\x1b[2J\u202e' + "x" * 5000
    for page in (speedscope_json(sampled((60, evil))), trace_json(sampled((60, evil)))):
        assert page.isascii()
        assert "\\u001b" not in page
        assert len(page) < 50_000


def test_the_schema_of_speedscope_is_kept() -> None:
    """The schema is its authors': dist/release/file-format-schema.json of the npm package ``speedscope``."""
    path = os.environ.get("SPARKDIAG_SPEEDSCOPE_SCHEMA")
    if path is None:
        assert os.environ.get("SPARKDIAG_NEEDS_SPEEDSCOPE") != "1", "SPARKDIAG_SPEEDSCOPE_SCHEMA names no schema"
        pytest.skip("SPARKDIAG_SPEEDSCOPE_SCHEMA names no speedscope schema")
    schema = json.loads(Path(path).read_text(encoding="utf-8"))
    for runs in ((), *((run,) for run in EVERY.values()), (CRAWLING, EVERY["completed"]), (read_run(LEDGER),)):
        jsonschema.validate(speedscope(*runs), schema)
    broken = {**speedscope(CRAWLING), "profiles": [{"type": "sampled"}]}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(broken, schema)
