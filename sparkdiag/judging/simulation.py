"""A small model of a chunked prefill as the sampler sees it: for tests of the judge and the calibration of forecasts.

Nothing is measured here. Chunks cost ``a + b * keys``, split over layers, each layer with one call of the suspect
function and some other work; the pace wanders and jumps; samples jitter, come late or fail; KV use rises when a chunk
is scheduled.
"""

import bisect
import math
import random
from dataclasses import dataclass
from typing import Literal

from sparkdiag.evidence.client import ClientOutcome, PromptSent, ResponseEnd
from sparkdiag.evidence.observation import Observation
from sparkdiag.evidence.processes import ProcessInfo, Ranks
from sparkdiag.evidence.stacks import Frame, LocalValue, StackSample, ThreadStack
from sparkdiag.evidence.timeline import KvCapacity, MetricPoint

Behaviour = Literal["suspect", "gpu-wait", "collective", "idle", "forward"]


@dataclass(frozen=True, slots=True)
class PrefillModel:
    """One simulated run. Sizes default to the lab's order of magnitude."""

    seconds: float
    """Time to first token without noise."""
    seed: int = 0
    tokens: int = 20_000
    chunk_tokens: int = 512
    layers: int = 3
    heads: int = 8
    keys_per_pass: int = 256
    dcp: int = 2
    growth: float = 0.8
    """Share of the time that grows with the keys."""
    inside: float = 0.92
    """Share of a layer's time spent in the suspect call."""
    wander: float = 0.1
    """Relative size of the pace's slow wandering."""
    period_s: float = 1.6
    late: float = 0.05
    failed: float = 0.02
    metrics_period_s: float = 1.0
    lookahead: int = 1
    cached_tokens: int = 0
    ranks: tuple[Behaviour, ...] = ("suspect", "suspect")
    freeze_at: float | None = None
    """Share of the work at which everything stops for good."""
    slow_start: tuple[float, float] = (0.0, 1.0)
    """For so many seconds everything takes so many times as long (a busy host, compiling kernels)."""
    function: str = "_fp8_mqa_logits_torch"
    sent_s: float = 100.0


@dataclass(frozen=True, slots=True)
class _Call:
    start_s: float
    inside_s: float
    end_s: float
    chunk: int
    layer: int
    end_token: int
    rows: int


@dataclass(frozen=True, slots=True)
class SimulatedRun:
    """A whole run; ``until`` cuts it as it stood at a moment."""

    model: PrefillModel
    first_token_s: float | None
    """On the run clock; None when it froze."""
    whole: Observation

    @property
    def truth_s(self) -> float:
        """What a forecast should say."""
        return math.inf if self.first_token_s is None else self.first_token_s - self.model.sent_s

    def until(self, after_s: float) -> Observation:
        """The observation ``after_s`` after sending."""
        now = self.model.sent_s + after_s
        whole, client = self.whole, self.whole.client
        seen = self.first_token_s is not None and self.first_token_s <= now
        finished = client.end is not None and client.end.t_s <= now
        return whole.model_copy(
            update={
                "now_s": now,
                "samples": tuple(sample for sample in whole.samples if sample.ended_s <= now),
                "metrics": tuple(point for point in whole.metrics if point.t_s <= now),
                "client": client
                if finished
                else client.model_copy(
                    update={"end": None, "score": None, "first_token_s": self.first_token_s if seen else None}
                ),
            }
        )


def _calls(model: PrefillModel, rng: random.Random) -> list[_Call]:
    ends = [*range(model.cached_tokens + model.chunk_tokens, model.tokens, model.chunk_tokens), model.tokens]
    starts = [model.cached_tokens, *ends[:-1]]
    mean_end = sum(ends) / len(ends)
    shares = [
        (end - start) / model.chunk_tokens * (1 - model.growth + model.growth * end / mean_end)
        for start, end in zip(starts, ends, strict=True)
    ]
    scale = model.seconds / sum(shares)
    calls, now, pace = [], model.sent_s + rng.uniform(0.01, 0.3), 0.0
    for chunk, (start, end, share) in enumerate(zip(starts, ends, shares, strict=True)):
        for layer in range(model.layers):
            pace = 0.97 * pace + rng.gauss(0, model.wander * 0.24)
            seconds = share * scale / model.layers * math.exp(pace + rng.gauss(0, 0.04))
            if now < model.sent_s + model.slow_start[0]:
                seconds *= model.slow_start[1]
            other = seconds * (1 - model.inside)
            calls.append(
                _Call(
                    start_s=now + other,
                    inside_s=seconds - other,
                    end_s=now + seconds,
                    chunk=chunk,
                    layer=layer,
                    end_token=end,
                    rows=end - start,
                )
            )
            now += seconds
    return calls


