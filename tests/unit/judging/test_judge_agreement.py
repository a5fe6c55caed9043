"""What the source says beside what the stacks show: never more than the samples bear out."""

import random

import pytest

from sparkdiag.evidence.agreement import RouteAgreement
from sparkdiag.evidence.client import ClientOutcome, PromptSent
from sparkdiag.evidence.observation import Observation
from sparkdiag.evidence.processes import ProcessInfo
from sparkdiag.evidence.route import NotUnderstood, Reached, Route, RouteConfig, TrailStep, Truth
from sparkdiag.evidence.run import DcpProof, PredictedRoute, RevisionProof, RunRecord
from sparkdiag.evidence.stacks import Frame, SamplingStats, StackSample, ThreadStack
from sparkdiag.judging.agreement import call_chain, compare
from sparkdiag.scenario.load import load_scenario
from sparkdiag.scenario.route import RouteSettings

KERNELS = ("_fp8_mqa_logits_torch", "fp8_mqa_logits_triton", "fp8_mqa_topk_triton")
SCENARIO = load_scenario("lab").model_copy(update={"route": RouteSettings(kernels=KERNELS)})
SHA = "a" * 40
ENTRY, DISPATCH, SM12X = "sparse_attn_indexer", "fp8_fp4_mqa_logits", "_fp8_mqa_logits_sm12x"
TORCH, TRITON = "_fp8_mqa_logits_torch", "fp8_mqa_logits_triton"
FUSED, FUSED_KERNEL = "fp8_fp4_mqa_topk_indices", "fp8_mqa_topk_triton"
HELPER = "_fp8_mqa_logits_head_chunk_size"
OUTER = ("SparseAttnIndexer.forward", "Worker.execute_model", "WorkerProc.worker_busy_loop")


def guard(function: str, depth: int, source: str, value: Truth, because: str = "") -> TrailStep:
    return TrailStep(
        kind="guard",
        depth=depth,
        function=function,
        path=f"lab/{function}.py",
        line=10,
        source=source,
        value=value,
        because=because,
    )


def call(function: str, depth: int, source: str) -> TrailStep:
    return TrailStep(kind="call", depth=depth, function=function, path=f"lab/{function}.py", line=20, source=source)


TORCH_TRAIL = (
    guard(ENTRY, 0, "dcp_world_size <= 1", "false", "--dcp 2"),
    call(ENTRY, 0, f"{DISPATCH}(clean_logits=False)"),
    call(DISPATCH, 1, f"{SM12X}(clean_logits=False)"),
    guard(SM12X, 2, "clean_logits", "false", "clean_logits=False"),
    call(SM12X, 2, f"{TORCH}()"),
)
FUSED_TRAIL = (
    guard(ENTRY, 0, "dcp_world_size <= 1", "true", "--dcp 1"),
    call(ENTRY, 0, f"{FUSED}()"),
    guard(FUSED, 1, "q_scale is not None", "false", "fp8 cache"),
    call(FUSED, 1, f"{FUSED_KERNEL}()"),
)


def route(function: str = TORCH, trail: tuple[TrailStep, ...] = TORCH_TRAIL, **changes: object) -> Route:
    reached = Reached(function=function, path="lab/kernels.py", line=1, trail=trail)
    made = Route(
        revision=SHA,
        scenario="lab",
        config=RouteConfig(dcp=2),
        entry=ENTRY,
        entry_path="lab/entry.py",
        entry_line=1,
        reached=(reached,),
        exact=True,
    )
    return made.model_copy(update=changes)


def record(predicted: Route | None, *, dcp: int = 2, sha: str = SHA, proved: bool = True) -> RunRecord:
    return RunRecord(
        sparkdiag_version="0",
        started_at="",
        status="finished",
        scenario={},
        command=(),
        revision=RevisionProof(sha=sha, proved=proved),
        dcp=DcpProof(asked=dcp, size=dcp),
        predicted=PredictedRoute(route=predicted, problem=None if predicted else "no entry function"),
    )


def stack(*functions: str, line: int = 30) -> ThreadStack:
    """Innermost first; what calls the entry is put below. Guards stand at line 10, calls of a trail at line 20."""
    frames = tuple(Frame(function=name, filename="/x.py", line=line) for name in (*functions, *OUTER))
    return ThreadStack(thread_name="MainThread", frames=frames)


def seen(*threads: ThreadStack, first_token_s: float | None = None, **changes: object) -> Observation:
    """One sample a second of one worker, from one second after sending."""
    samples = tuple(
        StackSample(pid=7, started_s=11.0 + place, ended_s=11.1 + place, threads=(thread,))
        for place, thread in enumerate(threads)
    )
    sent = PromptSent(t_s=10, kind="needle", tokens=100, depth=0.5, seed=0, nonce="", expected="", max_output_tokens=8)
    return Observation(
        now_s=100,
        processes=(ProcessInfo(pid=7, started_at_s=0, role="worker", title="worker"),),
        samples=samples,
        client=ClientOutcome(sent=sent, first_token_s=first_token_s),
    ).model_copy(update=changes)


