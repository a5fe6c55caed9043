"""The judge is total and deterministic: whatever was recorded, it gives a verdict that can be written and read."""

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from judge_cases import BASELINE, FUNCTION, SIGNATURE, scenario_for

from sparkdiag.evidence.client import ClientOutcome, PromptSent, ResponseEnd
from sparkdiag.evidence.observation import Observation
from sparkdiag.evidence.processes import ProcessInfo, Ranks, ServerExit
from sparkdiag.evidence.stacks import Frame, SamplingStats, StackSample, ThreadStack
from sparkdiag.evidence.timeline import CpuPoint, GpuPoint, KvCapacity, MetricPoint
from sparkdiag.evidence.verdict import Baseline, Verdict
from sparkdiag.judging.judge import judge
from sparkdiag.judging.simulation import PrefillModel
from sparkdiag.scenario.model import LoopVariable, Signature

ODD_FLOATS = st.sampled_from([0.0, -0.0, -1.0, 1e-300, 1e11, 1e300, float("inf"), float("-inf"), float("nan")])
TIMES = st.one_of(st.floats(0, 300), st.floats(95, 130), ODD_FLOATS)
SIZES = st.one_of(st.integers(-5, 30_000), st.sampled_from([0, -1, 10**30, -(10**30), 2**63]))
LOCALS: st.SearchStrategy[Any] = st.one_of(SIZES, st.booleans(), st.none(), TIMES, st.text(max_size=30))
NAMES = st.sampled_from(
    [
        FUNCTION,
        f"x.<locals>.{FUNCTION}",
        "sparse_attn_indexer",
        "MessageQueue.dequeue",
        "acquire_read",
        "get_response",
        "all_gather",
        "Event.synchronize",
        "AsyncGPUModelRunnerOutput.get_output",
        "Worker.execute_model",
        "",
        ".",
        "…\x1b[31m",
    ]
)
KEYS = st.sampled_from(
    ["seq_len", "seq_len_kv", "num_heads", "head_start", "head_chunk_size", "k_start", "k_chunk_size", "k_cache_prefix"]
)
FRAMES = st.builds(
    Frame,
    function=NAMES,
    filename=st.sampled_from(["a.py", "torch/distributed/x.py", "shm_broadcast.py", "triton/compiler/c.py", ""]),
    line=st.integers(-1, 5),
    locals=st.dictionaries(KEYS, LOCALS, max_size=8),
)
THREADS = st.builds(
    ThreadStack,
    os_thread_id=st.one_of(st.none(), st.integers(0, 3)),
    thread_name=st.sampled_from([None, "MainThread", "WorkerAsyncOutputCopy"]),
    frames=st.lists(FRAMES, max_size=4).map(tuple),
)
SAMPLES = st.builds(
    StackSample,
    pid=st.integers(199, 202),
    started_s=TIMES,
    ended_s=TIMES,
    threads=st.lists(THREADS, max_size=2).map(tuple),
    error=st.sampled_from([None, None, None, "no"]),
    late=st.booleans(),
)
MAYBE = st.one_of(st.none(), st.floats(0, 1), ODD_FLOATS)
METRICS = st.builds(
    MetricPoint,
    t_s=TIMES,
    kv_cache_usage=MAYBE,
    generation_tokens_total=MAYBE,
    iterations_total=MAYBE,
    requests_running=MAYBE,
    requests_waiting=MAYBE,
    health_status=st.sampled_from([None, 200, 503]),
)
PROCESSES = st.builds(
    ProcessInfo,
    pid=st.integers(199, 202),
    started_at_s=TIMES,
    role=st.sampled_from(["worker", "engine_core", "api_server", "other"]),
    ranks=st.builds(Ranks, tp=st.integers(-1, 3), dcp=st.one_of(st.none(), st.integers(-3, 10**9))),
    title=st.text(max_size=5),
)
SENT = st.builds(
    PromptSent,
    t_s=TIMES,
    kind=st.just("needle"),
    tokens=SIZES,
    depth=st.just(0.5),
    seed=st.just(0),
    nonce=st.just(""),
    expected=st.just(""),
    max_output_tokens=st.just(1),
)
ENDS = st.builds(
    ResponseEnd,
    t_s=TIMES,
    how=st.sampled_from(["finished", "cancelled", "error"]),
    error=st.one_of(st.none(), st.text(max_size=10)),
)
CLIENTS = st.builds(
    ClientOutcome,
    sent=st.one_of(st.none(), SENT, SENT),
    first_token_s=st.one_of(st.none(), TIMES),
    last_token_s=st.one_of(st.none(), TIMES),
    end=st.one_of(st.none(), st.none(), ENDS),
    score=st.sampled_from([None, "retrieved", "wrong"]),
)
EXITS = st.builds(
    ServerExit, at_s=TIMES, exit_code=st.one_of(st.none(), st.integers()), last_log_lines=st.just(("x", ""))
)
OBSERVATIONS = st.builds(
    Observation,
    now_s=TIMES,
    processes=st.lists(PROCESSES, max_size=4).map(tuple),
    samples=st.lists(SAMPLES, max_size=15).map(tuple),
    sampling=st.builds(SamplingStats, reason=st.one_of(st.none(), st.text(max_size=5)), errors=st.just({"a": 2})),
    metrics=st.lists(METRICS, max_size=20).map(tuple),
    kv_capacity=st.one_of(st.none(), st.builds(KvCapacity, t_s=TIMES, num_blocks=SIZES, block_size_tokens=SIZES)),
    gpus=st.lists(st.builds(GpuPoint, t_s=TIMES, index=st.just(0), utilisation_percent=MAYBE), max_size=2).map(tuple),
    cpu=st.lists(
        st.builds(CpuPoint, t_s=TIMES, span_s=TIMES, others_share=TIMES, server_share=TIMES, server_nice=SIZES),
        max_size=3,
    ).map(tuple),
    client=CLIENTS,
    server_exit=st.one_of(st.none(), st.none(), EXITS),
)
BASELINES = st.one_of(
    st.none(),
    st.just(BASELINE),
    st.builds(
        Baseline,
        kind=st.just("given"),
        seconds=TIMES,
        source=st.just("s"),
        scaled_from_tokens=st.one_of(st.none(), SIZES),
    ),
)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(observation=OBSERVATIONS, baseline=BASELINES, layers=st.sampled_from([None, 1, 3]))
def test_never_raises_and_says_the_same_twice(
    observation: Observation, baseline: Baseline | None, layers: int | None
) -> None:
    scenario = scenario_for(PrefillModel(seconds=1), layers=layers)
    verdict = judge(observation, scenario, baseline)
    assert verdict.model_dump_json() == judge(observation, scenario, baseline).model_dump_json()
    assert Verdict.model_validate_json(verdict.model_dump_json()).outcome == verdict.outcome
    if verdict.outcome == "stalled":
        assert verdict.mode
        assert verdict.kind
        assert len({item.source for item in verdict.evidence_for}) >= 2
    if verdict.outcome in ("inconclusive", "crashed"):
        assert verdict.reason
    for forecast in verdict.forecasts:
        assert forecast.low_s <= forecast.best_s <= forecast.high_s
        assert 0 <= forecast.fraction_done <= 1