def _frame(function: str, filename: str, line: int, **values: LocalValue) -> Frame:
    return Frame(function=function, filename=filename, line=line, locals=values)


_OUTER = (
    _frame("GPUModelRunner.execute_model", "vllm/v1/worker/gpu_model_runner.py", 4394),
    _frame("Worker.execute_model", "vllm/v1/worker/gpu_worker.py", 1147),
    _frame("WorkerProc.worker_busy_loop", "vllm/v1/executor/multiproc_executor.py", 999),
)
_IDLE = (
    _frame("sched_yield", "vllm/distributed/utils.py", 48),
    _frame("MessageQueue.acquire_read", "vllm/distributed/device_communicators/shm_broadcast.py", 698),
    _frame("MessageQueue.dequeue", "vllm/distributed/device_communicators/shm_broadcast.py", 779),
    _OUTER[-1],
)
_GPU_WAIT = ThreadStack(
    os_thread_id=2,
    thread_name="WorkerAsyncOutputCopy",
    frames=(
        _frame("Event.synchronize", "torch/cuda/streams.py", 254),
        _frame("AsyncGPUModelRunnerOutput.get_output", "vllm/v1/worker/gpu_model_runner.py", 313),
    ),
)


def _indexer(call: _Call, line: int) -> tuple[Frame, ...]:
    prefix = f"model.layers.{call.layer}.self_attn.indexer.k_cache"
    return (
        _frame("sparse_attn_indexer", "vllm/sparse_attn_indexer.py", line, k_cache_prefix=prefix),
        _frame("LlamaModel.forward", "vllm/model.py", 80),
        *_OUTER,
    )


