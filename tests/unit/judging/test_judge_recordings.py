"""The judge on real timelines and stacks (tests/recordings/README.md)."""

import pytest
from h200_recordings import (
    LOOP_FUNCTION,
    START_S,
    Replay,
    baseline,
    healthy_stacks,
    sample,
    scenario,
    slow_stacks,
    threads_of_json,
    threads_of_text,
    without_locals,
)

from sparkdiag.evidence.observation import Observation
from sparkdiag.evidence.processes import ProcessInfo
from sparkdiag.evidence.stacks import Frame, StackSample, ThreadStack
from sparkdiag.evidence.verdict import Verdict
from sparkdiag.judging.judge import judge
from sparkdiag.judging.progress import position_of
from sparkdiag.judging.signature import look_at

SLOW = [
    pytest.param("dcp2slow-100k-samples.jsonl", 100_000, 20.5, 1.6, 0.5, id="100k"),
    pytest.param("dcp2slow-250k-samples.jsonl", 250_000, 118.5, 6.57, 1.5, id="250k"),
]


def test_a_real_dump_shows_call_layer_and_position() -> None:
    settings = scenario(tokens=100_000, dcp=2)
    for threads in (threads_of_json("dcp2slow-worker0-locals.json"), threads_of_text("dcp2slow-worker0-locals.txt")):
        look = look_at(sample(2182, 1.0, threads), settings.signatures)
        position = position_of(look, settings.layer_clock)
        assert look.state == "suspect"
        assert position is not None
        assert position.total == 64 * 4
        assert 0 < position.passed < position.total
        assert position.layer in range(6)
        assert (position.keys or 0) % 4096 == 0


@pytest.mark.parametrize(
    ("dump", "state"),
    [
        ("dcp1-worker0-locals.txt", "gpu-wait"),
        ("dcp1-engine.txt", "reply-wait"),
        ("dcp2slow-engine.txt", "reply-wait"),
        ("dcp2fast-worker0.txt", "gpu-wait"),
        ("tp1fast-engine.txt", "gpu-wait"),
        ("onegpu-dcp2slow-worker0.txt", "collective-wait"),
        ("dcp2slow-worker0.txt", "suspect"),
        ("dcp2slow-worker1.txt", "suspect"),
        ("tp1slow-compiled-engine.txt", "suspect"),
    ],
)
def test_real_shapes_are_told_apart(dump: str, state: str) -> None:
    look = look_at(sample(1, 1.0, threads_of_text(dump)), scenario(tokens=1000, dcp=2).signatures)
    assert look.state == state


@pytest.mark.parametrize("dump", ["dcp1-worker0-locals.txt", "dcp2fast-worker0.txt"])
@pytest.mark.parametrize("healthy_s", [1.45, 0.8])
def test_no_moment_of_a_healthy_run_is_called_stalled(dump: str, healthy_s: float) -> None:
    stacks = healthy_stacks(until_s=1.6, every_s=0.1, dump=dump)
    replay = Replay("dcp1-100k-samples.jsonl", tokens=100_000, dcp=1, ttft_s=1.55, stacks=stacks)
    for step in range(1, 40):
        verdict = judge(replay.until(step * 0.04), scenario(tokens=100_000, dcp=1, settle_s=0.2), baseline(healthy_s))
        assert verdict.outcome != "stalled", verdict
    assert judge(replay.until(1.6), scenario(tokens=100_000, dcp=1), baseline(healthy_s)).outcome == "completed"


def _verdicts(replay: Replay, *, tokens: int, healthy_s: float) -> list[tuple[float, Verdict]]:
    moments = [replay.ttft_s * step / 60 for step in range(1, 60)]
    return [(at, judge(replay.until(at), scenario(tokens=tokens, dcp=2), baseline(healthy_s))) for at in moments]


@pytest.mark.parametrize(("name", "tokens", "ttft_s", "healthy_s", "every_s"), SLOW)
def test_the_slow_runs_are_called_crawling_long_before_they_end(
    name: str, tokens: int, ttft_s: float, healthy_s: float, every_s: float
) -> None:
    replay = Replay(name, tokens=tokens, dcp=2, ttft_s=ttft_s, stacks=slow_stacks(until_s=ttft_s, every_s=every_s))
    verdicts = _verdicts(replay, tokens=tokens, healthy_s=healthy_s)
    stalled = [(at, verdict) for at, verdict in verdicts if verdict.outcome == "stalled"]
    at, verdict = stalled[0]
    assert at < min(0.4 * ttft_s, 28)
    assert (verdict.mode, verdict.kind, verdict.function) == ("crawling", "torch-fallback", LOOP_FUNCTION)
    assert {item.source for item in verdict.evidence_for} >= {"stacks", "kv-cache-usage", "client", "baseline"}
    assert all(finding.top_function == LOOP_FUNCTION and finding.top_share > 0.8 for finding in verdict.ranks)
    assert any(item.source == "gpu" for item in verdict.evidence_against)


