"""The judge on simulated prefills: what must be called, how soon, and what must never be."""

import random
import time

import pytest
from judge_cases import BASELINE, FUNCTION, HEALTHY_S, scenario_for

from sparkdiag.evidence.client import ResponseEnd
from sparkdiag.evidence.observation import Observation
from sparkdiag.evidence.processes import ServerExit
from sparkdiag.evidence.stacks import SamplingStats
from sparkdiag.evidence.verdict import Verdict
from sparkdiag.judging.judge import judge
from sparkdiag.judging.simulation import Behaviour, PrefillModel, SimulatedRun, simulate


def _at(run: SimulatedRun, after_s: float) -> Verdict:
    return judge(run.until(after_s), scenario_for(run.model), BASELINE)


def _slow(seed: int, *, times: tuple[float, float]) -> PrefillModel:
    rng = random.Random(seed)
    return PrefillModel(
        seconds=HEALTHY_S * rng.uniform(*times),
        seed=seed,
        chunk_tokens=rng.choice((256, 512, 1024)),
        layers=rng.choice((2, 3, 4)),
        heads=rng.choice((4, 8, 64)),
        growth=rng.uniform(0.4, 1.0),
        wander=rng.uniform(0.02, 0.15),
        period_s=rng.uniform(0.6, 2.5),
        lookahead=rng.choice((0, 1, 2)),
    )


@pytest.mark.parametrize("block", range(4))
def test_slow_below_the_factor_is_never_called_stalled(block: int) -> None:
    for seed in range(block * 50, block * 50 + 50):
        run = simulate(_slow(seed, times=(3, 8)))
        for step in range(6):
            verdict = _at(run, 5.1 * (run.truth_s / 5.1) ** (step / 6))
            assert verdict.outcome == "inconclusive", (seed, step, verdict)
        assert "slow" in (verdict.reason or "")
        assert verdict.forecasts


@pytest.mark.parametrize("seed", range(30))
def test_crawling_is_called_within_a_minute(seed: int) -> None:
    run = simulate(_slow(seed, times=(15, 100)))
    called = next(at for at in range(4, 61) if _at(run, at).outcome == "stalled")
    verdict = _at(run, called)
    assert called >= 5
    assert (verdict.mode, verdict.kind, verdict.function, verdict.role) == (
        "crawling",
        "torch-fallback",
        FUNCTION,
        "worker",
    )
    assert {item.source for item in verdict.evidence_for} >= {"stacks", "loop-variables", "client", "baseline"}
    assert all("layer" in (finding.loop_progress or "layer") for finding in verdict.ranks)
    assert verdict.decided_at_s == pytest.approx(run.model.sent_s + called)


@pytest.mark.parametrize("behaviour", ["gpu-wait", "idle", "forward"])
def test_a_healthy_run_is_never_called_stalled(behaviour: Behaviour) -> None:
    for seed in range(10):
        run = simulate(PrefillModel(seconds=HEALTHY_S, seed=seed, ranks=(behaviour, behaviour), period_s=0.5))
        for step in range(1, 20):
            assert _at(run, run.truth_s * step / 20).outcome == "inconclusive"
        assert _at(run, run.truth_s + 1).outcome == "completed"


@pytest.mark.parametrize("slow_start", [(8, 4.0), (12, 2.5)])
def test_a_slow_start_below_the_factor_is_not_called_stalled(slow_start: tuple[float, float]) -> None:
    """A busy host at first: for some seconds it goes at 15 times the healthy time or more, and ends below 10."""
    for seed in range(8):
        run = simulate(PrefillModel(seconds=HEALTHY_S * 6, seed=seed, slow_start=slow_start))
        assert run.truth_s < 10 * HEALTHY_S
        for at in range(5, int(run.truth_s), 3):
            assert _at(run, at).outcome == "inconclusive", (seed, at)


@pytest.mark.parametrize("times", [2, 4])
def test_a_cache_size_in_another_unit_does_not_mislead(times: int) -> None:
    run = simulate(PrefillModel(seconds=HEALTHY_S * 15, seed=3))
    seen = run.until(60)
    assert seen.kv_capacity is not None
    wrong = seen.kv_capacity.model_copy(update={"block_size_tokens": seen.kv_capacity.block_size_tokens * times})
    sources = {
        forecast.source
        for forecast in judge(
            seen.model_copy(update={"kv_capacity": wrong}), scenario_for(run.model), BASELINE
        ).forecasts
    }
    assert sources == {"loop-variables"}
    assert {forecast.source for forecast in _at(run, 60).forecasts} == {"loop-variables", "kv-cache-usage"}


