"""Vigils of simulated hours: nothing healthy is called stalled, every stall is kept in time, nothing ends a vigil."""

from hypothesis import given, settings
from hypothesis import strategies as st
from simulated_server import KeptCaptures, Phase, PhaseKind, Simulated, began_at_s, simulate

from sparkdiag.evidence.diagnosis import Diagnosis
from sparkdiag.watching.patience import ENGINE_TIMEOUT_S, Limits, Patience, while_moving

WITHIN_S = Patience().patience_s + Patience().rounds_s[-1] + 3 * Patience().poll_s
DAY = (
    Phase("idle", 900),
    Phase("decode", 1800),
    Phase("prefill", 2100),
    Phase("decode", 60),
    Phase("cached", 2100),
    *(Phase(kind, 20) for _ in range(30) for kind in ("idle", "decode")),
    Phase("restart", 400),
    Phase("decode", 600),
    Phase("silent", 30),
    Phase("decode", 600),
)


def kinds_of(found: Simulated) -> list[str]:
    return [event.kind for event in found.events]


def test_ten_hours_of_healthy_traffic_are_never_called_stalled() -> None:
    phases = DAY * 4
    found = simulate(phases)
    assert found.summary.watched_s >= 36_000
    assert found.captures.called("stalled") == []
    assert found.captures.called("unsettled") == []
    assert found.summary.ended == "interrupted"
    assert found.summary.restarts == 4
    # A cached prompt's prefill of half an hour moves no counter: it is kept once, as slow.
    assert len(found.captures.called("slow")) == 4


def test_looking_at_a_healthy_server_costs_next_to_nothing() -> None:
    found = simulate(DAY * 4)
    assert found.summary.looks_cpu_s / found.summary.watched_s < 0.001
    assert found.server.scrapes < found.summary.watched_s / 4


def test_a_stall_is_kept_with_its_history_and_the_vigil_goes_on() -> None:
    phases = (Phase("decode", 700), Phase("stall", 290), Phase("decode", 300), Phase("stall", 200), Phase("decode", 60))
    found = simulate(phases)
    first, second = found.captures.called("stalled")
    assert 0 <= first.began_s - 700 <= 10
    assert first.found_s - 700 <= WITHIN_S
    assert 0 <= second.began_s - 1290 <= 10
    assert second.found_s - 1290 <= WITHIN_S
    before = [point for point in first.history if point.t_s <= 700]
    assert 100 < len(before) <= 130
    assert {sample.pid for sample in first.samples} == {1000, 1001, 1002}
    assert first.diagnosis is not None and first.diagnosis.function == "all_gather"
    assert [capture.ending for capture in found.captures.all] == ["things move again"] * 2
    assert kinds_of(found).count("captured") == 2


def test_a_prefill_that_crawls_in_a_known_fallback_is_kept_once_though_counters_move() -> None:
    """The incident: 35 minutes, the cache's use rising once a chunk, no token."""
    crawls = (Phase("crawl", 2100), Phase("decode", 300), Phase("crawl", 300), Phase("decode", 60))
    found = simulate((Phase("decode", 600), *crawls))
    first, second = found.captures.called("stalled")
    assert first.found_s - 600 <= WITHIN_S and "none got a token" in first.because
    assert first.diagnosis is not None and first.diagnosis.kind == "torch-fallback"
    assert second.found_s - 3000 <= WITHIN_S + while_moving(Patience()).look_again_s
    assert [capture.ending for capture in found.captures.all][-1] == "things move again"
    assert len(found.captures.all) == 2


def test_long_prefills_that_are_well_make_no_stall_wait() -> None:
    phases = [Phase("prefill", 900), Phase("decode", 20)] * 6 + [Phase("decode", 100), Phase("stall", 290)]
    found = simulate(phases)
    (evidence,) = found.captures.called("stalled")
    assert evidence.found_s - began_at_s(phases, len(phases) - 1) <= WITHIN_S
    assert found.captures.all[0].evidence is evidence


def test_a_stall_that_lasts_is_kept_once() -> None:
    found = simulate((Phase("decode", 60), Phase("stall", 7200)))
    (capture,) = found.captures.all
    assert capture.evidence.label == "stalled"
    assert len(capture.added) < 1000
    assert capture.ending is not None and not capture.interrupted


def test_requests_that_wait_with_none_running_are_a_sign() -> None:
    found = simulate((Phase("decode", 60), Phase("queue-stall", 250), Phase("idle", 100)))
    (evidence,) = found.captures.called("stalled")
    assert "none runs" in evidence.because
    assert evidence.found_s - 60 <= WITHIN_S


def test_a_server_that_answers_nobody_is_looked_at() -> None:
    found = simulate((Phase("decode", 120), Phase("silent", 400), Phase("decode", 60)))
    assert found.summary.looks >= 1
    assert found.captures.called("stalled") == []


def test_answers_that_come_late_are_a_sign() -> None:
    found = simulate((Phase("decode", 120), Phase("slow-answers", 200), Phase("decode", 60)))
    assert any(event.kind == "sign" and "/metrics took 6.0 s" in event.text for event in found.events)
    assert found.captures.all == []


