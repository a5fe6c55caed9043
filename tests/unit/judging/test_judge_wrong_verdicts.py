"""Verdicts that were wrong once: long passes called stuck, stopped runs called crawling, slow starts called stalls."""

from collections.abc import Iterable
from dataclasses import replace

import pytest
from calibrate_forecast import (
    HEALTHY_S,
    first_stall,
    long_pass_model,
    recovering_model,
    stopping_model,
    verdicts,
)

from sparkdiag.evidence.verdict import Verdict
from sparkdiag.judging.simulation import Behaviour, PrefillModel, SimulatedRun, simulate


def _modes(run: SimulatedRun, times_s: Iterable[float]) -> list[tuple[float, str | None]]:
    """When it was called a stall, and which."""
    return [(at, verdict.mode) for at, verdict in verdicts(run, times_s) if verdict.outcome == "stalled"]


def _texts(verdict: Verdict) -> str:
    return " ".join(item.text for item in verdict.evidence_against)


@pytest.mark.parametrize("seed", range(12))
def test_passes_of_minutes_are_slow_never_stuck(seed: int) -> None:
    run = simulate(long_pass_model(seed))
    found = _modes(run, range(5, int(min(run.truth_s, 900)), 15))
    assert {mode for _, mode in found} <= {"crawling"}, found


def _frozen_in_first_pass(behaviour: Behaviour) -> SimulatedRun:
    model = PrefillModel(
        seconds=400, seed=3, ranks=(behaviour, behaviour), freeze_at=0.0, heads=1, keys_per_pass=1 << 20
    )
    return simulate(model, after_freeze_s=400)


@pytest.mark.parametrize("behaviour", ["suspect", "forward"])
def test_without_any_advance_stuck_needs_longer_and_admits_the_doubt(behaviour: Behaviour) -> None:
    run = _frozen_in_first_pass(behaviour)
    (at, verdict) = first_stall(run, range(5, 400, 5)) or (0.0, Verdict(outcome="inconclusive"))
    assert 180 <= at <= 210
    assert verdict.mode == "stuck"
    assert "single pass" in _texts(verdict)


def test_a_loop_that_was_seen_to_advance_is_stuck_after_the_patience_without_that_doubt() -> None:
    run = simulate(PrefillModel(seconds=40, seed=3, freeze_at=0.5), after_freeze_s=200)
    (at, verdict) = first_stall(run, range(5, 200)) or (0.0, Verdict(outcome="inconclusive"))
    assert verdict.mode == "stuck"
    assert at < 20 + 75
    assert "single pass" not in _texts(verdict)


def test_a_stand_must_last_three_times_the_longest_pass_that_ended() -> None:
    """Passes of about 40 s, then one that never ends: 60 s of it are not enough."""
    model = PrefillModel(
        seconds=800, seed=3, chunk_tokens=20_000, layers=2, heads=10, keys_per_pass=1 << 20, wander=0.02
    )
    run = simulate(replace(model, freeze_at=0.9), after_freeze_s=300)
    stopped_s = model.seconds * (0.5 + 0.5 * 0.37)
    found = _modes(run, range(int(stopped_s), int(run.whole.now_s - model.sent_s), 5))
    stuck = [at for at, mode in found if mode == "stuck"]
    assert stuck
    assert 80 < stuck[0] - stopped_s < 130, "counted from the start of that pass"


@pytest.mark.parametrize("seed", range(20))
def test_a_run_that_stops_for_good_is_stuck_however_slow_it_was(seed: int) -> None:
    run = simulate(stopping_model(seed), after_freeze_s=300)
    found = _modes(run, range(5, int(run.whole.now_s - run.model.sent_s), 5))
    assert found
    assert {mode for _, mode in found} == {"stuck"}, found


def test_a_crawling_run_that_stops_is_not_called_crawling_any_more() -> None:
    """Before it was called: it stopped after 12 s at 40 times the healthy time."""
    run = simulate(PrefillModel(seconds=HEALTHY_S * 40, seed=1, freeze_at=0.05), after_freeze_s=200)
    assert {mode for _, mode in _modes(run, range(40, 200, 5))} == {"stuck"}


@pytest.mark.parametrize("seed", range(20))
def test_twenty_slow_seconds_do_not_make_a_stall(seed: int) -> None:
    """15 times the healthy time for 20 s, and 8 to 9.5 in the end."""
    later = (8.5 * HEALTHY_S - 20) / (HEALTHY_S - 20 / 15)
    model = PrefillModel(seconds=later * HEALTHY_S, seed=seed, slow_start=(20, 15 / later), wander=0.05, period_s=1.0)
    run = simulate(model)
    assert 7 * HEALTHY_S < run.truth_s < 10 * HEALTHY_S
    assert not _modes(run, range(5, int(run.truth_s)))


@pytest.mark.parametrize("seed", range(12))
def test_a_start_of_any_pace_that_ends_soon_does_not_make_a_stall(seed: int) -> None:
    run = simulate(recovering_model(seed, first_s=(8, 20)))
    assert run.truth_s >= 10 * HEALTHY_S or not _modes(run, range(5, int(run.truth_s), 2))


def test_what_was_only_foreseen_says_what_would_belie_it() -> None:
    run = simulate(PrefillModel(seconds=HEALTHY_S * 20, seed=1))
    (at, verdict) = first_stall(run, range(5, 60)) or (0.0, Verdict(outcome="inconclusive"))
    assert 20 <= at <= 35
    assert "times faster" in _texts(verdict)