WORKERS = tuple(
    ProcessInfo(pid=pid, started_at_s=1, role="worker", ranks=Ranks(dcp=pid - 200), title="") for pid in (200, 201)
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    samples=st.lists(SAMPLES, min_size=8, max_size=20),
    metrics=st.lists(METRICS, max_size=30),
    tokens=st.sampled_from([1, 100, 20_000, 10**30]),
    loops=st.booleans(),
)
def test_hostile_samples_of_a_request_in_flight_do_not_break_it(
    samples: list[StackSample], metrics: list[MetricPoint], tokens: int, loops: bool
) -> None:
    sent = PromptSent(t_s=0, kind="needle", tokens=tokens, depth=0, seed=0, nonce="", expected="", max_output_tokens=1)
    observation = Observation(
        now_s=299.0,
        processes=WORKERS,
        samples=tuple(samples),
        metrics=tuple(metrics),
        kv_capacity=KvCapacity(t_s=0, num_blocks=4096, block_size_tokens=16),
        client=ClientOutcome(sent=sent),
    )
    signature = SIGNATURE if loops else Signature(function=FUNCTION, kind="torch-fallback")
    scenario = scenario_for(PrefillModel(seconds=1)).model_copy(update={"signatures": (signature,)})
    for seconds in (0.0, 1.0, 1e6):
        judge(observation, scenario, Baseline(kind="given", seconds=seconds, source=""))


def test_a_loop_with_absurd_locals_has_no_position_but_is_still_seen() -> None:
    loop = LoopVariable(index="head_start", stop="num_heads")
    assert loop.step is None
    frame = Frame(function=FUNCTION, filename="x", line=1, locals={"head_start": 10**30, "num_heads": True})
    sample = StackSample(pid=200, started_s=10, ended_s=10, threads=(ThreadStack(frames=(frame,)),))
    sent = PromptSent(t_s=0, kind="needle", tokens=9, depth=0, seed=0, nonce="", expected="", max_output_tokens=1)
    seen = Observation(now_s=20, processes=WORKERS[:1], samples=(sample,), client=ClientOutcome(sent=sent))
    verdict = judge(seen, scenario_for(PrefillModel(seconds=1)), BASELINE)
    assert verdict.ranks[0].top_function == FUNCTION
    assert not verdict.forecasts