def test_without_known_layers_crawling_is_still_called() -> None:
    run = simulate(PrefillModel(seconds=HEALTHY_S * 30, seed=1))
    outcomes = [judge(run.until(at), scenario_for(run.model, layers=None), BASELINE).outcome for at in (5, 20, 40, 60)]
    assert outcomes[-1] == "stalled"


def test_stuck_in_the_suspect_after_the_patience_and_not_before() -> None:
    run = simulate(PrefillModel(seconds=40, seed=3, freeze_at=0.5))
    frozen_after = next(at for at in range(10, 60) if len({p.kv_cache_usage for p in run.until(at).metrics[-20:]}) == 1)
    for at in range(5, frozen_after + 40, 5):
        assert _at(run, at).outcome == "inconclusive", at
    verdict = _at(run, frozen_after + 80)
    assert (verdict.outcome, verdict.mode, verdict.function) == ("stalled", "stuck", FUNCTION)
    assert {item.source for item in verdict.evidence_for} >= {"stacks", "kv-cache-usage", "client"}


def test_a_stuck_run_needs_no_baseline() -> None:
    run = simulate(PrefillModel(seconds=40, seed=3, freeze_at=0.5))
    verdict = judge(run.until(150), scenario_for(run.model), None)
    assert (verdict.outcome, verdict.mode) == ("stalled", "stuck")


def test_the_rank_that_holds_the_others_is_named() -> None:
    run = simulate(PrefillModel(seconds=40, seed=4, freeze_at=0.5, ranks=("collective", "suspect")))
    verdict = _at(run, 150)
    assert (verdict.mode, verdict.function) == ("stuck", FUNCTION)
    assert [finding.differs for finding in verdict.ranks] == [False, True]
    assert any(item.source == "process-tree" and "Worker_TP1_DCP1" in item.text for item in verdict.evidence_for)


def test_a_rank_that_waits_for_a_crawling_peer_is_a_victim_not_stuck() -> None:
    run = simulate(PrefillModel(seconds=HEALTHY_S * 60, seed=5, ranks=("collective", "suspect")))
    verdicts = [_at(run, at) for at in (20, 60, 90, 200)]
    assert {verdict.mode for verdict in verdicts if verdict.outcome == "stalled"} == {"crawling"}
    assert verdicts[-1].function == FUNCTION
    assert [finding.differs for finding in verdicts[-1].ranks] == [False, True]


def test_everybody_idle_with_a_request_in_flight_is_a_lost_message() -> None:
    run = simulate(PrefillModel(seconds=40, seed=6, freeze_at=0.3, ranks=("idle", "idle")))
    assert _at(run, 40).outcome == "inconclusive"
    verdict = _at(run, 150)
    assert (verdict.outcome, verdict.mode, verdict.kind) == ("stalled", "stuck", "unknown")
    assert any("lost message" in item.text for item in verdict.evidence_for)


def test_a_collective_nobody_leaves_is_stuck_named_by_its_leaf() -> None:
    run = simulate(PrefillModel(seconds=40, seed=6, freeze_at=0.3, ranks=("collective", "collective")))
    verdict = _at(run, 190)
    assert (verdict.mode, verdict.kind, verdict.function) == ("stuck", "collective-wait", "all_gather")


def test_a_queued_request_is_not_stuck() -> None:
    run = simulate(PrefillModel(seconds=40, seed=6, freeze_at=0.3, ranks=("idle", "idle")))
    seen = run.until(150)
    waiting = tuple(
        point.model_copy(update={"requests_running": 0.0, "requests_waiting": 1.0}) for point in seen.metrics
    )
    verdict = judge(seen.model_copy(update={"metrics": waiting}), scenario_for(run.model), BASELINE)
    assert verdict.outcome == "inconclusive"


def test_a_rank_that_could_not_be_sampled_prevents_stuck() -> None:
    run = simulate(PrefillModel(seconds=40, seed=3, freeze_at=0.5))
    seen = run.until(75)
    half = seen.model_copy(update={"samples": tuple(sample for sample in seen.samples if sample.pid == 200)})
    assert judge(half, scenario_for(run.model), None).outcome == "inconclusive"


def test_late_and_failed_samples_do_not_count() -> None:
    run = simulate(PrefillModel(seconds=HEALTHY_S * 40, seed=8))
    seen = run.until(60)
    late = seen.model_copy(
        update={
            "samples": tuple(sample.model_copy(update={"late": True}) for sample in seen.samples),
            "sampling": SamplingStats(reason="Permission denied: SYS_PTRACE is missing"),
        }
    )
    verdict = judge(late, scenario_for(run.model), BASELINE)
    assert verdict.outcome == "inconclusive"
    assert "SYS_PTRACE" in (verdict.reason or "")


