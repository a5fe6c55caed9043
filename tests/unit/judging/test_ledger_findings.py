"""The ledger against stacks, route, plan and proof: where they differ a reader is told, and never otherwise."""

from functools import partial
from typing import Any, Literal

import pytest
from ledger_case import ENTRY, FUSED, LOGITS, SENT_S, SM12X, TOPK, TORCH, TRITON, Rank, stored, summary, tensors

from sparkdiag.evidence.ledger import LedgerFinding
from sparkdiag.evidence.route import Reached, Route, RouteConfig, TrailStep, Truth
from sparkdiag.evidence.run import PredictedRoute
from sparkdiag.evidence.stacks import Frame, LocalValue, StackSample, ThreadStack
from sparkdiag.judging.agreement import agreement_of
from sparkdiag.judging.ledger import ledger_of


def rank_at(keys: int = 512) -> Rank:
    rank = Rank()
    rank.begin()
    for _ in range(3):
        rank.step(body=partial(rank.logits, keys=keys))
    return rank


def sample(kernel: str = TORCH, *, dcp: int = 2, at_s: float = SENT_S + 1.1, **changes: LocalValue) -> StackSample:
    values: dict[str, LocalValue] = {
        "seq_len": 256,
        "num_heads": 4,
        "seq_len_kv": 512,
        "head_chunk_size": 1,
        "k_chunk_size": 1,
    }
    frames = (
        Frame(function=kernel, filename="/x.py", line=1, locals={**values, **changes}),
        *(Frame(function=name, filename="/x.py", line=1) for name in (SM12X, LOGITS)),
        Frame(function=ENTRY, filename="/x.py", line=1, locals={"dcp_world_size": dcp}),
    )
    return StackSample(pid=7, started_s=at_s, ended_s=at_s + 0.1, threads=(ThreadStack(frames=frames),))


def found(rank: Rank, *samples: StackSample, **changes: Any) -> dict[str, LedgerFinding]:
    return {one.question: one for one in summary(rank, samples=samples, **changes).findings}


def answers(rank: Rank, *samples: StackSample, **changes: Any) -> dict[str, str]:
    return {question: one.answer for question, one in found(rank, *samples, **changes).items()}


SHAPES = f"shapes of {TORCH}"


def test_one_story() -> None:
    assert answers(rank_at(), sample(), sample()) == {
        "DCP size": "agree",
        "which kernel": "agree",
        SHAPES: "agree",
        "heads a pass": "agree",
        "keys a pass": "agree",
    }


def test_without_a_sample_only_the_proof_is_compared() -> None:
    told = answers(rank_at())
    assert told.pop("DCP size") == "agree"
    assert set(told.values()) == {"not compared"}


@pytest.mark.parametrize(
    ("changes", "question"),
    [
        ({"head_chunk_size": 2}, "heads a pass"),
        ({"k_chunk_size": 64}, "keys a pass"),
        ({"seq_len_kv": 513}, SHAPES),
        ({"dcp": 1}, "DCP size"),
        ({"kernel": TRITON}, "which kernel"),
    ],
)
def test_a_difference_is_told_and_of_the_right_question(changes: dict[str, Any], question: str) -> None:
    told = answers(rank_at(), sample(), sample(**changes), sample(**changes))
    assert [name for name, answer in told.items() if answer == "disagree"] == [question]


@pytest.mark.parametrize("changes", [{"k_chunk_size": 200_000}, {"seq_len_kv": 9}, {"dcp": 7}, {"kernel": TRITON}])
def test_a_single_torn_reading_contradicts_nobody(changes: dict[str, Any]) -> None:
    told = found(rank_at(), *[sample()] * 20, sample(**changes))
    assert {one.answer for one in told.values()} == {"agree"}
    alone = answers(rank_at(), sample(**changes))
    assert "disagree" not in {answer for name, answer in alone.items() if name != "DCP size"}


def test_another_proof_disagrees() -> None:
    assert answers(rank_at(), sample(), proved=4)["DCP size"] == "disagree"


def test_a_sample_of_before_the_prompt_or_of_another_process_does_not_count() -> None:
    stale = sample(TRITON, at_s=SENT_S - 5)
    other = sample(TRITON).model_copy(update={"pid": 99})
    assert answers(rank_at(), sample(), stale, other)["which kernel"] == "agree"


def test_a_sample_of_after_the_last_line_shows_what_may_have_none_yet() -> None:
    rank = rank_at()
    late = sample(seq_len_kv=700, at_s=rank.now_s + 0.5)
    assert answers(rank, sample(), late)[SHAPES] == "agree"
    rank.entry(0, partial(rank.logits, ends=False), ends=False)
    assert answers(rank, sample(), late, late)[SHAPES] == "disagree"


