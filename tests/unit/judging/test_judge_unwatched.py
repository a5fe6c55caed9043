"""The judge on runs that nobody samples, by request: no guess about where, and no sooner than two sources allow."""

import pytest
from calibrate_forecast import first_stall, random_model, recovering_model, unwatched_run
from judge_cases import BASELINE, HEALTHY_S, scenario_for

from sparkdiag.evidence.observation import Observation
from sparkdiag.evidence.verdict import Verdict
from sparkdiag.judging.judge import judge
from sparkdiag.judging.simulation import PrefillModel, SimulatedRun, simulate

LAB = PrefillModel(seconds=HEALTHY_S * 40, seed=1, chunk_tokens=256, tokens=16_384)


def unwatched(model: PrefillModel, *, unit: float = 1.0, after_freeze_s: float = 600.0) -> SimulatedRun:
    return unwatched_run(simulate(model, after_freeze_s=after_freeze_s), unit=unit)


def verdict(run: SimulatedRun, after_s: float) -> Verdict:
    return judge(run.until(after_s), scenario_for(run.model), BASELINE)


def called_after_s(run: SimulatedRun) -> int | None:
    found = first_stall(run, range(5, int(min(run.truth_s, 700))))
    return int(found[0]) if found else None


def test_far_beyond_the_limit_it_is_foreseen_and_names_no_function() -> None:
    run = unwatched(LAB)
    at = called_after_s(run)
    assert at is not None and 5 * HEALTHY_S <= at < 10 * HEALTHY_S
    found = verdict(run, at)
    assert (found.mode, found.kind, found.function, found.role) == ("crawling", None, None, None)
    assert {item.source for item in found.evidence_for} >= {"kv-cache-usage", "client", "baseline"}
    assert not any(item.source == "stacks" for item in (*found.evidence_for, *found.evidence_against))
    (told,) = [item.text for item in found.evidence_against if item.source == "sampling"]
    assert "by request" in told
    assert found.ranks == ()


@pytest.mark.parametrize("seed", range(8))
def test_a_little_beyond_the_limit_only_the_time_itself_counts(seed: int) -> None:
    run = unwatched(random_model(seed, times=(12, 14)))
    at = called_after_s(run)
    assert at is not None and at > 10 * HEALTHY_S


@pytest.mark.parametrize("unit", [1.0, 0.5, 0.25])
@pytest.mark.parametrize("seed", range(6))
def test_below_the_factor_it_is_never_called_whatever_unit_the_cache_is_told_in(seed: int, unit: float) -> None:
    for model in (random_model(seed, times=(3, 9)), recovering_model(seed, first_s=(8, 30))):
        run = unwatched(model, unit=unit)
        if run.truth_s < 10 * HEALTHY_S:
            assert called_after_s(run) is None, (seed, unit)


@pytest.mark.parametrize("unit", [0.25, 0.5, 2.0])
def test_a_cache_told_in_another_unit_foresees_nothing(unit: float) -> None:
    run = unwatched(LAB, unit=unit)
    at = called_after_s(run)
    assert at is not None and at > 10 * HEALTHY_S


def test_a_healthy_run_completes_and_does_not_complain_of_missing_stacks() -> None:
    run = unwatched(PrefillModel(seconds=HEALTHY_S, seed=2))
    for at in range(5, int(run.truth_s)):
        assert verdict(run, at).outcome == "inconclusive"
    found = verdict(run, run.truth_s + 1)
    assert (found.outcome, found.needle) == ("completed", "retrieved")
    assert not any(item.source in ("stacks", "sampling") for item in (*found.evidence_for, *found.evidence_against))


def test_what_stops_for_good_is_stuck_after_the_limit_and_a_long_look() -> None:
    run = unwatched(PrefillModel(seconds=40, seed=3, freeze_at=0.5))
    called = called_after_s(run)
    assert called is not None and called >= 3 * scenario_for(run.model).patience.stuck_s
    found = verdict(run, called)
    assert (found.mode, found.kind, found.function) == ("stuck", None, None)
    assert {item.source for item in found.evidence_for} == {"kv-cache-usage", "client", "baseline"}


def test_what_never_moved_at_all_is_said_to_be_perhaps_one_long_chunk() -> None:
    run = unwatched(PrefillModel(seconds=40, seed=3, freeze_at=0.0))
    found = verdict(run, 500)
    assert found.mode == "stuck"
    assert any("a chunk that takes so long looks the same" in item.text for item in found.evidence_against)


def with_others(seen: Observation) -> Observation:
    busy = tuple(point.model_copy(update={"requests_running": 3.0}) for point in seen.metrics)
    return seen.model_copy(update={"metrics": busy})


def not_arrived(seen: Observation) -> Observation:
    flat = {"requests_running": 0.0, "requests_waiting": 1.0, "kv_cache_usage": 0.0}
    waiting = tuple(point.model_copy(update=flat) for point in seen.metrics)
    return seen.model_copy(update={"metrics": waiting})


def unreadable(seen: Observation) -> Observation:
    return seen.model_copy(update={"metrics": ()})


@pytest.mark.parametrize("doubt", [with_others, not_arrived, unreadable])
@pytest.mark.parametrize("model", [LAB, PrefillModel(seconds=40, seed=3, freeze_at=0.5)])
def test_no_verdict_where_kv_use_or_the_requests_tell_another_story(doubt: object, model: PrefillModel) -> None:
    assert callable(doubt)
    run = unwatched(model)
    for at in (30, 60, 90, 250):
        seen = doubt(run.until(at))
        assert judge(seen, scenario_for(model), BASELINE).outcome == "inconclusive"


def test_without_a_healthy_time_it_is_never_a_stall() -> None:
    run = unwatched(LAB)
    found = judge(run.until(200), scenario_for(run.model), None)
    assert found.outcome == "inconclusive" and "baseline" in (found.reason or "")


def test_that_no_stack_could_be_taken_is_another_matter() -> None:
    """Wanted, and not to be had: the verdict of before, which waits for the limit."""
    seen = simulate(LAB).until(60).model_copy(update={"samples": ()})
    found = judge(seen, scenario_for(LAB), BASELINE)
    assert found.outcome == "inconclusive" and "could be sampled" in (found.reason or "")