def test_without_metrics_rounds_of_stacks_are_compared() -> None:
    phases = (Phase("decode", 600), Phase("idle", 600), Phase("stall", 280), Phase("decode", 300), Phase("stall", 280))
    found = simulate((*phases, Phase("idle", 300)), metrics=False)
    assert [round(evidence.began_s, -2) for evidence in found.captures.called("stalled")] == [1200, 1800]
    assert all(
        evidence.found_s - at_s < 280
        for evidence, at_s in zip(found.captures.called("stalled"), (1200, 1780), strict=True)
    )
    assert found.server.rounds < 120


def test_without_stacks_nothing_is_called_stalled_but_kept() -> None:
    found = simulate((Phase("decode", 600), Phase("stall", 290), Phase("decode", 60)), stacks=False)
    (evidence,) = (capture.evidence for capture in found.captures.all)
    assert evidence.label == "unsettled"
    assert evidence.found_s - 600 < ENGINE_TIMEOUT_S
    assert "no stacks can be taken" in evidence.because


def test_a_full_disk_does_not_end_a_vigil_and_is_tried_again() -> None:
    full = KeptCaptures(full=True)
    found = simulate((Phase("decode", 60), Phase("stall", 280), Phase("decode", 600)), captures=full)
    assert found.summary.captures == ()
    assert found.summary.not_kept == 1
    assert full.refused >= 2
    assert next(one.text for one in found.events if one.kind == "not-captured").endswith("no space left on device")


def test_captures_are_bounded_in_number() -> None:
    phases = (Phase("decode", 60), Phase("stall", 150)) * 6
    found = simulate(phases, limits=Limits(most_captures=2))
    assert len(found.summary.captures) == 2
    assert found.summary.not_kept == 4


def test_captures_are_bounded_in_bytes() -> None:
    found = simulate(
        (Phase("decode", 60), Phase("stall", 3000)) * 3, limits=Limits(most_captures=4, most_bytes=200_000)
    )
    assert all(capture.size_bytes <= 56_000 for capture in found.captures.all)
    assert found.captures.all[0].ending == "it had its share of the disk"


def test_a_vigil_can_end_after_a_capture_or_a_time() -> None:
    phases = (Phase("decode", 60), Phase("stall", 3000))
    found = simulate(phases, limits=Limits(end_after_captures=1))
    assert (found.summary.ended, len(found.summary.captures)) == ("captured-enough", 1)
    found = simulate(phases, limits=Limits(end_after_s=30))
    assert (found.summary.ended, found.summary.captures) == ("time-is-up", ())


def test_ctrl_c_closes_the_open_capture() -> None:
    found = simulate((Phase("decode", 60), Phase("stall", 200)))
    (capture,) = found.captures.all
    assert capture.interrupted
    assert found.summary.ended == "interrupted"


def test_a_judge_that_breaks_ends_nothing() -> None:
    def broken(*_args: object, **_kwargs: object) -> Diagnosis:
        raise ZeroDivisionError

    found = simulate((Phase("decode", 60), Phase("stall", 290), Phase("decode", 60)), judge=broken)
    (evidence,) = (capture.evidence for capture in found.captures.all)
    assert evidence.label == "unsettled"
    assert "ZeroDivisionError" in evidence.because
    assert evidence.samples


HEALTHY: tuple[PhaseKind, ...] = ("idle", "decode", "prefill", "cached", "restart", "silent", "slow-answers")


def phases_of(kinds: tuple[PhaseKind, ...], *, longest_s: float) -> st.SearchStrategy[Phase]:
    return st.builds(Phase, kind=st.sampled_from(kinds), seconds=st.floats(5, longest_s))


traffic = st.lists(phases_of(HEALTHY, longest_s=1500), min_size=1, max_size=8)
suspends = st.lists(st.tuples(st.floats(0, 9000), st.floats(1, 20_000)), max_size=3)


@settings(max_examples=50)
@given(phases=traffic, suspended=suspends)
def test_no_healthy_traffic_is_called_stalled(phases: list[Phase], suspended: list[tuple[float, float]]) -> None:
    found = simulate(phases, suspends=suspended)
    assert found.captures.called("stalled") == []
    assert len(found.summary.captures) <= Limits().most_captures


@settings(max_examples=50)
@given(before=traffic, seconds=st.floats(ENGINE_TIMEOUT_S, 2000), after=traffic)
def test_every_stall_is_kept_before_the_engine_ends_itself(
    before: list[Phase], seconds: float, after: list[Phase]
) -> None:
    phases = [*before, Phase("stall", seconds), Phase("decode", 30), *after]
    at_s = began_at_s(phases, len(before))
    found = simulate(phases)
    kept = [one for one in found.captures.called("stalled") if at_s <= one.found_s <= at_s + seconds]
    assert len(kept) == 1
    assert kept[0].found_s - at_s < ENGINE_TIMEOUT_S
    assert found.captures.called("stalled") == kept


@settings(max_examples=15)
@given(calm=st.floats(10, 3000), seconds=st.floats(ENGINE_TIMEOUT_S, 1000))
def test_a_stall_out_of_a_calm_is_kept_within_patience_and_a_look(calm: float, seconds: float) -> None:
    found = simulate([Phase("decode", calm), Phase("stall", seconds)])
    (evidence,) = found.captures.called("stalled")
    assert evidence.found_s - calm <= WITHIN_S
