"""Stored runs as a lab run leaves them: crawling at DCP 2, completed at DCP 1, crashed, open, failed to start."""

from sparkdiag.evidence.client import ClientOutcome, PromptSent, ResponseEnd
from sparkdiag.evidence.observation import Observation
from sparkdiag.evidence.processes import ProcessInfo, Ranks, ServerExit
from sparkdiag.evidence.run import DcpProof, FileProof, Host, RevisionProof, RunRecord, Timings
from sparkdiag.evidence.stacks import Frame, SamplingStats, StackSample, ThreadStack
from sparkdiag.evidence.stored import StoredRun
from sparkdiag.evidence.timeline import MetricPoint, NoteEvent, PhaseEvent
from sparkdiag.evidence.verdict import Baseline, EvidenceItem, Forecast, RankFinding, Verdict
from sparkdiag.scenario.model import (
    LoopVariable,
    PromptSettings,
    Scenario,
    ServerSettings,
    Signature,
    Suspect,
)

SUSPECT = "_fp8_mqa_logits_torch"
SHA = "3f2a9c41d07be85516f0c9e2ab73d4418c6d5e90"
READY_S = 57.2
SENT_S = 58.0

SCENARIO = Scenario(
    name="lab",
    title="The incident's dispatch on a tiny model",
    lab=True,
    server=ServerSettings(dcp=2, tp=2, chunk_tokens=2048),
    prompt=PromptSettings(tokens=20_000),
    signature=(
        Signature(
            function=SUSPECT,
            kind="torch-fallback",
            loop=(
                LoopVariable(index="head_start", step="head_chunk_size", stop="num_heads"),
                LoopVariable(index="k_start", step="k_chunk_size", stop="seq_len_kv"),
            ),
        ),
    ),
    suspect=Suspect(commit="f8f18ce66b"),
)


def _frame(function: str, filename: str, line: int, **values: int | str) -> Frame:
    return Frame(
        function=function,
        filename=f"/home/someone/env/lib/python3.11/site-packages/{filename}",
        short_filename=filename,
        line=line,
        locals=dict(values),
    )


def _worker_stack(step: int) -> tuple[Frame, ...]:
    return (
        _frame(
            SUSPECT,
            "sparklab/ops.py",
            141 + step % 2,
            head_start=step % 4,
            num_heads=4,
            k_start=512 * (step % 12),
            k_chunk_size=512,
            seq_len_kv=6000,
        ),
        _frame("fp8_fp4_mqa_logits", "sparklab/ops.py", 90),
        _frame("sparse_attn_indexer", "sparklab/indexer.py", 61, k_cache_prefix="model.layers.1.indexer"),
        _frame("LabModel.forward", "sparklab/model.py", 210),
        _frame("Worker.execute_model", "vllm/v1/worker/cpu_worker.py", 88),
        _frame("WorkerProc.worker_busy_loop", "vllm/v1/executor/multiproc_executor.py", 640),
    )


def _sample(pid: int, *, at_s: float, frames: tuple[Frame, ...]) -> StackSample:
    thread = ThreadStack(thread_id=1, thread_name="MainThread", active=True, frames=frames)
    return StackSample(pid=pid, started_s=at_s, ended_s=at_s + 0.05, threads=(thread,))


PROCESSES = (
    ProcessInfo(pid=100, started_at_s=1, role="api_server", title="python -m vllm.entrypoints.openai.api_server"),
    ProcessInfo(pid=101, parent_pid=100, started_at_s=2, role="engine_core", title="VLLM::EngineCore"),
    ProcessInfo(
        pid=102, parent_pid=101, started_at_s=3, role="worker", ranks=Ranks(tp=0, dcp=0), title="VLLM::Worker_TP0_DCP0"
    ),
    ProcessInfo(
        pid=103, parent_pid=101, started_at_s=3, role="worker", ranks=Ranks(tp=1, dcp=1), title="VLLM::Worker_TP1_DCP1"
    ),
)


def _samples(count: int) -> tuple[StackSample, ...]:
    engine = (_frame("SyncMPClient.get_output", "vllm/v1/engine/core.py", 300),)
    made = []
    for step in range(count):
        at_s = SENT_S + 1 + step
        made += [_sample(pid, at_s=at_s, frames=_worker_stack(step)) for pid in (102, 103)]
        made.append(_sample(101, at_s=at_s, frames=engine))
    return tuple(made)


def _record(verdict: Verdict | None, *, dcp: int) -> RunRecord:
    return RunRecord(
        sparkdiag_version="0.1.0",
        started_at="2026-05-26T08:15:02+00:00",
        status="finished",
        scenario=SCENARIO.model_dump(mode="json", by_alias=True),
        command=("sparkdiag", "repro", "--dcp", str(dcp)),
        environment={"spec": "lab", "kind": "lab", "key": "0123abcd"},
        server_argv=("python", "-m", "vllm.entrypoints.openai.api_server", "--port", "8123"),
        server_env={"VLLM_CPU_OMP_THREADS_BIND": "0|1"},
        revision=RevisionProof(
            asked="incident",
            sha=SHA,
            version="0.32.0",
            files=(FileProof(module="sparklab.ops", path="/x/sparklab/ops.py", sha256="ab" * 32),),
            proved=True,
            because="sparklab/ops.py as imported has the hash of the tree at the revision",
            suspect_commit="f8f18ce66b",
            contains_suspect_commit="yes",
        ),
        dcp=DcpProof(
            asked=dcp,
            size=dcp,
            witnesses=(
                "worker titles: Worker_TP0_DCP0, Worker_TP1_DCP1",
                f"argv: --decode-context-parallel-size {dcp}",
                f"probe: dcp_world_size {dcp} in 2 workers",
            ),
        ),
        host=Host(platform="Linux", cpu="some CPU", cores=2, memory_gib=8.0, python="3.11.7", sparkdiag="0.1.0"),
        timings_s=Timings(environment_s=0.8, ready_s=READY_S, prompt_to_verdict_s=21.5, shutdown_s=1.2, total_s=84.0),
        verdict=verdict,
    )


