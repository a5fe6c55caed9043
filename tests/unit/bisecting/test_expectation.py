"""What a trial is expected to take, and the healthy time it is judged by."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.bisecting.search.findings import CLEARLY_SLOW, finding
from sparkdiag.bisecting.trials import expectation
from sparkdiag.bisecting.trials.expectation import (
    LAB_TRIAL_MINUTES,
    OTHER_TRIAL_MINUTES,
    READY_MINUTES,
    cached_releases,
    environment_minutes,
    run_minutes,
)
from sparkdiag.bisecting.trials.runner import healthy_baseline, times_healthy
from sparkdiag.evidence.bisection import Target, TrialResult
from sparkdiag.evidence.run import Timings


def test_what_is_there_costs_less_than_what_must_be_made() -> None:
    specs = ("lab", "overlay:abc@release:0.32.0", "release:0.31.0", "precompiled:abc", "source:abc")
    costs = [environment_minutes(spec, releases=frozenset()) for spec in specs]
    assert costs == sorted(costs)
    assert environment_minutes("release:0.31.0", releases=frozenset({"0.31.0"})) == READY_MINUTES
    assert environment_minutes("existing:/x/python", releases=frozenset()) == 0


def test_before_any_trial_ended_an_assumption_stands_and_then_what_was_seen() -> None:
    assert run_minutes([], lab=True) == LAB_TRIAL_MINUTES
    assert run_minutes([Timings(environment_s=3.0, total_s=None)], lab=False) == OTHER_TRIAL_MINUTES
    seen = [Timings(environment_s=60.0, total_s=180.0), Timings(total_s=60.0), Timings(environment_s=1, total_s=601.0)]
    assert run_minutes(seen, lab=True) == 2.0


@given(st.lists(st.tuples(st.floats(0, 1e5), st.floats(0, 1e5))))
def test_it_is_never_negative(pairs: list[tuple[float, float]]) -> None:
    assert run_minutes([Timings(environment_s=env, total_s=total) for env, total in pairs], lab=True) >= 0


def test_an_empty_cache_holds_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expectation, "cache_root", lambda: tmp_path)
    assert cached_releases() == frozenset()


def healthy(**changes: object) -> TrialResult:
    one = TrialResult(sha="a" * 40, outcome="completed", first_token_s=8.0, run_dir="trials/20260526T081502Z-lab")
    return one.model_copy(update=changes)


def test_the_healthy_end_is_the_baseline_and_named() -> None:
    baseline = healthy_baseline(healthy(), tokens=16_384, for_tokens=16_384)
    assert baseline is not None
    assert (baseline.kind, baseline.seconds, baseline.scaled_from_tokens) == ("control-run", 8.0, None)
    assert "aaaaaaaaaa" in baseline.source and "20260526T081502Z-lab" in baseline.source


def test_a_healthy_time_at_another_length_is_scaled_or_not_used() -> None:
    longer = healthy_baseline(healthy(), tokens=16_384, for_tokens=32_768)
    assert longer is not None and longer.seconds > 16 and longer.scaled_from_tokens == 16_384
    assert healthy_baseline(healthy(), tokens=16_384, for_tokens=468_540) is None


def test_how_slow_a_run_was_is_told_by_the_healthy_end_where_the_clock_is_fine_enough() -> None:
    baseline = healthy_baseline(healthy(), tokens=1000, for_tokens=1000)
    assert times_healthy(56.0, baseline) == 7.0
    assert times_healthy(None, baseline) is None and times_healthy(56.0, None) is None
    quick = healthy_baseline(healthy(first_token_s=0.05), tokens=1000, for_tokens=1000)
    assert times_healthy(0.5, quick) == 0.5


@given(st.floats(0.1, 10.0))
def test_what_completed_at_many_times_the_healthy_ends_time_is_neither_with_nor_without_the_stall(times: float) -> None:
    found = finding(healthy(times_healthy=times), target=Target(), reference=None)
    assert found.has == ("cannot-tell" if times > CLEARLY_SLOW else "no")
    assert finding(healthy(times_healthy=times), target=Target(what="crash"), reference=None).has == "no"


@pytest.mark.parametrize("changes", [{"outcome": "stalled"}, {"first_token_s": None}, {"outcome": "inconclusive"}])
def test_what_did_not_complete_is_no_baseline(changes: dict[str, object]) -> None:
    assert healthy_baseline(healthy(**changes), tokens=1000, for_tokens=1000) is None
