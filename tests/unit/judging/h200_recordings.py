"""Reads tests/recordings/h200 into the values the judge takes. Test support, not a parser for users' dumps."""

import json
import re
from pathlib import Path
from typing import Any

from sparkdiag.evidence.client import ClientOutcome, PromptSent, ResponseEnd
from sparkdiag.evidence.observation import Observation
from sparkdiag.evidence.processes import ProcessInfo, Ranks
from sparkdiag.evidence.stacks import Frame, LocalValue, StackSample, ThreadStack
from sparkdiag.evidence.timeline import GpuPoint, KvCapacity, MetricPoint
from sparkdiag.evidence.verdict import Baseline
from sparkdiag.scenario.model import (
    LayerClock,
    LoopVariable,
    Patience,
    PromptSettings,
    Scenario,
    ServerSettings,
    Signature,
    Work,
)

FOLDER = Path(__file__).parents[2] / "recordings" / "h200"
LOOP_FUNCTION = "mqa_logits_torch_loop"
START_S = 100.0
"""Where the recorder's zero lies on the run clock."""

_THREAD = re.compile(r'^Thread (\d+) \(([^)]*)\): "(.*)"$')
_FRAME = re.compile(r"^ {4}(\S.*) \((.+):(\d+)\)$")
_LOCAL = re.compile(r"^ {12}(\w+): (.*)$")


def _local(text: str) -> LocalValue:
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    if text in ("True", "False"):
        return text == "True"
    return text[1:-1] if re.fullmatch(r'"[\w.]+"', text) else None


def _kept(name: str, value: LocalValue) -> bool:
    return isinstance(value, (bool, int)) or name == "k_cache_prefix"


def threads_of_text(name: str) -> tuple[ThreadStack, ...]:
    """A text dump (with or without --locals)."""
    threads: list[dict[str, Any]] = []
    for line in (FOLDER / name).read_text().splitlines():
        if found := _THREAD.match(line):
            state = found[2]
            threads.append({"os_thread_id": int(found[1]), "thread_name": found[3], "active": "active" in state})
            threads[-1]["frames"] = []
        elif threads and (found := _FRAME.match(line)):
            frames = threads[-1]["frames"]
            frames.append({"function": found[1], "filename": found[2], "line": int(found[3]), "locals": {}})
        elif threads and (found := _LOCAL.match(line)):
            frames = threads[-1]["frames"]
            if frames and _kept(found[1], value := _local(found[2])):
                frames[-1]["locals"][found[1]] = value
    return tuple(ThreadStack.model_validate(thread) for thread in threads)


def threads_of_json(name: str) -> tuple[ThreadStack, ...]:
    """A ``py-spy dump --json --locals``."""
    threads = json.loads((FOLDER / name).read_text())
    return tuple(
        ThreadStack(
            os_thread_id=thread["os_thread_id"],
            thread_name=thread["thread_name"],
            active=thread["active"],
            frames=tuple(
                Frame(
                    function=frame["name"],
                    filename=frame["filename"],
                    line=frame["line"],
                    locals={
                        item["name"]: value
                        for item in frame["locals"]
                        if _kept(item["name"], value := _local(item["repr"] or ""))
                    },
                )
                for frame in thread["frames"]
            ),
        )
        for thread in threads
    )


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / name).read_text().splitlines()]


def metric_points(name: str) -> tuple[MetricPoint, ...]:
    points = []
    for row in rows(name):
        metrics = row["m"]
        points.append(
            MetricPoint(
                t_s=START_S + row["t"],
                kv_cache_usage=metrics["kv_cache_usage_perc"],
                prompt_tokens_total=metrics["prompt_tokens_total"],
                generation_tokens_total=metrics["generation_tokens_total"],
                iterations_total=metrics["iteration_tokens_total_count"],
                requests_running=metrics["num_requests_running"],
                requests_waiting=metrics["num_requests_waiting"],
                health_status=row["health"],
            )
        )
    return tuple(points)


def gpu_points(name: str) -> tuple[GpuPoint, ...]:
    return tuple(
        GpuPoint(t_s=START_S + row["t"], index=index, utilisation_percent=gpu[0], power_w=gpu[3])
        for row in rows(name)
        for index, gpu in enumerate(row["gpu"])
    )


def workers(count: int = 2, *, dcp: bool = True) -> tuple[ProcessInfo, ...]:
    return tuple(
        ProcessInfo(
            pid=2182 + rank,
            parent_pid=2073,
            started_at_s=1.0,
            role="worker",
            ranks=Ranks(tp=rank, dcp=rank if dcp else None),
            title=f"VLLM::Worker_TP{rank}" + (f"_DCP{rank}" if dcp else ""),
        )
        for rank in range(count)
    )


