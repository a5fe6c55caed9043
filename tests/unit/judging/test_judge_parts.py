"""The judge's parts: positions, work, fits, KV pace, baselines, odd ranks."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judge_cases import FUNCTION, SIGNATURE, scenario_for

from sparkdiag.evidence.client import ClientOutcome, PromptSent
from sparkdiag.evidence.observation import Observation
from sparkdiag.evidence.processes import ProcessInfo, Ranks
from sparkdiag.evidence.stacks import Frame, LocalValue, StackSample, ThreadStack
from sparkdiag.evidence.timeline import KvCapacity, MetricPoint
from sparkdiag.judging.baseline import reference_baseline, scaled_seconds
from sparkdiag.judging.fit import Step, forecast_rest, merge_steps
from sparkdiag.judging.forecast import Moment, forecast_from_kv, forecast_from_loops, kv_pace, kv_tokens
from sparkdiag.judging.meters import Meters
from sparkdiag.judging.process_set import Standing, dcp_size, odd_ranks
from sparkdiag.judging.progress import (
    CallPosition,
    PrefillPlan,
    layer_of,
    plan_of,
    position_of,
    work_points,
)
from sparkdiag.judging.scene import scene_of
from sparkdiag.judging.seen import seen_after
from sparkdiag.judging.signature import State, look_at
from sparkdiag.judging.simulation import PrefillModel
from sparkdiag.scenario.model import BaselineSettings, LayerClock, Reference

RECORDINGS = Path(__file__).parents[2] / "recordings"
CLOCK = LayerClock(function="sparse_attn_indexer", variable="k_cache_prefix")


def _position(
    at_s: float = 1.0, *, pid: int = 200, layer: str = "model.layers.0.x", values: dict[str, LocalValue]
) -> CallPosition:
    position = position_of(look_at(_sample(at_s, pid=pid, layer=layer, values=values), (SIGNATURE,)), CLOCK)
    assert position is not None
    return position


def _loop(
    head: int, key: int, *, heads: int = 4, keys: int = 1000, step: int = 300, rows: int = 512
) -> dict[str, LocalValue]:
    return {
        "seq_len": rows,
        "seq_len_kv": keys,
        "num_heads": heads,
        "head_chunk_size": 1,
        "k_chunk_size": step,
        "head_start": head,
        "k_start": key,
    }


def test_the_position_is_outermost_first() -> None:
    position = _position(values=_loop(2, 600))
    assert (position.passed, position.total) == (2 * 4 + 2, 16)
    assert position.words == "layer 0, head_start 2/4, k_start 600/1000, 1000 keys"


@given(heads=st.integers(1, 64), keys=st.integers(1, 9000), step=st.integers(1, 9000), data=st.data())
def test_positions_of_one_call_grow_with_the_loops(heads: int, keys: int, step: int, data: st.DataObject) -> None:
    passes = [(head, key) for head in range(min(heads, 3)) for key in range(0, keys, max(step, keys // 5))]
    first, second = sorted(data.draw(st.lists(st.sampled_from(passes), min_size=2, max_size=2)))
    before = _position(values=_loop(*first, heads=heads, keys=keys, step=step))
    after = _position(values=_loop(*second, heads=heads, keys=keys, step=step))
    assert before.call == after.call
    assert 0 <= before.fraction <= after.fraction < 1


def test_an_inner_loop_not_begun_counts_as_not_begun() -> None:
    values = _loop(1, 0)
    del values["k_start"]
    position = _position(values=values)
    assert (position.passed, position.total) == (1, 4)


def _sample(
    at_s: float, *, pid: int = 200, layer: str = "model.layers.0.x", values: dict[str, LocalValue]
) -> StackSample:
    suspect = Frame(function=FUNCTION, filename="f.py", line=1, locals=values)
    outer = Frame(function="sparse_attn_indexer", filename="s.py", line=2, locals={"k_cache_prefix": layer})
    thread = ThreadStack(os_thread_id=1, thread_name="MainThread", frames=(suspect, outer))
    return StackSample(pid=pid, started_s=at_s, ended_s=at_s, threads=(thread,))


def _advanced_s(*samples: StackSample) -> float | None:
    sent = PromptSent(t_s=0, kind="needle", tokens=9, depth=0, seed=0, nonce="", expected="", max_output_tokens=1)
    workers = tuple(ProcessInfo(pid=pid, started_at_s=0, role="worker", title="") for pid in (200, 201))
    seen = Observation(now_s=9, processes=workers, samples=samples, client=ClientOutcome(sent=sent))
    scenario = scenario_for(PrefillModel(seconds=1))
    scene = scene_of(seen, scenario, seen_after(None, seen, scenario))
    assert scene is not None
    return scene.advanced_s


def test_another_layer_another_size_or_a_step_is_an_advance_and_the_same_is_none() -> None:
    here = _sample(1, values=_loop(1, 300))
    assert _advanced_s(here, _sample(2, values=_loop(1, 300))) is None
    assert _advanced_s(here, _sample(2, pid=201, values=_loop(3, 300))) is None, "two ranks a little apart"
    assert _advanced_s(here, _sample(2, values=_loop(1, 600)), _sample(3, values=_loop(1, 600))) == 2
    assert _advanced_s(here, _sample(2, layer="model.layers.1.x", values=_loop(1, 300))) == 2
    assert _advanced_s(here, _sample(2, values=_loop(1, 300, keys=2000))) == 2


@pytest.mark.parametrize(
    ("value", "layer"),
    [
        ("model.layers.3.self_attn.indexer.k_cache", 3),
        ("model.layers.12", 12),
        ("block_7", 7),
        ("layer.2.k2", 2),
        (5, 5),
        (True, None),
        ("none", None),
        (None, None),
        (-1, None),
    ],
)
def test_layer_names(value: LocalValue, layer: int | None) -> None:
    assert layer_of(value) == layer


PLAN = PrefillPlan(tokens=4096, chunk_tokens=512, tokens_per_key=2, layers=2)


def test_work_counts_chunks_layers_and_passes() -> None:
    points = work_points(
        [
            _position(1, values=_loop(0, 0, keys=256)),
            _position(2, values=_loop(2, 0, keys=256)),
            _position(3, layer="model.layers.1.x", values=_loop(0, 0, keys=256)),
            _position(4, values=_loop(0, 0, keys=512)),
            _position(5, layer="model.layers.1.x", values=_loop(3, 900, keys=2048)),
        ],
        PLAN,
    )
    assert [point.chunks for point in points[:4]] == pytest.approx([0, 0.25, 0.5, 1])
    assert 7.5 < points[4].chunks < 8
    assert points[3].weighted == pytest.approx(1)
    assert PLAN.total() == pytest.approx((8, 36))


def test_calls_that_split_a_chunk_by_rows_still_count_in_order() -> None:
    """Newer vLLM: 512 rows as 200 + 200 + 112."""
    first = _position(1, values=_loop(0, 0, keys=256, rows=200))
    last = _position(2, values=_loop(0, 0, keys=256, rows=112))
    points = work_points([first, last], PLAN)
    assert points[0].chunks < points[1].chunks < 0.5
    assert points[1].chunks == pytest.approx(400 / 512 / 2)


def _points(*keys: int) -> list[float]:
    """At which second (0, 1, 2 ...) the positions with these keys are kept."""
    found = [_position(at_s, values=_loop(0, 0, keys=count)) for at_s, count in enumerate(keys)]
    return [point.at_s for point in work_points(found, PLAN)]


def test_a_prefill_that_runs_again_begins_anew_once_that_is_confirmed() -> None:
    assert _points(1400, 1600, 1800, 2000, 256, 260) == [0, 1, 2, 3]
    assert _points(1400, 1600, 1800, 2000, 256, 260, 300) == [4, 5, 6]


def test_a_misread_value_is_left_out_and_forgets_nothing() -> None:
    """Without stopping the process an integer can be read while it is replaced (seen on H200: keys = rows)."""
    assert _points(512, 768, 3, 1024, 1280) == [0, 1, 3, 4]
    assert _points(512, 768, 2000, 1024, 1280, 1536) == [0, 1, 3, 4, 5]
    assert _points(512, 768, 462_281_264, 1024) == [0, 1, 3]


def test_one_misread_count_of_keys_does_not_take_the_plan_away() -> None:
    found = [_position(n, values=_loop(0, 0, keys=keys)) for n, keys in enumerate((256, 256, 462_281_264))]
    plan = plan_of(scenario_for(PrefillModel(seconds=1, tokens=4096)), prompt_tokens=4096, dcp=2, positions=found)
    assert plan is not None and plan.tokens_per_key == 2


def test_the_recorded_loops_of_a_real_stall_foresee_its_end() -> None:
    """250,000 tokens on two H200s at DCP 2, seven misread values among 251: the same server took 118.5 s."""
    base = _position(values=_loop(0, 0))
    lines = (RECORDINGS / "h200" / "dcp2slow-250k-loop-positions.jsonl").read_text(encoding="utf-8").splitlines()
    positions = [
        replace(
            base,
            at_s=row["t"],
            pid=row["worker"],
            call=tuple(row.values()),
            **{name: row[name] for name in ("layer", "passed", "total", "rows", "keys")},
        )
        for row in map(json.loads, lines)
    ]
    plan = PrefillPlan(tokens=250_000, chunk_tokens=8192, tokens_per_key=2, layers=6)
    for now_s in (20.0, 30.0, 40.0, 50.0, 60.0, 68.0):
        seen = [position for position in positions if position.at_s <= now_s]
        forecast = forecast_from_loops(work_points(seen, plan), plan, Moment(sent_s=0, now_s=now_s))
        assert forecast is not None
        assert forecast.low_s < 118.5 < forecast.high_s
        assert abs(forecast.best_s - 118.5) < 0.15 * 118.5


def test_keys_beyond_the_local_share_are_taken_as_global() -> None:
    scenario = scenario_for(PrefillModel(seconds=1, tokens=4096))
    local = plan_of(scenario, prompt_tokens=4096, dcp=2, positions=[_position(values=_loop(0, 0, keys=2048))] * 2)
    whole = plan_of(scenario, prompt_tokens=4096, dcp=2, positions=[_position(values=_loop(0, 0, keys=4096))] * 2)
    assert local is not None
    assert whole is not None
    assert (local.tokens_per_key, whole.tokens_per_key) == (2, 1)
    assert (
        plan_of(scenario, prompt_tokens=4096, dcp=2, positions=[_position(values=_loop(0, 0, keys=40_000))] * 2) is None
    )


@given(alike=st.floats(0, 3), growing=st.floats(0, 3), done=st.integers(4, 30))
def test_a_noiseless_pace_is_foreseen_within_its_interval(alike: float, growing: float, done: int) -> None:
    if alike + growing < 0.01:
        return
    steps = [Step(seconds=alike + growing * (n + 1) / 20, chunks=1, weighted=n + 1) for n in range(done)]
    rest_chunks, rest_weighted = 40 - done, 820 - done * (done + 1) / 2
    truth = alike * rest_chunks + growing * rest_weighted / 20
    found = forecast_rest(steps, total=(40, 820), rest=(rest_chunks, rest_weighted))
    assert found is not None
    assert found.low_s <= truth <= found.high_s
    assert found.best_s == pytest.approx(truth, rel=0.1)


def test_three_early_steps_admit_that_they_cannot_tell_growth() -> None:
    steps = [Step(seconds=1.0 + 0.02 * n, chunks=1, weighted=n + 1) for n in range(3)]
    found = forecast_rest(steps, total=(40, 820), rest=(37, 814))
    assert found is not None
    assert found.high_s > 3 * found.low_s
    assert forecast_rest(steps[:2], total=(40, 820), rest=(37, 814)) is None


def test_merging_keeps_time_and_work() -> None:
    steps = [Step(seconds=0.1 + n % 3, chunks=1, weighted=n) for n in range(100)]
    merged = merge_steps(steps)
    assert len(merged) <= 17
    assert sum(step.seconds for step in merged) == pytest.approx(sum(step.seconds for step in steps))
    assert sum(step.chunks for step in merged) == 100


def test_kv_use_is_read_in_prompt_tokens_with_dcp() -> None:
    """H200: 100,000 tokens at DCP 2 used 0.182 of 4,300 blocks of 64."""
    cache = kv_tokens(KvCapacity(t_s=0, num_blocks=4300, block_size_tokens=64), dcp=2)
    assert cache is not None
    assert cache * 0.1819 == pytest.approx(100_000, rel=0.01)


def test_kv_use_of_somebody_else_gives_no_forecast() -> None:
    readings = [MetricPoint(t_s=n, kv_cache_usage=0.05 * n) for n in range(1, 9)]
    meters = Meters().plus(readings, sent_s=0, until_s=9, first_token_s=None)
    moment = Moment(sent_s=0, now_s=9)
    mine = kv_pace(meters, cache_tokens=10_000, moment=moment)
    others = kv_pace(meters, cache_tokens=100_000, moment=moment)
    unknown = kv_pace(meters, cache_tokens=None, moment=moment)
    assert mine is not None
    assert others is not None
    assert unknown is not None
    assert forecast_from_kv(mine, PLAN, moment) is not None
    assert forecast_from_kv(others, PLAN, moment) is None
    assert forecast_from_kv(unknown, PLAN, moment) is None
    assert kv_pace(Meters(), cache_tokens=None, moment=moment) is None


def test_the_healthy_shape_fits_the_h200_times() -> None:
    """Measured at DCP 1: 16,000 tokens 0.14 s, 100,000 1.53 s, 250,000 6.57 s."""
    assert scaled_seconds(1.53, from_tokens=100_000, to_tokens=250_000) == pytest.approx(6.57, rel=0.1)
    assert scaled_seconds(1.0, from_tokens=100_000, to_tokens=450_000) is None
    assert scaled_seconds(1.0, from_tokens=0, to_tokens=10) is None


def test_the_nearest_reference_is_scaled_and_says_so() -> None:
    reference = Reference(prompt_tokens=468_540, seconds=498, hardware="2 x GB10", source="pull request")
    scenario = scenario_for(PrefillModel(seconds=1)).model_copy(
        update={"baseline": BaselineSettings(reference=(reference,))}
    )
    same = reference_baseline(scenario, prompt_tokens=468_540)
    other = reference_baseline(scenario, prompt_tokens=450_000)
    assert same is not None
    assert other is not None
    assert (same.seconds, same.scaled_from_tokens) == (498, None)
    assert (other.scaled_from_tokens, other.seconds < 498) == (468_540, True)
    assert "scaled" in other.source
    assert reference_baseline(scenario, prompt_tokens=20_000) is None


def _standing(rank: int, state: State, function: str = "f") -> Standing:
    worker = ProcessInfo(pid=rank, started_at_s=0, role="worker", ranks=Ranks(tp=rank, dcp=rank), title="")
    return Standing(worker=worker, state=state, function=function, share=1, samples=9)


def test_the_rank_that_does_not_wait_is_the_odd_one() -> None:
    wait: State = "collective-wait"
    busy: State = "forward"
    assert odd_ranks([_standing(0, wait), _standing(1, busy)]) == {1}
    assert odd_ranks([_standing(0, wait), _standing(1, wait), _standing(2, wait), _standing(3, busy)]) == {3}
    assert odd_ranks([_standing(0, busy), _standing(1, busy), _standing(2, busy), _standing(3, busy, "g")]) == {3}
    assert odd_ranks([_standing(0, busy), _standing(1, busy)]) == frozenset()
    assert odd_ranks([_standing(0, busy), _standing(1, busy, "g")]) == frozenset(), "two busy ones: no telling"
    assert dcp_size((_standing(0, wait).worker, _standing(1, wait).worker)) == 2