def test_a_kernel_that_could_not_be_recorded_is_no_contradiction() -> None:
    rank = Rank()
    rank.begin(wrapped=(ENTRY, LOGITS))
    rank.step(body=lambda: rank.call(LOGITS, q=["float8_e4m3fn[256, 4, 48]", None]))
    one = found(rank, sample(at_s=SENT_S + 1))["which kernel"]
    assert (one.answer, one.because) == ("not compared", "what the stacks show could not be recorded")


def test_a_shape_without_a_line_is_no_contradiction_where_lines_are_missing() -> None:
    rank = rank_at()
    lines = tuple(line for line in rank.lines if getattr(line, "number", 0) != 8)
    assert answers(rank, sample(seq_len_kv=700), lines=lines)[SHAPES] == "not compared"


def predicted(
    kernel: str, *, guard: Truth = "false", exact: bool = True, through: tuple[str, ...] = ()
) -> PredictedRoute:
    def step(kind: Literal["guard", "call"], function: str, depth: int, source: str) -> TrailStep:
        return TrailStep(kind=kind, depth=depth, function=function, path="a.py", line=1, source=source, value=guard)

    trail = (
        step("guard", ENTRY, 0, "dcp_world_size <= 1"),
        *(step("call", name, depth + 1, "f()") for depth, name in enumerate(through)),
    )
    route = Route(
        revision="installed",
        scenario="lab",
        config=RouteConfig(dcp=2),
        entry=ENTRY,
        entry_path="a.py",
        entry_line=1,
        reached=(Reached(function=kernel, path="a.py", line=1, trail=trail),),
        exact=exact,
    )
    return PredictedRoute(route=route)


def with_route(rank: Rank, route: PredictedRoute) -> dict[str, LedgerFinding]:
    run = stored(rank, samples=(sample(),), predicted=route)
    summed = ledger_of(run.model_copy(update={"agreement": agreement_of(run)}))
    assert summed is not None
    return {one.question: one for one in summed.findings}


def test_the_route_s_guard_and_kernel_are_the_ones_seen() -> None:
    told = with_route(rank_at(), predicted(TORCH, through=(LOGITS, SM12X)))
    assert told["why not fused"].answer == told["which kernel by the source"].answer == "agree"


def test_a_route_to_elsewhere_disagrees() -> None:
    told = with_route(rank_at(), predicted(TOPK, guard="true", through=(FUSED,)))
    assert told["which kernel by the source"].answer == "disagree"
    assert TORCH in told["which kernel by the source"].because
    assert told["which kernel"].answer == "agree"


def test_an_open_route_is_not_compared() -> None:
    told = with_route(rank_at(), predicted(TOPK, exact=False))
    assert told["which kernel by the source"].answer == "not compared"


def test_a_kernel_that_calls_a_kernel_is_the_route_s_and_the_inner_one_did_the_work() -> None:
    rank = Rank()
    rank.begin()

    def outer() -> None:
        rank.call(TRITON, lambda: rank.call(TORCH, **tensors(256, 512)), **tensors(256, 512))

    for _ in range(3):
        rank.step(body=outer)
    told = with_route(rank, predicted(TRITON))
    assert told["which kernel by the source"].answer == told["which kernel"].answer == "agree"
    assert answers(rank, sample(TRITON), sample(TRITON))["which kernel"] == "agree"


def test_heads_a_pass_are_those_of_the_frames_and_the_plan_s_only_where_no_frame_shows_them() -> None:
    def sentence(*samples: StackSample) -> str:
        return summary(rank_at(), samples=samples).sentence

    assert sentence().endswith(f"in {TORCH}, head_chunk_size 1 by the plan")
    assert sentence(sample(), sample()).endswith(f"in {TORCH}, head_chunk_size 1")
    other = sample(head_chunk_size=2)
    assert sentence(other, other).endswith("head_chunk_size 2 on the stacks, 1 by the plan")
    assert sentence(*[sample()] * 20, other).endswith("head_chunk_size 1"), "a torn reading"


@pytest.mark.parametrize(("short", "answer"), [(0, "agree"), (1, "not compared"), (2, "disagree")])
def test_only_shapes_for_which_the_plan_has_another_value_tell_a_fixed_one_from_it(short: int, answer: str) -> None:
    """A function with one head a pass whatever the shape, and a shape so small that the plan has more."""
    rank = Rank()
    rank.begin()
    rank.step(body=partial(rank.logits, keys=512))
    rank.step(body=partial(rank.logits, rows=2, keys=8))
    small = sample(seq_len=2, seq_len_kv=8, k_chunk_size=8)
    assert answers(rank, *[sample()] * 30, *[small] * short)["heads a pass"] == answer