def scenario(*, tokens: int, dcp: int, min_samples: int = 5, settle_s: float = 1.0, loops: bool = True) -> Scenario:
    loop = (
        LoopVariable(index="head_start", step="head_chunk_size", stop="num_heads"),
        LoopVariable(index="k_start", step="k_chunk_size", stop="num_keys"),
    )
    return Scenario(
        name="h200",
        title="H200 recordings",
        server=ServerSettings(dcp=dcp, tp=2, chunk_tokens=8192),
        prompt=PromptSettings(tokens=tokens),
        signatures=(
            Signature(
                function=LOOP_FUNCTION,
                kind="torch-fallback",
                loop=loop if loops else (),
                call_identity=("num_rows", "num_keys", "num_heads"),
                rows="num_rows",
                keys="num_keys",
                heads="num_heads",
            ),
        ),
        layer_clock=LayerClock(function="sparse_attn_indexer", variable="k_cache_prefix"),
        work=Work(layers=6),
        patience=Patience(stuck_s=60, settle_s=settle_s, min_samples=min_samples),
    )


def baseline(seconds: float) -> Baseline:
    return Baseline(kind="control-run", seconds=seconds, source="the same prompt at DCP 1 on the same GPUs")


def client(*, tokens: int, sent_s: float, first_token_s: float | None, now_s: float) -> ClientOutcome:
    sent = PromptSent(
        t_s=sent_s, kind="needle", tokens=tokens, depth=0.5, seed=7, nonce="", expected="", max_output_tokens=4
    )
    arrived = first_token_s is not None and first_token_s <= now_s
    end = ResponseEnd(t_s=first_token_s or 0, how="finished", finish_reason="length") if arrived else None
    return ClientOutcome(sent=sent, first_token_s=first_token_s if arrived else None, end=end)


class Replay:
    """A recorded timeline with the recorded dumps repeated beside it, cut at any moment."""

    def __init__(
        self, name: str, *, tokens: int, dcp: int, ttft_s: float, stacks: list[StackSample], sent_after_s: float = 0.0
    ) -> None:
        self.tokens, self.dcp, self.ttft_s = tokens, dcp, ttft_s
        self.sent_s = START_S + sent_after_s
        self.metrics, self.gpus, self.stacks = metric_points(name), gpu_points(name), stacks

    def until(self, after_s: float) -> Observation:
        now = self.sent_s + after_s
        return Observation(
            now_s=now,
            processes=workers(dcp=self.dcp > 1),
            samples=tuple(sample for sample in self.stacks if sample.ended_s <= now),
            metrics=tuple(point for point in self.metrics if point.t_s <= now),
            gpus=tuple(gpu for gpu in self.gpus if gpu.t_s <= now),
            kv_capacity=KvCapacity(t_s=1.0, num_blocks=4300, block_size_tokens=64),
            client=client(tokens=self.tokens, sent_s=self.sent_s, first_token_s=self.sent_s + self.ttft_s, now_s=now),
        )


def sample(pid: int, at_s: float, threads: tuple[ThreadStack, ...]) -> StackSample:
    return StackSample(pid=pid, started_s=at_s - 0.01, ended_s=at_s + 0.01, threads=threads)


def without_locals(threads: tuple[ThreadStack, ...]) -> tuple[ThreadStack, ...]:
    return tuple(
        thread.model_copy(update={"frames": tuple(frame.model_copy(update={"locals": {}}) for frame in thread.frames)})
        for thread in threads
    )


def slow_stacks(*, until_s: float, every_s: float) -> list[StackSample]:
    """The recorded dumps of the slow run, 11 of 12 in the loop as recorded (55 of 60); where in the loop is left out,
    for it was not recorded over time."""
    looping = without_locals(threads_of_json("dcp2slow-worker0-locals.json"))
    between = threads_of_text("dcp2fast-worker0.txt")
    times = [START_S + 0.4 + step * every_s for step in range(int(until_s / every_s))]
    return [
        sample(pid, at + 0.02 * (pid - 2182), between if step % 12 == 11 else looping)
        for step, at in enumerate(times)
        for pid in (2182, 2183)
    ]


def healthy_stacks(*, until_s: float, every_s: float, dump: str) -> list[StackSample]:
    threads = threads_of_text(dump)
    times = [START_S + 0.1 + step * every_s for step in range(int(until_s / every_s))]
    return [sample(pid, at, threads) for at in times for pid in (2182, 2183)]