def test_a_prefix_cached_prompt_is_not_called_stalled() -> None:
    for seed in range(10):
        run = simulate(PrefillModel(seconds=HEALTHY_S * 4, seed=seed, cached_tokens=14_336))
        for step in range(2, 10):
            assert _at(run, run.truth_s * step / 10).outcome == "inconclusive"


def test_beyond_the_factor_no_forecast_is_needed() -> None:
    run = simulate(PrefillModel(seconds=HEALTHY_S * 14, seed=2))
    seen = run.until(HEALTHY_S * 10 + 3)
    bare = seen.model_copy(update={"kv_capacity": None, "samples": seen.samples[-30:]})
    verdict = judge(bare, scenario_for(run.model), BASELINE)
    assert (verdict.outcome, verdict.mode) == ("stalled", "crawling")


def test_other_requests_speak_against() -> None:
    run = simulate(PrefillModel(seconds=HEALTHY_S * 40, seed=8))
    seen = run.until(40)
    busy = tuple(point.model_copy(update={"requests_running": 5.0}) for point in seen.metrics)
    verdict = judge(seen.model_copy(update={"metrics": busy}), scenario_for(run.model), BASELINE)
    assert any("4 other requests" in item.text for item in verdict.evidence_against)


def test_beyond_the_factor_on_a_busy_server_without_a_suspect_is_inconclusive() -> None:
    run = simulate(PrefillModel(seconds=HEALTHY_S * 14, seed=2, ranks=("forward", "forward")))
    seen = run.until(HEALTHY_S * 12)
    assert judge(seen, scenario_for(run.model), BASELINE).kind == "forward"
    busy = tuple(point.model_copy(update={"requests_running": 5.0}) for point in seen.metrics)
    verdict = judge(seen.model_copy(update={"metrics": busy}), scenario_for(run.model), BASELINE)
    assert verdict.outcome == "inconclusive"


def test_time_spent_in_the_queue_is_no_stall() -> None:
    """Sent long before a healthy prefill could begin behind one other request."""
    run = simulate(PrefillModel(seconds=HEALTHY_S, seed=2, ranks=("forward", "forward"), period_s=0.5))
    seen = run.until(run.truth_s - 0.5)
    sent = seen.client.sent
    assert sent is not None
    earlier = sent.model_copy(update={"t_s": sent.t_s - 20 * HEALTHY_S})
    queued = seen.metrics[0].model_copy(update={"t_s": sent.t_s - 10, "requests_running": 1.0, "requests_waiting": 1.0})
    client = seen.client.model_copy(update={"sent": earlier})
    behind = seen.model_copy(update={"client": client, "metrics": (queued, *seen.metrics)})
    alone = seen.model_copy(update={"client": client})
    assert judge(behind, scenario_for(run.model), BASELINE).outcome == "inconclusive"
    assert judge(alone, scenario_for(run.model), BASELINE).outcome == "stalled"


def test_decoding_is_said_to_be_decoding() -> None:
    run = simulate(PrefillModel(seconds=20, seed=1))
    verdict = _at(run, run.truth_s + 0.2)
    assert verdict.outcome == "inconclusive"
    assert "decoded" in (verdict.reason or "")
    assert not verdict.forecasts


def _cancelled(seen: Observation, at_s: float) -> Observation:
    client = seen.client.model_copy(update={"end": ResponseEnd(t_s=at_s, how="cancelled")})
    return seen.model_copy(update={"client": client})


def test_a_cancelled_run_is_judged_as_it_stood_when_it_was_cancelled() -> None:
    run = simulate(PrefillModel(seconds=HEALTHY_S * 40, seed=8))
    live, later = run.until(30), run.until(90)
    again = judge(_cancelled(later, live.now_s), scenario_for(run.model), BASELINE)
    assert again == judge(live, scenario_for(run.model), BASELINE)
    assert again.outcome == "stalled"


def test_a_slow_run_that_finishes_is_completed_and_says_so_against() -> None:
    run = simulate(PrefillModel(seconds=HEALTHY_S * 5, seed=1))
    verdict = _at(run, run.truth_s + 1)
    assert (verdict.outcome, verdict.needle, verdict.mode) == ("completed", "retrieved", None)
    assert any(FUNCTION in item.text and "%" in item.text for item in verdict.evidence_against)
    assert any("times the healthy time" in item.text for item in verdict.evidence_against)