def _suspect_frames(model: PrefillModel, call: _Call, at_s: float, rng: random.Random | None) -> tuple[Frame, ...]:
    keys = -(-call.end_token // model.dcp)
    inner = -(-keys // model.keys_per_pass)
    part = min(0.999999, max(0.0, (at_s - call.start_s) / call.inside_s))
    passed = int(part * model.heads * inner)
    suspect = _frame(
        model.function,
        "sparklab/fallbacks.py",
        rng.choice((40, 41, 42)) if rng else 41,
        seq_len=call.rows,
        num_heads=model.heads,
        seq_len_kv=keys,
        head_chunk_size=1,
        k_chunk_size=model.keys_per_pass,
        head_start=passed // inner,
        k_start=passed % inner * model.keys_per_pass,
    )
    return (suspect, _frame("fp8_fp4_mqa_logits", "sparklab/dispatch.py", 70), *_indexer(call, 479))


def _threads(
    model: PrefillModel, behaviour: Behaviour, call: _Call, *, at_s: float, rng: random.Random, frozen: bool
) -> tuple[ThreadStack, ...]:
    extra: tuple[ThreadStack, ...] = ()
    if behaviour == "suspect" and call.start_s <= at_s:
        frames = _suspect_frames(model, call, at_s, None if frozen else rng)
    elif behaviour in ("suspect", "forward"):
        frames = (_frame("linear", "torch/nn/functional.py", 9 if frozen else rng.choice((9, 10))), *_OUTER)
    elif behaviour == "collective":
        frames = (_frame("all_gather", "torch/distributed/distributed_c10d.py", 20), *_indexer(call, 499))
    else:
        frames, extra = _IDLE, (_GPU_WAIT,) if behaviour == "gpu-wait" else ()
    return (ThreadStack(os_thread_id=1, thread_name="MainThread", active=True, frames=frames), *extra)


def _samples(model: PrefillModel, calls: list[_Call], *, stop_s: float, rng: random.Random) -> list[StackSample]:
    starts = [call.end_s for call in calls]
    frozen_s = _frozen_s(model, calls)
    samples = []
    for rank, behaviour in enumerate(model.ranks):
        now = model.sent_s + rng.uniform(0, model.period_s)
        while now < stop_s:
            at = now if frozen_s is None else min(now, frozen_s)
            index = min(bisect.bisect_left(starts, at), len(calls) - 1)
            frozen = frozen_s is not None and now >= frozen_s
            took = rng.uniform(0.02, 0.06) if rng.random() > model.late else rng.uniform(3, 20)
            failed = rng.random() < model.failed
            threads = _threads(model, behaviour, calls[index], at_s=at, rng=rng, frozen=frozen)
            samples.append(
                StackSample(
                    pid=200 + rank,
                    started_s=now,
                    ended_s=now + took,
                    threads=() if failed else threads,
                    error="Failed to suspend process" if failed else None,
                    late=took > 1,
                )
            )
            now += max(took, model.period_s * rng.uniform(0.8, 1.2))
    return sorted(samples, key=lambda sample: sample.ended_s)


def _frozen_s(model: PrefillModel, calls: list[_Call]) -> float | None:
    if model.freeze_at is None:
        return None
    call = calls[min(len(calls) - 1, int(model.freeze_at * len(calls)))]
    return call.start_s + call.inside_s * 0.37


_BLOCK_TOKENS = 16
_BLOCKS = 4096


def _metrics(model: PrefillModel, calls: list[_Call], *, stop_s: float) -> list[MetricPoint]:
    begins: dict[int, float] = {}
    for call in calls:
        begins.setdefault(call.chunk, call.start_s)
    token_ends = sorted({call.chunk: call.end_token for call in calls}.items())
    scheduled = [(begins[max(0, chunk - model.lookahead)], end) for chunk, end in token_ends]
    frozen_s = _frozen_s(model, calls)
    points, now = [], model.sent_s - 1.0
    while now < stop_s:
        at = now if frozen_s is None else min(now, frozen_s)
        tokens = max((end for begin, end in scheduled if begin <= at), default=0)
        blocks = math.ceil(tokens / (_BLOCK_TOKENS * model.dcp))
        points.append(
            MetricPoint(
                t_s=now,
                kv_cache_usage=blocks / _BLOCKS,
                requests_running=1.0 if now >= model.sent_s else 0.0,
                generation_tokens_total=8.0,
                iterations_total=8.0,
                health_status=200,
            )
        )
        now += model.metrics_period_s
    return points


def simulate(model: PrefillModel, *, after_freeze_s: float = 200.0) -> SimulatedRun:
    """Run the model; deterministic for a seed."""
    rng = random.Random(model.seed)  # noqa: S311 - noise, not secrets
    calls = _calls(model, rng)
    frozen_s = _frozen_s(model, calls)
    first = calls[-1].end_s if frozen_s is None else None
    stop = first if first is not None else (frozen_s or model.sent_s) + after_freeze_s
    workers = tuple(
        ProcessInfo(
            pid=200 + rank,
            parent_pid=199,
            started_at_s=1.0,
            role="worker",
            ranks=Ranks(tp=rank, dcp=rank if model.dcp > 1 else None),
            title=f"VLLM::Worker_TP{rank}",
        )
        for rank in range(len(model.ranks))
    )
    sent = PromptSent(
        t_s=model.sent_s,
        kind="needle",
        tokens=model.tokens,
        depth=0.35,
        seed=model.seed,
        nonce="n",
        expected="x",
        max_output_tokens=16,
    )
    end = None if first is None else ResponseEnd(t_s=first + 0.5, how="finished", finish_reason="stop")
    whole = Observation(
        now_s=stop + 1.0,
        ready_at_s=50.0,
        processes=workers,
        samples=tuple(_samples(model, calls, stop_s=stop, rng=rng)),
        metrics=tuple(_metrics(model, calls, stop_s=stop)),
        kv_capacity=KvCapacity(t_s=60.0, num_blocks=_BLOCKS, block_size_tokens=_BLOCK_TOKENS),
        client=ClientOutcome(sent=sent, first_token_s=first, end=end, score="retrieved" if end else None),
    )
    return SimulatedRun(model=model, first_token_s=first, whole=whole)