def _stored(verdict: Verdict | None, *, dcp: int, observation: Observation) -> StoredRun:
    return StoredRun(
        run_dir="runs/20260526T081502Z-lab-3f2a9c41d0-dcp2",
        record=_record(verdict, dcp=dcp),
        observation=observation,
        phases=(
            PhaseEvent(t_s=1.0, phase="launching"),
            PhaseEvent(t_s=READY_S, phase="ready"),
            PhaseEvent(t_s=SENT_S, phase="observing"),
        ),
        notes=(NoteEvent(t_s=0.9, source="environment", text="the lab environment was there already"),),
    )


SENT = PromptSent(
    t_s=SENT_S, kind="needle", tokens=20_000, depth=0.35, seed=0, nonce="n1", expected="k3v9", max_output_tokens=64
)


def observed(*, steps: int = 20, client: ClientOutcome | None = None) -> Observation:
    metrics = tuple(
        MetricPoint(t_s=SENT_S + step / 2, kv_cache_usage=min(0.02 * step, 0.5), prompt_tokens_total=0.0)
        for step in range(2 * steps)
    )
    return Observation(
        now_s=SENT_S + steps + 1.5,
        ready_at_s=READY_S,
        processes=PROCESSES,
        samples=_samples(steps),
        sampling=SamplingStats(taken=3 * steps, late=1, cpu_s=1.4, longest_s=0.3),
        metrics=metrics,
        client=client or ClientOutcome(sent=SENT),
    )


CRAWLING_VERDICT = Verdict(
    outcome="stalled",
    mode="crawling",
    kind="torch-fallback",
    function=SUSPECT,
    role="worker",
    baseline=Baseline(kind="fast-kernel", seconds=8.2, source="numba kernel, 10 chunks of 2048 timed here"),
    forecasts=(
        Forecast(low_s=210, best_s=240, high_s=290, fraction_done=0.09, source="loop-variables"),
        Forecast(low_s=190, best_s=250, high_s=330, fraction_done=0.11, source="kv-cache-usage"),
    ),
    ranks=(
        RankFinding(
            pid=102,
            name="Worker_TP0_DCP0",
            top_function=SUSPECT,
            top_share=0.95,
            samples=20,
            loop_progress="call 3 of layer 1: head 2/4, key 1024/6000",
        ),
        RankFinding(pid=103, name="Worker_TP1_DCP1", top_function=SUSPECT, top_share=0.9, samples=20),
    ),
    evidence_for=(
        EvidenceItem(source="stacks", text=f"{SUSPECT} is on 38 of 40 stacks of both workers"),
        EvidenceItem(source="loop-variables", text="the forecast of 240 s is 29.3 times the healthy 8.2 s"),
    ),
    evidence_against=(EvidenceItem(source="kv-cache-usage", text="KV use rose from 0 % to 38 %: it does advance"),),
    decided_at_s=SENT_S + 21.5,
)

CRAWLING = _stored(CRAWLING_VERDICT, dcp=2, observation=observed())

COMPLETED = _stored(
    Verdict(
        outcome="completed",
        needle="retrieved",
        baseline=Baseline(kind="reference", seconds=9.0, source="the scenario"),
        evidence_for=(EvidenceItem(source="needle", text="the answer is k3v9"),),
        decided_at_s=SENT_S + 9,
    ),
    dcp=1,
    observation=observed(
        steps=4,
        client=ClientOutcome(
            sent=SENT,
            first_token_s=SENT_S + 8.4,
            last_token_s=SENT_S + 8.9,
            text="k3v9",
            end=ResponseEnd(t_s=SENT_S + 9, how="finished", finish_reason="stop"),
            score="retrieved",
        ),
    ),
)

CRASHED = _stored(
    Verdict(outcome="crashed", reason="Worker_TP1_DCP1 was killed by SIGKILL", decided_at_s=SENT_S + 4),
    dcp=2,
    observation=observed(steps=3).model_copy(
        update={"server_exit": ServerExit(at_s=SENT_S + 4, signal="SIGKILL", last_log_lines=("killed",))}
    ),
)

INCONCLUSIVE = _stored(
    Verdict(
        outcome="inconclusive",
        reason="slow, but below 10 times the baseline at the end of the time given",
        forecasts=(Forecast(low_s=30, best_s=40, high_s=60, fraction_done=0.5, source="loop-variables"),),
    ),
    dcp=2,
    observation=observed(),
)

FAILED = _stored(None, dcp=2, observation=Observation(now_s=0)).model_copy(
    update={
        "record": _record(None, dcp=2).model_copy(
            update={"status": "failed", "error": "the server never became ready", "dcp": None}
        ),
        "phases": (),
        "notes": (),
    }
)

EVERY = {
    "crawling": CRAWLING,
    "completed": COMPLETED,
    "crashed": CRASHED,
    "inconclusive": INCONCLUSIVE,
    "failed": FAILED,
}