@pytest.mark.parametrize(("name", "tokens", "ttft_s", "healthy_s", "every_s"), SLOW)
def test_the_real_forecasts_cover_what_happened(
    name: str, tokens: int, ttft_s: float, healthy_s: float, every_s: float
) -> None:
    replay = Replay(name, tokens=tokens, dcp=2, ttft_s=ttft_s, stacks=slow_stacks(until_s=ttft_s, every_s=every_s))
    seen = 0
    for at, verdict in _verdicts(replay, tokens=tokens, healthy_s=healthy_s):
        for forecast in verdict.forecasts:
            seen += 1
            error = forecast.best_s / ttft_s - 1
            print(f"{at:6.1f} s {forecast.source} {forecast.fraction_done:4.0%} done: error {error:+.0%}")
            assert forecast.low_s <= ttft_s <= forecast.high_s * 1.01
            if forecast.fraction_done > 0.1:
                assert abs(error) < 0.15
    assert seen > 20


def test_without_a_baseline_a_slow_run_is_inconclusive_and_says_what_to_pass() -> None:
    replay = Replay(
        "dcp2slow-100k-samples.jsonl",
        tokens=100_000,
        dcp=2,
        ttft_s=20.5,
        stacks=slow_stacks(until_s=20, every_s=0.5),
    )
    verdict = judge(replay.until(15), scenario(tokens=100_000, dcp=2), None)
    assert verdict.outcome == "inconclusive"
    assert "--baseline-s" in (verdict.reason or "")
    assert "--control" in (verdict.reason or "")
    assert verdict.forecasts


def test_metrics_alone_do_not_make_a_stall() -> None:
    replay = Replay("dcp2slow-100k-samples.jsonl", tokens=100_000, dcp=2, ttft_s=20.5, stacks=[])
    verdict = judge(replay.until(12), scenario(tokens=100_000, dcp=2), baseline(1.6))
    assert verdict.outcome == "inconclusive"
    assert "sampled" in (verdict.reason or "")


def _one_gpu_stacks() -> list[StackSample]:
    waiting = threads_of_text("onegpu-dcp2slow-worker0.txt")
    looping = without_locals(threads_of_text("dcp2slow-worker0.txt"))
    return [
        sample(pid, START_S + 0.5 + step * 0.5, looping if step % 6 == 5 else waiting)
        for step in range(100)
        for pid in (2182, 2183)
    ]


def test_one_gpu_is_neither_called_healthy_nor_blamed_on_the_loop() -> None:
    """Both ranks on one GPU: the collectives synchronise, so the host waits there although the loop is what runs."""
    replay = Replay("dcp2slow-100k-samples.jsonl", tokens=100_000, dcp=2, ttft_s=20.5, stacks=_one_gpu_stacks())
    early = judge(replay.until(9), scenario(tokens=100_000, dcp=2), baseline(1.6))
    late = judge(replay.until(17), scenario(tokens=100_000, dcp=2), baseline(1.6))
    assert early.outcome == "inconclusive"
    assert (late.outcome, late.mode, late.kind) == ("stalled", "crawling", "collective-wait")
    assert late.function == "all_gather"
    assert any("not what the GPU runs" in item.text for item in late.evidence_against)
    assert any(LOOP_FUNCTION in item.text for item in late.evidence_for)


def test_with_tp_1_the_engine_core_is_the_worker() -> None:
    engine = ProcessInfo(pid=1504, started_at_s=1.0, role="engine_core", title="VLLM::EngineCore")
    threads = threads_of_text("tp1slow-compiled-engine.txt")
    replay = Replay(
        "dcp2slow-100k-samples.jsonl",
        tokens=100_000,
        dcp=2,
        ttft_s=20.5,
        stacks=[sample(1504, START_S + 0.5 * step, threads) for step in range(1, 40)],
    )
    observed: Observation = replay.until(18).model_copy(update={"processes": (engine,)})
    verdict = judge(observed, scenario(tokens=100_000, dcp=2), baseline(1.0))
    assert (verdict.outcome, verdict.function, verdict.role) == ("stalled", LOOP_FUNCTION, "engine_core")


def test_names_match_bare_never_as_a_part() -> None:
    frames = (Frame(function="not_" + LOOP_FUNCTION, filename="x.py", line=1),)
    thread = ThreadStack(thread_name="MainThread", frames=frames)
    assert look_at(sample(1, 1.0, (thread,)), scenario(tokens=1000, dcp=2).signatures).state != "suspect"
    nested = (Frame(function=f"patch.<locals>.{LOOP_FUNCTION}", filename="x.py", line=1),)
    thread = ThreadStack(thread_name="MainThread", frames=nested)
    assert look_at(sample(1, 1.0, (thread,)), scenario(tokens=1000, dcp=2).signatures).state == "suspect"