def compared(predicted: Route | None, observation: Observation, **proved: object) -> RouteAgreement:
    found = compare(record(predicted, **proved), observation, SCENARIO)  # type: ignore[arg-type]
    assert found is not None
    return found


IN_TORCH = stack(TORCH, SM12X, DISPATCH, ENTRY)
IN_HELPER = stack(HELPER, TORCH, SM12X, DISPATCH, ENTRY)
IN_TRITON = stack("mqa_logits", TRITON, SM12X, DISPATCH, ENTRY)
IN_FUSED = stack(FUSED_KERNEL, FUSED, ENTRY, line=15)
IN_DISPATCH = stack(DISPATCH, ENTRY)
IN_TOPK = stack("top_k_per_row", ENTRY)
OUTSIDE = stack()


def test_a_run_of_which_no_route_was_asked_is_not_compared() -> None:
    old = record(route()).model_copy(update={"predicted": None})
    assert compare(old, seen(IN_TORCH), SCENARIO) is None


def test_the_predicted_kernel_on_the_stacks_agrees_and_its_helpers_count_as_it() -> None:
    found = compared(route(), seen(IN_TORCH, IN_HELPER, IN_TOPK, OUTSIDE))
    assert found.answer == "agree"
    assert (found.samples, found.inside) == (4, 3)
    assert [(one.function, one.samples) for one in found.seen] == [(TORCH, 2)]
    assert [guard.source for guard in found.guards] == ["dcp_world_size <= 1", "clean_logits"]


def test_a_kernel_that_the_source_excludes_is_a_disagreement_however_rarely_it_is_seen() -> None:
    found = compared(route(), seen(*[IN_TORCH] * 40, IN_FUSED))
    assert found.answer == "disagree"
    assert [(one.function, one.samples) for one in found.seen] == [(TORCH, 40), (FUSED_KERNEL, 1)]


def test_where_the_ways_part_in_the_entry_its_guard_is_doubted() -> None:
    """What was called at line 20 was not reached by who left at line 15: nothing in it matters."""
    found = compared(route(), seen(IN_FUSED))
    assert [guard.source for guard in found.doubted] == ["dcp_world_size <= 1"]


def test_where_it_is_not_proved_what_runs_no_line_excludes_a_guard() -> None:
    found = compared(route(), seen(IN_FUSED), proved=False)
    assert [guard.source for guard in found.doubted] == ["dcp_world_size <= 1", "clean_logits"]


def test_a_guard_behind_the_line_that_was_left_from_is_not_doubted_unless_it_is_all_there_is() -> None:
    early = stack(FUSED_KERNEL, FUSED, ENTRY, line=9)
    first = guard(ENTRY, 0, "has_prefill", "true").model_copy(update={"line": 5})
    found = compared(route(trail=(first, *TORCH_TRAIL)), seen(early))
    assert [one.source for one in found.doubted] == ["has_prefill"]
    assert compared(route(), seen(early)).doubted[0].source == "dcp_world_size <= 1"


def test_of_the_guards_in_front_of_where_the_ways_part_the_last_comes_first() -> None:
    first = guard(ENTRY, 0, "has_prefill", "true")
    found = compared(route(trail=(first, *TORCH_TRAIL)), seen(IN_FUSED))
    assert [one.source for one in found.doubted] == ["dcp_world_size <= 1", "has_prefill"]


def test_a_guard_of_a_caller_that_both_ways_share_is_not_doubted() -> None:
    found = compared(route(), seen(IN_TRITON))
    assert found.answer == "disagree"
    assert [guard.source for guard in found.doubted] == ["clean_logits"]


def test_the_guards_told_are_those_that_an_option_decides_or_that_close_a_way() -> None:
    passed = guard(ENTRY, 0, "has_prefill", "true", "a prefill")
    found = compared(route(FUSED_KERNEL, (passed, *FUSED_TRAIL)), seen(IN_FUSED))
    assert [one.source for one in found.guards] == ["dcp_world_size <= 1", "q_scale is not None"]
    assert [one.source for one in compared(route(trail=(passed,)), seen(IN_TORCH)).guards] == ["has_prefill"]


def test_a_callee_whose_answer_decides_is_doubted_too() -> None:
    """The fused path was thought to apply, and the fallback was seen: the guard before it, or the one in it."""
    found = compared(route(FUSED_KERNEL, FUSED_TRAIL), seen(IN_TORCH))
    assert [guard.source for guard in found.doubted] == ["dcp_world_size <= 1", "q_scale is not None"]


