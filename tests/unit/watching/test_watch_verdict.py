"""From samples to looks, from a diagnosis to a verdict: nothing is called a stall that the diagnosis does not."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.evidence.diagnosis import (
    CANNOT_TELL,
    Diagnosis,
    DiagnosisKind,
    Finding,
    LoopFinding,
    Movement,
    ProcessDiagnosis,
    Reason,
    Traffic,
)
from sparkdiag.evidence.processes import ProcessInfo, Ranks
from sparkdiag.evidence.stacks import Frame, StackSample, ThreadStack
from sparkdiag.evidence.verdict import Verdict
from sparkdiag.watching.looks import judge_samples, looks_of
from sparkdiag.watching.verdict import (
    is_suspect,
    named_by,
    nothing_bad,
    verdict_of,
    with_what_came_and_went,
)

KINDS = st.sampled_from(get_args(DiagnosisKind))
FINDINGS = st.sampled_from(get_args(Finding))
FALLBACK = "_fp8_mqa_logits_torch"


def process(pid: int, *, role: str = "worker", tp: int | None = None) -> ProcessInfo:
    title = f"VLLM::Worker_TP{tp}" if tp is not None else "VLLM::EngineCore"
    return ProcessInfo(pid=pid, started_at_s=1.0, role=role, ranks=Ranks(tp=tp), title=title)  # type: ignore[arg-type]


def sample(pid: int, at_s: float, *functions: str, **more: object) -> StackSample:
    frames = tuple(
        Frame(function=name, filename="vllm/v1/worker/x.py", line=7, locals={"k_start": int(at_s), "layer": "m.0"})
        for name in functions
    )
    thread = ThreadStack(thread_name="MainThread", active=True, frames=frames)
    return StackSample(pid=pid, started_s=at_s, ended_s=at_s + 0.1, threads=(thread,), **more)  # type: ignore[arg-type]


def found(kind: DiagnosisKind, finding: Finding, *, loops: bool = False) -> Diagnosis:
    loop = LoopFinding(pid=5, function=FALLBACK, variable="k_start", first=1, last=9, looks=3)
    moved = Movement(looks=3, over_s=40, what="line", text="moved", loops=(loop,) if loops else ())
    decides = ProcessDiagnosis(
        pid=5, name="Worker_TP0", role="worker", kind=kind, function=FALLBACK, movement=moved, differs=True
    )
    return Diagnosis(
        kind=kind,
        finding=finding,
        confidence="high",
        process="Worker_TP0",
        function=FALLBACK,
        processes=(decides,),
        looks=3,
        reasons_for=(Reason(source="metrics", text="1 running"), Reason(source="Worker_TP0", text="in 3 looks")),
        reasons_against=(Reason(source="process set", text="another differs"),),
        caveats=("one look",),
    )


def test_a_sample_becomes_a_look_with_its_rank_and_without_what_may_not_be_kept() -> None:
    late = sample(5, 9, "forward", late=True)
    failed = StackSample(pid=5, started_s=1, ended_s=2, error="torn")
    (look,) = looks_of([sample(5, 3, FALLBACK, "execute_model"), late, failed], [process(5, tp=1)])
    assert (look.tool, look.pid, look.role, look.ranks.label, look.at_s) == ("sparkdiag", 5, "worker", "TP1", 3.05)
    (thread,) = look.threads
    assert [frame.name for frame in thread.frames] == [FALLBACK, "execute_model"]
    assert (thread.state, thread.frames[0].locals) == ("active", {"k_start": 3})
    assert look.model_validate(look.model_dump()) == look, "built without validation, but valid"


def test_a_fallback_that_stands_still_under_a_request_is_a_stall_and_one_that_had_no_time_is_none() -> None:
    worker = [process(5, tp=0)]
    stack = (FALLBACK, "forward", "execute_model", "worker_busy_loop")
    still = Traffic(running=1, waiting=0, moved=False, over_s=60)
    looks = [
        sample(5, at_s, *stack).model_copy(
            update={"threads": (sample(5, 0, *stack).threads[0],)}  # the same loop variables in every look
        )
        for at_s in (0.0, 20.0, 60.0)
    ]
    stuck = judge_samples(looks, processes=worker, traffic=still)
    assert (stuck.kind, stuck.finding) == ("torch-fallback", "stalled")
    verdict = verdict_of(stuck, looks=looks_of(looks, worker), now_s=60)
    assert (verdict.outcome, verdict.mode, verdict.function) == ("stalled", "stuck", FALLBACK)
    (rank,) = verdict.ranks
    assert (rank.name, rank.top_share, rank.samples) == ("Worker_TP0", 1.0, 3)
    short = judge_samples(looks[:2], processes=worker, traffic=still.model_copy(update={"over_s": 20.0}))
    assert short.finding != "stalled"
    assert verdict_of(short, looks=(), now_s=20).outcome == "inconclusive"


@given(KINDS, FINDINGS, st.booleans())
def test_only_a_stalled_finding_is_a_stall_and_only_ordinary_work_is_well(
    kind: DiagnosisKind, finding: Finding, loops: bool
) -> None:
    diagnosis = found(kind, finding, loops=loops)
    verdict = verdict_of(diagnosis, looks=(), now_s=1)
    assert (verdict.outcome == "stalled") == (finding == "stalled")
    if verdict.outcome == "stalled":
        assert verdict.mode == ("crawling" if loops else "stuck")
        assert (verdict.kind, verdict.function, verdict.role) == (kind, FALLBACK, "worker")
    else:
        assert verdict.reason
        assert verdict.kind is None
    if nothing_bad(diagnosis):
        assert finding in ("healthy", "moving") and not is_suspect(diagnosis)
    assert {item.source for item in verdict.evidence_for} == {"metrics", "stacks"}
    assert [item.source for item in verdict.evidence_against] == ["process-tree", "sampling"]


@pytest.mark.parametrize("kind", ["torch-fallback", "jit-compile", "scheduler-loop", "kv-transfer", "gil", "warmup"])
def test_what_names_a_known_stall_is_never_called_well(kind: DiagnosisKind) -> None:
    assert not nothing_bad(found(kind, "moving"))


def test_what_came_and_went_makes_a_moving_server_undecided() -> None:
    worker = [process(5, tp=0)]
    busy = [sample(5, at_s, FALLBACK, "forward", "execute_model", "worker_busy_loop") for at_s in (1.0, 2.0)]
    idle = [sample(5, at_s, "acquire_read", "dequeue", "worker_busy_loop") for at_s in range(3, 12)]
    looks = looks_of([*busy, *idle], worker)
    well = found("idle", "healthy")
    open_ = with_what_came_and_went(well, looks)
    assert open_.finding == "unknown"
    assert "torch-fallback in 2 of its looks" in open_.reasons_against[-1].text
    assert with_what_came_and_went(well, looks_of([busy[0], *idle], worker)) == well, "a passing moment is none"
    stalled = found("idle", "stalled")
    assert with_what_came_and_went(stalled, looks) == stalled


def test_a_stall_whose_place_the_judge_did_not_know_is_named_by_the_diagnosis() -> None:
    unnamed = Verdict(outcome="stalled", mode="crawling", kind="unknown")
    named = named_by(found("torch-fallback", "moving"), unnamed)
    assert (named.kind, named.function) == ("torch-fallback", FALLBACK)
    assert named.evidence_for
    assert named_by(found("forward", "moving"), unnamed) == unnamed
    assert named_by(found("torch-fallback", "moving").model_copy(update={"confidence": "low"}), unnamed) == unnamed
    other = Verdict(outcome="stalled", mode="stuck", kind="collective-wait", function="all_gather")
    assert named_by(found("torch-fallback", "moving"), other) == other
    done = Verdict(outcome="completed", needle="retrieved")
    assert named_by(found("torch-fallback", "moving"), done) == done


def test_what_cannot_be_told_is_no_suspect() -> None:
    assert not any(is_suspect(found(kind, "unknown")) for kind in CANNOT_TELL)
