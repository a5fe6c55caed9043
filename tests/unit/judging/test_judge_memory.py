"""A run judged look by look, from what is new, and its folder judged at once: the same memory, the same verdict."""

import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judge_cases import BASELINE, HEALTHY_S, scenario_for

from sparkdiag.evidence.client import ResponseEnd
from sparkdiag.evidence.observation import Observation
from sparkdiag.evidence.timeline import GpuPoint
from sparkdiag.judging.judge import judge
from sparkdiag.judging.seen import Seen, seen_after
from sparkdiag.judging.simulation import Behaviour, PrefillModel, SimulatedRun, simulate
from sparkdiag.judging.sparse import Sparse
from sparkdiag.observing.log import ObservationLog


@given(sizes=st.lists(st.integers(0, 90), max_size=12), newest=st.integers(1, 40))
def test_a_series_thinned_step_by_step_is_the_series_thinned_at_once(sizes: list[int], newest: int) -> None:
    nothing: Sparse[int] = Sparse()
    grown = nothing
    for size in sizes:
        grown = grown.plus(range(grown.count, grown.count + size), newest=newest)
    total = sum(sizes)
    assert grown == nothing.plus(range(total), newest=newest)
    assert grown.values[-newest:] == list(range(max(0, total - newest), total))
    assert grown.values[:1] == list(range(min(1, total)))
    assert len(grown.kept) <= newest * (2 + max(1, total).bit_length())


def _model(seed: int) -> PrefillModel:
    rng = random.Random(seed)
    return PrefillModel(
        seconds=HEALTHY_S * rng.choice((0.5, 4, 20)),
        seed=seed,
        period_s=rng.choice((0.1, 0.4)),
        ranks=rng.choice((("suspect", "suspect"), ("collective", "suspect"), ("suspect",) * 4, ("idle", "gpu-wait"))),
        freeze_at=rng.choice((None, None, 0.5)),
    )


def _ended(run: SimulatedRun, after_s: float, how: str) -> Observation:
    """As seen then, the request cancelled, ended or going on."""
    seen = run.until(after_s)
    gpus = tuple(GpuPoint(t_s=t, index=i, power_w=t) for t in range(int(seen.now_s)) for i in range(2))
    seen = seen.model_copy(update={"gpus": gpus})
    if how == "going on" or seen.client.end is not None:
        return seen
    end = ResponseEnd(t_s=seen.now_s, how="cancelled" if how == "cancelled" else "error", error="HTTP 500")
    return seen.model_copy(update={"client": seen.client.model_copy(update={"end": end})})


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 40),
    looks=st.lists(st.floats(0.1, 200), max_size=8),
    how=st.sampled_from(["going on", "cancelled", "error"]),
)
def test_many_looks_remember_what_one_look_sees(seed: int, looks: list[float], how: str) -> None:
    run = simulate(_model(seed), after_freeze_s=100)
    scenario = scenario_for(run.model)
    *before, last = sorted([*looks, 190.0])
    seen: Seen | None = None
    for at in before:
        seen = seen_after(seen, run.until(at), scenario)
    final = _ended(run, last, how)
    seen = seen_after(seen, final, scenario)
    assert seen == seen_after(None, final, scenario)
    assert judge(final, scenario, BASELINE, seen=seen) == judge(final, scenario, BASELINE)


def test_a_log_that_forgets_the_past_gives_the_verdict_of_the_whole_folder() -> None:
    run = simulate(PrefillModel(seconds=HEALTHY_S * 9, seed=5, period_s=0.1, late=0.003))
    scenario = scenario_for(run.model)
    log = ObservationLog(clock=lambda: now_s, sink=lambda _value: None, most_samples=100)
    now_s, seen, shortest = run.model.sent_s, None, 1000
    log.set_processes(run.whole.processes)
    for after_s in range(1, int(run.truth_s)):
        before_s, now_s = now_s, run.model.sent_s + after_s
        log.set_client(run.until(after_s).client)
        for point in run.whole.metrics:
            if before_s < point.t_s <= now_s:
                log.add_metrics(point, run.whole.kv_capacity)
        for sample in run.whole.samples:
            if before_s < sample.ended_s <= now_s:
                log.add_sample(sample)
        live = log.snapshot()
        seen = seen_after(seen, live, scenario)
        shortest = min(shortest, len(live.samples) - len(run.until(after_s).samples))
    assert shortest < -500, "the log forgot"
    whole = run.until(int(run.truth_s) - 1)
    assert judge(live, scenario, BASELINE, seen=seen) == judge(whole, scenario, BASELINE)


def test_another_request_begins_a_new_memory() -> None:
    run = simulate(PrefillModel(seconds=HEALTHY_S * 9, seed=5))
    scenario = scenario_for(run.model)
    first = seen_after(None, run.until(30), scenario)
    later = run.until(40)
    assert later.client.sent is not None
    sent = later.client.sent.model_copy(update={"t_s": later.now_s - 5})
    again = later.model_copy(update={"client": later.client.model_copy(update={"sent": sent})})
    assert seen_after(first, again, scenario) == seen_after(None, again, scenario)
    assert (
        seen_after(
            first, later.model_copy(update={"client": run.whole.client.model_copy(update={"sent": None})}), scenario
        )
        is None
    )


@pytest.mark.parametrize("ranks", [("suspect",) * 2, ("suspect",) * 8])
def test_a_look_costs_what_is_new_not_what_is_old(ranks: tuple[Behaviour, ...]) -> None:
    """Bounds far above what is measured (3 ms a look, 0.3 s for the whole): the machine may be busy."""
    run = simulate(PrefillModel(seconds=900, seed=1, period_s=0.25, late=0, failed=0, ranks=ranks, chunk_tokens=256))
    scenario = scenario_for(run.model)
    seen = seen_after(None, run.until(880), scenario)
    began = time.process_time()
    for after_s in range(881, 891):
        observation = run.until(after_s)
        newest = observation.model_copy(update={"samples": observation.samples[-500:]})
        seen = seen_after(seen, newest, scenario)
        judge(newest, scenario, BASELINE, seen=seen)
    whole_s = time.process_time() - began
    assert whole_s / 10 < 0.3
    assert seen is not None
    kept = sum(len(worker.positions.kept) for worker in seen.workers.values())
    assert kept < 700 < len(observation.samples)
