"""What a ledger leaves out: lines, callers, whole ranks. It is told, and never becomes a claim."""

from ledger_case import ENTRY, FUSED, PAGED, TORCH, Rank, both, healthy, incident, only, summary

from sparkdiag.evidence.ledger import DispatchCall, DispatchCount


def test_a_caller_without_a_line_may_have_been_the_fused_path() -> None:
    rank = Rank(dcp=1)
    rank.begin()
    rank.entry(0, lambda: rank.fused(accepts=True))
    lines = [one for one in rank.lines if not (isinstance(one, DispatchCall) and one.function in (FUSED, ENTRY))]
    fused = only(summary(rank, lines=tuple(lines))).fused
    assert fused is not None and (fused.not_tried, fused.unanswered, fused.unknown) == (0, 0, 1)


def test_a_line_that_is_missing_inside_a_chunk_may_have_been_the_fused_path() -> None:
    """The probe writes slow calls always, and fast ones not where there are too many of them."""
    rank = Rank(dcp=1)
    rank.begin()
    rank.step(layers=1, body=both(lambda: rank.fused(accepts=False), rank.logits))
    lines = [one for one in rank.lines if not (isinstance(one, DispatchCall) and one.function == FUSED)]
    found = only(summary(rank, lines=tuple(lines)))
    assert found.fused is not None and (found.fused.not_tried, found.fused.unknown) == (0, 1)
    assert (found.missing, found.whole_in) == (1, None)


def test_calls_without_a_line_are_said_and_their_counts_shown() -> None:
    rank = incident(Rank(), 3)
    count = DispatchCount(function=TORCH, module="m", answer="float32", facts={}, calls=90, took_s=3.0)
    rank.totals(dropped=54, also=(count,))
    found = summary(rank)
    assert found.dropped == 90 - rank.number
    assert "calls have no line" in found.sentence and "every indexer layer of every chunk" not in found.sentence
    assert only(found).totals == (count,)


def test_what_a_decode_dropped_takes_nothing_from_the_prefill() -> None:
    rank = incident(Rank(), 64)
    end_s = rank.now_s
    rank.decode()
    rank.totals(dropped=9000, also=(DispatchCount(function=PAGED, module="m", answer="x", calls=9999, took_s=1.0),))
    assert summary(rank, first_token_s=end_s).dropped == 0


def test_a_rank_without_a_ledger_is_told() -> None:
    first, second = incident(Rank(pid=7, tp=0), 3), Rank(pid=8, tp=1)
    found = summary(first, second)
    assert "of 1 of 2 ranks (no ledger of " in found.sentence and "(pid 8)" in found.sentence
    assert len(found.without) == 1 and found.ranks[0].pid == 7
    assert not summary(incident(Rank(pid=7), 3), incident(Rank(pid=8, tp=1), 3)).without


def test_where_all_lines_of_the_fused_path_are_missing_nothing_is_said_to_be_tried() -> None:
    rank = healthy(Rank(dcp=1), 4)
    lines = tuple(one for one in rank.lines if not (isinstance(one, DispatchCall) and one.function == FUSED))
    found = summary(rank, lines=lines)
    assert "whether the fused path was tried is not known in 4 chunks" in found.sentence
    assert "tried in" not in found.sentence and "gave no answer" not in found.sentence