def test_a_server_that_exits_has_crashed() -> None:
    run = simulate(PrefillModel(seconds=50, seed=1))
    gone = ServerExit(at_s=120.0, exit_code=1, process="EngineCore", last_log_lines=("CUDA error: out of memory",))
    verdict = judge(run.until(20).model_copy(update={"server_exit": gone}), scenario_for(run.model), BASELINE)
    assert verdict.outcome == "crashed"
    assert "EngineCore" in (verdict.reason or "")
    assert any(item.source == "server-log" for item in verdict.evidence_for)


@pytest.mark.parametrize("noticed", [False, True])
def test_a_server_that_was_ended_with_its_guardian_is_not_blamed(noticed: bool) -> None:
    run = simulate(PrefillModel(seconds=50, seed=1))
    seen = run.until(20)
    gone = ServerExit(at_s=120.0, signal="SIGKILL", process="APIServer", guardian_killed=True, last_log_lines=("INFO",))
    broken = ResponseEnd(t_s=120.1, how="error", error="RemoteProtocolError: peer closed connection")
    client = seen.client.model_copy(update={"end": broken}) if noticed else seen.client
    after = seen.model_copy(update={"server_exit": gone, "client": client})
    verdict = judge(after, scenario_for(run.model), BASELINE)
    assert verdict.outcome == "inconclusive"
    assert verdict.reason == "sparkdiag's guardian was killed from outside; the server was ended with it"
    assert [item.source for item in verdict.evidence_for] == ["process-tree"]
    assert not any("crash" in item.text or "by itself" in item.text for item in verdict.evidence_for)


@pytest.mark.parametrize(
    ("error", "outcome"),
    [("RemoteProtocolError: peer closed connection", "crashed"), ("HTTP 400: prompt too long", "inconclusive")],
)
def test_a_response_that_errored_is_a_crash_only_if_the_server_went_away(error: str, outcome: str) -> None:
    run = simulate(PrefillModel(seconds=50, seed=1))
    seen = run.until(20)
    client = seen.client.model_copy(update={"end": ResponseEnd(t_s=120.0, how="error", error=error)})
    verdict = judge(seen.model_copy(update={"client": client}), scenario_for(run.model), BASELINE)
    assert verdict.outcome == outcome
    assert error.split(":")[1].strip() in (verdict.reason or "")


def test_nothing_sent_yet() -> None:
    verdict = judge(Observation(now_s=3.0), scenario_for(PrefillModel(seconds=1)), BASELINE)
    assert (verdict.outcome, verdict.decided) == ("inconclusive", False)


def test_ten_thousand_samples_are_judged_quickly() -> None:
    run = simulate(PrefillModel(seconds=600, seed=1, period_s=0.12, late=0, failed=0, chunk_tokens=256))
    seen = run.until(590)
    assert len(seen.samples) > 9000
    began = time.process_time()
    judge(seen, scenario_for(run.model), BASELINE)
    assert time.process_time() - began < 2.0


def _callers_move(seen: Observation) -> Observation:
    """The same, but the caller of the suspect counts on: equal calls for one slice of a chunk's rows after another."""
    samples = []
    for number, sample in enumerate(seen.samples):
        threads = tuple(
            thread.model_copy(
                update={
                    "frames": tuple(
                        frame.model_copy(update={"locals": {**frame.locals, "row_start": number}})
                        if frame.function == "sparse_attn_indexer"
                        else frame
                        for frame in thread.frames
                    )
                }
            )
            for thread in sample.threads
        )
        samples.append(sample.model_copy(update={"threads": threads}))
    return seen.model_copy(update={"samples": tuple(samples)})


def test_equal_calls_from_a_caller_that_counts_on_are_not_stuck() -> None:
    run = simulate(PrefillModel(seconds=40, seed=3, freeze_at=0.5))
    assert judge(run.until(150), scenario_for(run.model), None).mode == "stuck"
    assert judge(_callers_move(run.until(150)), scenario_for(run.model), None).outcome == "inconclusive"


def test_a_prompt_that_has_not_reached_the_engine_is_no_lost_message() -> None:
    run = simulate(PrefillModel(seconds=40, seed=6, freeze_at=0.3, ranks=("idle", "idle")))
    seen = run.until(150)
    reading = tuple(
        point.model_copy(update={"requests_running": 0.0, "requests_waiting": 0.0, "kv_cache_usage": 0.0})
        for point in seen.metrics
    )
    verdict = judge(seen.model_copy(update={"metrics": reading}), scenario_for(run.model), BASELINE)
    assert verdict.outcome == "inconclusive"