@pytest.mark.parametrize(
    ("observation", "because"),
    [
        (seen(), "no usable sample"),
        (seen(IN_TORCH, sampling=SamplingStats(wanted=False), samples=()), "not sampled, by request"),
        (seen(OUTSIDE, OUTSIDE), "none of 2 worker samples of the prefill lies inside"),
        (seen(OUTSIDE, first_token_s=50.0), "over quickly"),
        (seen(IN_DISPATCH, IN_TOPK), "none in a known kernel"),
        (seen(stack(TORCH)), "lies inside"),
        (seen(IN_TORCH, first_token_s=11.0), "no usable sample"),
        (seen(IN_TORCH).model_copy(update={"client": ClientOutcome()}), "no usable sample"),
    ],
)
def test_what_was_not_seen_in_the_prefill_below_the_entry_tells_nothing(observation: Observation, because: str) -> None:
    found = compared(route(), observation)
    assert found.answer == "not compared"
    assert because in found.because


def test_a_decode_after_the_first_token_is_no_disagreement() -> None:
    found = compared(route(), seen(IN_TORCH, IN_TORCH, IN_TRITON, first_token_s=12.9))
    assert (found.answer, found.samples) == ("agree", 2)


def test_samples_that_failed_came_late_or_are_anothers_do_not_count() -> None:
    observation = seen(IN_FUSED, IN_FUSED, IN_FUSED, IN_TORCH)
    failed, late, other, good = observation.samples
    samples = (
        failed.model_copy(update={"error": "gone", "threads": ()}),
        late.model_copy(update={"late": True}),
        other.model_copy(update={"pid": 8}),
        good,
    )
    found = compared(route(), observation.model_copy(update={"samples": samples}))
    assert (found.answer, found.samples) == ("agree", 1)


def test_no_prediction_is_told_with_its_reason() -> None:
    found = compared(None, seen(IN_TORCH))
    assert (found.answer, found.because) == ("not compared", "no entry function")


def test_a_route_for_another_size_or_revision_is_not_held_against_the_run() -> None:
    assert "DCP 1, the route is that of DCP 2" in compared(route(), seen(IN_FUSED), dcp=1).because
    assert "the server runs bbbbbbbbbb" in compared(route(), seen(IN_FUSED), sha="b" * 40).because
    unproved = compared(route(), seen(IN_TORCH), proved=False)
    assert unproved.answer == "agree" and "not proved" in unproved.because


def test_what_the_source_leaves_open_is_never_agreed_with() -> None:
    other = Reached(function=FUSED_KERNEL, path="lab/kernels.py", line=2, when=("local_total_seq_lens > 0",))
    open_ = route(exact=False, reached=(*route().reached, other))
    found = compared(open_, seen(IN_TORCH))
    assert found.answer == "not compared"
    assert "local_total_seq_lens > 0" in found.because
    assert compared(open_, seen(IN_TRITON)).answer == "disagree"  # all was understood: the set is whole


def test_a_kernel_of_a_library_is_recognised_by_its_bare_name() -> None:
    found = compared(route(f"torch.ops.vllm.{TORCH}"), seen(IN_TORCH))
    assert found.answer == "agree"


def test_what_is_open_is_told_shortly() -> None:
    long = Reached(function=TRITON, path="lab/kernels.py", line=2, when=("x" * 500,))
    found = compared(route(exact=False, reached=(*route().reached, *[long] * 9)), seen(IN_TORCH))
    assert "in any case" in found.because and "7 more ways" in found.because
    assert len(found.because) < 600


def test_a_kernel_outside_what_was_understood_is_no_disagreement() -> None:
    line = NotUnderstood(path="lab/entry.py", line=3, source="match x:", reason="patterns are not understood")
    found = compared(route(exact=False, not_understood=(line,)), seen(IN_FUSED))
    assert found.answer == "not compared"
    assert "lab/entry.py:3 match x:" in found.because


def test_the_chain_of_a_trail_holds_no_callee_that_returned() -> None:
    returned = (
        guard(ENTRY, 0, "dcp_world_size <= 1", "true"),
        call(ENTRY, 0, f"{FUSED}()"),
        guard(FUSED, 1, "q_scale is not None", "true"),
        *TORCH_TRAIL[1:],
    )
    assert call_chain(route(trail=returned).reached[0]) == (ENTRY, DISPATCH, SM12X, TORCH)


@pytest.mark.parametrize("seed", range(200))
def test_whatever_is_seen_agreement_and_disagreement_stand_on_kernels_below_the_entry(seed: int) -> None:
    chance = random.Random(seed)
    kinds = [IN_TORCH, IN_HELPER, IN_TRITON, IN_FUSED, IN_DISPATCH, IN_TOPK, OUTSIDE, stack(TRITON)]
    threads = [chance.choice(chance.sample(kinds, 3)) for _ in range(chance.randrange(8))]
    found = compared(route(exact=chance.random() < 0.7), seen(*threads))
    foreign = sum(thread in (IN_TRITON, IN_FUSED) for thread in threads)
    own = sum(thread in (IN_TORCH, IN_HELPER) for thread in threads)
    assert (found.answer == "disagree") == (foreign > 0)
    if found.answer == "agree":
        assert own > 0
    assert sum(one.samples for one in found.seen) == own + foreign
    assert sum(one.samples for one in found.seen) <= found.inside <= found.samples == len(threads)
