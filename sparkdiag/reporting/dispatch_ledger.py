"""The dispatch ledger for readers: one line of plain text, and a part of the Markdown report.

The line is made safe by whoever shows it; in Markdown nothing from outside stands except through ``safe_text``.
"""

from collections.abc import Iterator

from sparkdiag.evidence.ledger import DispatchCount, FusedSeen, KernelSeen, LedgerFinding, LedgerSummary, RankLedger
from sparkdiag.evidence.stored import StoredRun
from sparkdiag.reporting.phrases import seconds
from sparkdiag.reporting.safe_text import code, prose, table

LONGEST_LINE = 1500
_MOST_RANKS, _MOST_KERNELS, _MOST_NAMES, _MOST_COUNTS = 16, 24, 12, 12
_NOT_BY_VERDICT = "No verdict rests on the ledger."
_ANSWERS = {"agree": "agree", "disagree": "**disagree**", "not compared": "not compared"}


def ledger_line(stored: StoredRun) -> str | None:
    """The sentence, and where another source disagrees that too; None where there was to be no ledger."""
    summary = stored.ledger
    if summary is None:
        return None
    return "; ".join((summary.sentence, *(_disagreement(one) for one in _disagreements(summary))))


def _disagreements(summary: LedgerSummary) -> list[LedgerFinding]:
    return [finding for finding in summary.findings if finding.answer == "disagree"]


def _disagreement(finding: LedgerFinding) -> str:
    because = f" ({finding.because})" if finding.because else ""
    return f"SOURCES DISAGREE on {finding.question}: {' / '.join(finding.says)}{because}"


def ledger_markdown(stored: StoredRun) -> str:
    """Tables of ranks, kernels and findings; empty where there was to be no ledger."""
    summary = stored.ledger
    if summary is None:
        return ""
    return "\n\n".join(filter(None, _blocks(summary)))


def _blocks(summary: LedgerSummary) -> Iterator[str]:
    yield f"{prose(summary.sentence, at_most=LONGEST_LINE)}. {_NOT_BY_VERDICT}"
    if summary.ranks:
        yield _ranks(summary)
        yield _kernels(summary)
    if summary.findings:
        head = ("question", "", "what each source says")
        yield table(head, [_finding(finding) for finding in summary.findings])
    if summary.not_wrapped:
        yield "Could not be recorded:\n\n" + "\n".join(
            f"- {code(one.function)}{f' of {code(one.module)}' if one.module else ''}: {prose(one.reason, at_most=200)}"
            for one in summary.not_wrapped[:_MOST_NAMES]
        )
        more = len(summary.not_wrapped) - _MOST_NAMES
        yield f"… and {more} more in the JSON document." if more > 0 else ""
    if summary.never_called:
        names = ", ".join(code(name) for name in summary.never_called[:_MOST_NAMES])
        yield f"Recorded from the start, and never called (or only inside a compiled graph): {names}."
    yield _totals(summary)


def _ranks(summary: LedgerSummary) -> str:
    head = ("rank", "DCP", "chunks", "fused path", "no local keys in", "open at the end")
    lines = [_rank(rank) for rank in summary.ranks[:_MOST_RANKS]]
    more = len(summary.ranks) - _MOST_RANKS
    return table(head, lines) + (f"\n\n… and {more} more ranks in the JSON document." if more > 0 else "")


def _rank(rank: RankLedger) -> tuple[str, ...]:
    word = "" if rank.counted == "chunks" else " calls"
    return (
        f"{code(rank.rank, at_most=60)} ({rank.pid})",
        str(rank.dcp_world_size if rank.dcp_world_size is not None else "–"),
        f"{rank.chunks}{word}" + (f", each of {rank.layers} layers" if rank.layers else ""),
        _fused(rank.fused) if rank.fused is not None else "not recorded",
        f"{rank.local_total_zero} chunks" if rank.local_total_zero is not None else "not read",
        f"{code(rank.open_function, at_most=80)} for {seconds(rank.open_s or 0)}" if rank.open_function else "–",
    )


def _fused(fused: FusedSeen) -> str:
    counts = (
        ("accepted", fused.accepted),
        ("returned False", fused.refused),
        ("both ways", fused.mixed),
        ("no answer", fused.unanswered),
        ("not known", fused.unknown),
        ("not tried", fused.not_tried),
    )
    said = ", ".join(f"{word} {count}" for word, count in counts if count) or "–"
    because = ", ".join(f"{one.fact} = {one.value} in {one.chunks}" for one in fused.not_tried_because)
    return said + (f" ({prose(because, at_most=200)})" if because else "")


def _kernels(summary: LedgerSummary) -> str:
    lines = [_kernel(rank, kernel) for rank in summary.ranks for kernel in rank.kernels]
    if not lines:
        return ""
    head = ("kernel", "rank", "calls", "chunks", "layers", "time", "largest", "heads and keys a pass", "clean_logits")
    return table((*head[:-1], code(head[-1])), lines[:_MOST_KERNELS])


def _kernel(rank: RankLedger, kernel: KernelSeen) -> tuple[str, ...]:
    sizes = [kernel.rows_max, kernel.keys_max]
    plan = "–"
    if kernel.head_chunk_size is not None:
        plan = f"{kernel.head_chunk_size} and {kernel.k_chunk_size}, {kernel.matmuls:,} matmuls by the plan"
    return (
        code(kernel.function, at_most=80),
        code(rank.rank, at_most=60),
        str(kernel.calls),
        str(kernel.chunks),
        str(kernel.layers) if kernel.layers else "–",
        f"{seconds(kernel.took_s)} {'on the device' if kernel.synced else 'on the host'}",
        " × ".join(str(size) if size is not None else "?" for size in sizes)
        + (f" × {kernel.heads} heads" if kernel.heads is not None else ""),
        plan,
        " and ".join(str(value) for value in kernel.clean_logits) or "–",
    )


def _finding(finding: LedgerFinding) -> tuple[str, ...]:
    because = f" ({prose(finding.because, at_most=300)})" if finding.because else ""
    says = "; ".join(prose(text, at_most=300) for text in finding.says)
    return prose(finding.question, at_most=120), _ANSWERS[finding.answer], says + because


def _totals(summary: LedgerSummary) -> str:
    """Where lines are missing: what was counted all the same."""
    lines = [
        (code(rank.rank, at_most=60), *_count(count)) for rank in summary.ranks for count in rank.totals[:_MOST_COUNTS]
    ]
    if not lines:
        return ""
    head = ("rank", "function", "answer", "facts", "calls", "time")
    lead = "Some calls have no line. Counted from the start of each process, warm-up and decode included:"
    return f"{lead}\n\n{table(head, lines[: _MOST_COUNTS * 4])}"


def _count(count: DispatchCount) -> tuple[str, ...]:
    facts = ", ".join(f"{name} = {value}" for name, value in count.facts.items())
    return (
        code(count.function, at_most=80),
        prose(count.answer, at_most=80),
        prose(facts, at_most=160) if facts else "–",
        str(count.calls),
        seconds(count.took_s),
    )
