"""The ledger's summary: chunks counted right whatever comes between, and nothing claimed that was not recorded."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ledger_case import (
    ENTRY,
    FUSED,
    LAB,
    LOGITS,
    SENT_S,
    TOPK,
    TORCH,
    TRITON,
    WATCHED,
    Rank,
    both,
    healthy,
    incident,
    only,
    stored,
    summary,
    tensors,
)

from sparkdiag.evidence.ledger import DispatchCall, DispatchNotWrapped, LedgerSummary
from sparkdiag.judging.ledger import ledger_of
from sparkdiag.kernels.plan import chunk_plan


def test_the_incident_in_one_sentence() -> None:
    found = summary(incident(Rank(pid=7, tp=0), 7), incident(Rank(pid=8, tp=1), 7))
    assert found.sentence == (
        "DCP 2; fused path not tried in 7 of 7 chunks begun (of 64) because dcp_world_size = 2; "
        f"every indexer layer of every chunk in {TORCH}, head_chunk_size 1 by the plan"
    )
    assert [rank.rank for rank in found.ranks] == ["TP0 DCP0", "TP1 DCP1"]
    first = found.ranks[0]
    assert first.fused is not None and (first.fused.not_tried, first.fused.unexplained) == (7, 0)
    assert [(one.fact, one.value, one.chunks) for one in first.fused.not_tried_because] == [("dcp_world_size", 2, 7)]
    (kernel,) = first.kernels
    assert (kernel.function, kernel.calls, kernel.chunks, kernel.layers) == (TORCH, 21, 7, 3)
    assert (kernel.clean_logits, kernel.rows_max, kernel.keys_max, kernel.heads) == ((False,), 256, 896, 4)
    plans = [chunk_plan(rows=256, keys=128 * (n + 1), heads=4, budget_bytes=1024) for n in range(7)]
    assert kernel.matmuls == 3 * sum(plan.matmuls for plan in plans)
    assert (kernel.head_chunk_size, kernel.k_chunk_size) == (1, 1)


def test_a_prompt_that_was_whole() -> None:
    found = summary(incident(Rank(), 64), first_token_s=5000.0)
    assert "not tried in 64 of 64 chunks because" in found.sentence


def test_the_healthy_twin() -> None:
    rank = healthy(Rank(dcp=1), 64)
    end_s = rank.now_s
    rank.decode()
    found = summary(rank, proved=1, first_token_s=end_s)
    assert found.sentence == (
        f"DCP 1; fused path accepted in 64 of 64 chunks; every indexer layer of every chunk in {TOPK}"
    )
    assert only(found).layers == 3
    assert LOGITS in found.never_called and FUSED not in found.never_called


def test_a_fused_path_whose_own_kernel_is_not_watched_is_itself_the_kernel() -> None:
    rank = Rank(dcp=1)
    rank.begin()
    for _ in range(4):
        rank.step(body=lambda: rank.call(FUSED, returned=True, **tensors(256, 512)))
    found = only(summary(rank))
    assert (found.whole_in, [kernel.function for kernel in found.kernels]) == (FUSED, [FUSED])


def test_a_refusal_names_the_platform() -> None:
    rank = Rank(dcp=1, platform={"is_cuda": True, "is_rocm": False, "capability": "12.1"})
    rank.begin()
    for _ in range(5):
        rank.step(body=both(lambda: rank.fused(accepts=False), rank.logits, rank.logits))
    found = summary(rank)
    assert "fused path tried in 5 of 5 chunks begun (of 64): returned False in 5" in found.sentence
    assert "(platform: is_cuda true, capability 12.1)" in found.sentence
    fused = only(found).fused
    assert fused is not None and (fused.refused, fused.not_tried, fused.mixed) == (5, 0, 0)


def test_a_fact_that_says_no_to_a_call_that_was_made_is_no_guard_of_this_revision() -> None:
    rank = Rank(dcp=2)
    rank.begin()
    for _ in range(3):
        rank.step(body=both(lambda: rank.fused(accepts=False), rank.logits))
    found = summary(rank)
    fused = only(found).fused
    assert fused is not None and (fused.refused, fused.not_tried, fused.not_guards) == (3, 0, ("dcp_world_size",))
    assert "no guard of this revision" in found.sentence and "because dcp_world_size" not in found.sentence


def test_without_a_guard_that_says_no_the_reason_is_not_known() -> None:
    rank = Rank(dcp=1, facts={"chunk.local_total_seq_lens": 512})
    rank.begin()
    rank.step()
    found = summary(rank)
    fused = only(found).fused
    assert fused is not None and (fused.not_tried, fused.unexplained, fused.not_tried_because) == (1, 1, ())
    assert "for a reason that is not known" in found.sentence
    assert only(found).local_total_zero == 0


@pytest.mark.parametrize("zero", [1, 4])
def test_chunks_without_local_keys_are_counted(zero: int) -> None:
    rank = Rank(dcp=1)
    rank.begin()
    for chunk in range(6):
        empty = chunk < zero
        rank.facts = {"chunk.local_total_seq_lens": 0 if empty else 512}
        rank.step(body=rank.logits if empty else lambda: rank.fused(accepts=True))
    found = summary(rank)
    first = only(found)
    assert first.local_total_zero == zero and first.fused is not None
    assert (first.fused.not_tried, first.fused.accepted, first.fused.mixed) == (zero, 6 - zero, 0)
    assert f"not tried in {zero} because chunk.local_total_seq_lens = 0" in found.sentence
    assert first.whole_in is None


def test_guards_count_in_their_order() -> None:
    rank = Rank(dcp=2, facts={"chunk.local_total_seq_lens": 0})
    rank.begin()
    rank.step()
    fused = only(summary(rank)).fused
    assert fused is not None and [one.fact for one in fused.not_tried_because] == ["dcp_world_size"]


def test_parts_of_a_chunk_that_go_different_ways() -> None:
    rank = Rank(dcp=1)
    rank.begin()
    rank.step(body=both(lambda: rank.fused(accepts=True), lambda: rank.fused(accepts=False), rank.logits))
    fused = only(summary(rank)).fused
    assert fused is not None and (fused.mixed, fused.accepted, fused.refused) == (1, 0, 0)


def test_a_part_that_is_kept_out_after_a_refusal_is_not_the_refusal_s_own() -> None:
    rank = Rank(dcp=1, facts={"chunk.local_total_seq_lens": 512})
    rank.begin()

    def body() -> None:
        rank.fused(accepts=False)
        rank.logits()
        rank.seen = {**rank.seen, "chunk.local_total_seq_lens": 0}
        rank.logits()

    rank.step(body=body)
    fused = only(summary(rank)).fused
    assert fused is not None and fused.mixed == 1


def test_the_call_that_was_open_at_the_end() -> None:
    rank = incident(Rank(), 2)
    rank.entry(0, lambda: rank.logits(ends=False), ends=False)
    found = summary(rank, now_s=rank.now_s + 30)
    first = only(found)
    assert (first.chunks, first.open_function) == (3, TORCH)
    assert first.open_s is not None and 30 < first.open_s < 31
    assert f"at the end TP0 DCP0 had been in {TORCH} for 30 s" in found.sentence
    assert first.whole_in == TORCH


def test_a_call_that_returned_after_the_verdict_was_open_at_it() -> None:
    rank = incident(Rank(step_s=5.0), 1)
    last = rank.lines[-1]
    assert isinstance(last, DispatchCall) and last.took_s is not None
    first = only(summary(rank, now_s=last.began_s + last.took_s - 0.1))
    assert first.open_function == ENTRY
    assert only(summary(rank, first_token_s=last.began_s + last.took_s + 1)).open_function is None


def test_an_entry_without_a_line_yet_is_known_from_its_calls() -> None:
    """Only what has returned, or has gone on for a second, has a line: the tail lacks its callers."""
    rank = incident(Rank(), 2)
    rank.entry(0, rank.logits)
    tail = [line for line in rank.lines if not (isinstance(line, DispatchCall) and line.number in (25, 26))]
    whole, cut = only(summary(rank)), only(summary(rank, lines=tuple(tail)))
    assert whole.chunks == cut.chunks == 3
    assert cut.fused is not None and cut.fused.not_tried == 3 and cut.missing == 0


def test_without_a_layer_s_name_calls_are_counted_and_that_is_said() -> None:
    rank = Rank()
    rank.begin()
    for _ in range(4):
        rank.step(named=False)
    found = summary(rank)
    assert (only(found).chunks, only(found).counted) == (12, "calls")
    assert "12 calls (no layer was named, so that chunks cannot be told)" in found.sentence


def test_ranks_that_differ_are_told_apart() -> None:
    one, other = incident(Rank(pid=7, tp=0), 3), Rank(pid=8, tp=1)
    other.begin()
    for _ in range(3):
        other.step(body=lambda: other.logits(kernel=TRITON))
    found = summary(one, other)
    assert (
        "TP0 DCP0: fused path not tried in 3 of 3 chunks begun (of 64) because dcp_world_size = 2; " in found.sentence
    )
    assert "TP1 DCP1: fused path" in found.sentence
    assert f"every chunk in {TRITON}" in found.sentence and f"every chunk in {TORCH}, head" in found.sentence


def test_a_rank_that_is_one_chunk_behind_is_no_difference() -> None:
    found = summary(incident(Rank(pid=7, tp=0), 7), incident(Rank(pid=8, tp=1), 6))
    assert "in 7 of 7 chunks begun (of 64) (TP1 DCP1: 6) because" in found.sentence
    assert found.sentence.count("fused path") == 1


def test_a_fused_path_that_was_never_there_is_not_said_to_be_not_tried() -> None:
    rank = Rank()
    rank.begin(wrapped=tuple(name for name in WATCHED if name != FUSED))
    rank.lines.append(DispatchNotWrapped(pid=7, function=FUSED, reason="no module imported so far has it"))
    rank.step()
    found = summary(rank)
    assert only(found).fused is None
    assert f"nothing is known of the fused path ({FUSED}: no module imported so far has it)" in found.sentence
    assert [one.function for one in found.not_wrapped] == [FUSED]


@pytest.mark.parametrize(
    ("made", "because"),
    [
        ((), "the probe wrote no ledger"),
        ((Rank.begin,), "none was called in the prefill"),
        ((Rank.begin, Rank.decode), "none of the watched functions but a decode's"),
    ],
)
def test_nothing_recorded_says_why(made: tuple[Callable[[Rank], None], ...], because: str) -> None:
    rank = Rank()
    for one in made:
        one(rank)
    found = summary(rank)
    assert because in (found.nothing_because or "") and because in found.sentence


def test_no_probe_no_prompt_and_old_runs() -> None:
    run = stored(Rank())
    without = run.record.model_copy(update={"server_env": {}, "server_argv": ("vllm",)})
    found = ledger_of(run.model_copy(update={"record": without}))
    assert found is not None and found.nothing_because == "the server was started without the probe"
    rank = incident(Rank(), 1)
    assert summary(rank, sent=False).nothing_because == "no prompt was sent"
    old = {key: value for key, value in run.record.scenario.items() if key != "ledger"}
    assert ledger_of(run.model_copy(update={"record": run.record.model_copy(update={"scenario": old})})) is None


def test_what_the_probe_could_not_reach_is_the_reason() -> None:
    rank = Rank()
    rank.lines.append(DispatchNotWrapped(pid=7, function=ENTRY, module="m", reason="a class"))
    assert (summary(rank).nothing_because or "").endswith("in a process of the model: a class")


@st.composite
def prefills(draw: st.DrawFn) -> tuple[Rank, int, float | None, float]:
    """A rank whose prefill lies among warm-up, decodes of others, and the decode after it; how many chunks it has."""
    layers, chunks = draw(st.integers(2, 4)), draw(st.integers(1, 6))
    dcp = draw(st.sampled_from([1, 2]))
    rank = Rank(pid=7, dcp=dcp, now_s=SENT_S - 50)
    rank.begin()
    for _ in range(draw(st.integers(0, 2))):
        rank.step(layers=layers)
    rank.decode()
    rank.now_s = SENT_S + 1
    parts = draw(st.integers(1, 3))
    for chunk in range(chunks):
        if draw(st.booleans()):
            rank.decode(rows=draw(st.integers(1, 3)))
        if draw(st.booleans()):
            rank.decode(paged=False)
        tried = draw(st.sampled_from(["accepted", "refused"])) if dcp == 1 else "not tried"

        def body(tried: str = tried, chunk: int = chunk) -> None:
            for _ in range(parts):
                if tried != "not tried":
                    rank.fused(accepts=tried == "accepted")
                if tried != "accepted":
                    rank.logits(keys=128 * (chunk + 1))

        rank.step(layers=layers, body=body)
    ended = draw(st.booleans())
    first_token_s = rank.now_s if ended else None
    if ended:
        rank.decode()
        rank.now_s += 1
        rank.step(layers=layers)
    return rank, chunks, first_token_s, rank.now_s


@given(prefills(), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_chunks_are_counted_whatever_lies_between_them(
    made: tuple[Rank, int, float | None, float], chance: random.Random
) -> None:
    rank, chunks, first_token_s, now_s = made
    other = Rank(pid=8, tp=1, dcp=rank.dcp, lines=[line.model_copy(update={"pid": 8}) for line in rank.lines])
    changes: dict[str, Any] = {"first_token_s": first_token_s, "now_s": now_s}
    found = only(summary(rank, **changes))
    assert (found.chunks, found.counted, found.missing) == (chunks, "chunks", 0)
    fused = found.fused
    assert fused is not None
    if rank.dcp == 2:
        assert (fused.not_tried, fused.unexplained, found.whole_in) == (chunks, 0, TORCH)
    else:
        assert fused.accepted + fused.refused == chunks
    lines = [*rank.lines, *other.lines]
    chance.shuffle(lines)
    mixed = summary(rank, other, lines=tuple(lines), **changes)
    assert _shape(mixed, 7) == _shape(mixed, 8) == _shape(summary(rank, other, **changes), 7)
    assert mixed.sentence == summary(other, rank, **changes).sentence


def _shape(found: LedgerSummary, pid: int) -> object:
    (rank,) = (rank for rank in found.ranks if rank.pid == pid)
    return rank.chunks, rank.fused, rank.kernels, rank.whole_in


@given(prefills(), st.data())
@settings(max_examples=60, deadline=None)
def test_a_lost_line_never_becomes_a_claim(made: tuple[Rank, int, float | None, float], data: st.DataObject) -> None:
    """Any calls' lines may be missing: then no chunk is said not to have tried what it tried."""
    rank, _chunks, first_token_s, now_s = made
    kept = [line for line in rank.lines if not isinstance(line, DispatchCall) or data.draw(st.integers(0, 9)) > 0]
    (found,) = summary(rank, lines=tuple(kept), first_token_s=first_token_s, now_s=now_s).ranks
    if found.fused is not None and rank.dcp == 1:
        assert found.fused.not_tried == 0
    if found.fused is not None and rank.dcp == 2:
        assert found.fused.accepted == found.fused.refused == 0


def test_the_lab_scenario_has_what_the_summary_asks_for() -> None:
    assert LAB.ledger.fused == FUSED and LAB.layer_clock is not None
    assert LAB.layer_clock.variable in LAB.ledger.facts
