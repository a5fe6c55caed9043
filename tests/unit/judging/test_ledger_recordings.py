"""The ledger of real CUDA servers on two H200s, summed up again: what was recorded is what is said, on both ranks."""

from pathlib import Path

import pytest

from sparkdiag.evidence.ledger import LedgerSummary
from sparkdiag.judging.ledger import ledger_of
from sparkdiag.recording.read import read_run

RECORDINGS = Path(__file__).resolve().parents[2] / "recordings" / "h200-ledger"
LOOP, LOGITS = "mqa_logits_torch_loop", "fp8_fp4_mqa_logits"


def recorded(name: str) -> LedgerSummary:
    found = ledger_of(read_run(RECORDINGS / name))
    assert found is not None
    return found


@pytest.mark.parametrize(("name", "kernel", "chunks", "dcp"), [("slow250", LOOP, 15, 2), ("dcp1", LOGITS, 13, 1)])
def test_every_layer_of_every_chunk_is_in_one_kernel_on_both_ranks(
    name: str, kernel: str, chunks: int, dcp: int
) -> None:
    found = recorded(name)
    assert [(rank.chunks, rank.layers, rank.whole_in, rank.dcp_world_size) for rank in found.ranks] == [
        (chunks, 6, kernel, dcp)
    ] * 2
    assert all(rank.local_total_zero == 0 and not rank.missing for rank in found.ranks)
    assert all(rank.platform["capability"] == "9.0" for rank in found.ranks)
    assert f"every indexer layer of every chunk in {kernel}" in found.sentence
    assert not found.without


def test_the_loop_s_own_frames_agree_with_the_plan_for_what_was_passed() -> None:
    answers = {finding.question: finding.answer for finding in recorded("slow250").findings}
    for question in ("DCP size", "which kernel", f"shapes of {LOOP}", "keys a pass"):
        assert answers[question] == "agree", question
    # It takes one head whatever the shape; a single sample has a shape for which the plan has more.
    assert answers["heads a pass"] == "not compared"
    assert recorded("slow250").ranks[0].kernels[0].head_chunk_seen == (1,)


def test_the_healthy_run_never_called_the_loop() -> None:
    assert recorded("dcp1").never_called == (LOOP,)
