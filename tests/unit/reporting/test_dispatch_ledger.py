"""The ledger on the page, in the document and in the last lines: told prominently, and unable to break out."""

import re

from sparkdiag.evidence.ledger import (
    DispatchCount,
    DispatchNotWrapped,
    FusedSeen,
    GuardSeen,
    KernelSeen,
    LedgerFinding,
    LedgerSummary,
    RankLedger,
)
from sparkdiag.evidence.stored import StoredRun
from sparkdiag.reporting.dispatch_ledger import ledger_line, ledger_markdown
from sparkdiag.reporting.document import document
from sparkdiag.reporting.markdown import render_markdown
from sparkdiag.reporting.summary import summary
from tests.unit.reporting.sample_runs import CRAWLING

EVIL = "</details>\x1b[31m @someone #1 | `x` <script>\n## owned"
SENTENCE = "DCP 2; fused path not tried in 7 of 7 chunks begun (of 64) because dcp_world_size = 2"


def ledger(text: str = "_fp8_mqa_logits_torch", *, sentence: str = SENTENCE) -> LedgerSummary:
    because = (GuardSeen(fact=text, value=text, chunks=7),)
    kernel = KernelSeen(function=text, calls=21, chunks=7, layers=3, took_s=4.5, rows_max=256, clean_logits=(False,))
    rank = RankLedger(
        pid=7,
        rank=text,
        chunks=7,
        layers=3,
        open_function=text,
        open_s=1.25,
        local_total_zero=0,
        fused=FusedSeen(function=text, not_tried=7, not_tried_because=because),
        kernels=(kernel,),
        totals=(DispatchCount(function=text, module=text, answer=text, facts={text: text}, calls=1, took_s=0.1),),
    )
    finding = LedgerFinding(question=text, answer="disagree", says=(f"ledger: {text}", f"stacks: {text}"), because=text)
    return LedgerSummary(
        sentence=sentence,
        expected_chunks=64,
        ranks=(rank,),
        not_wrapped=(DispatchNotWrapped(pid=7, function=text, module=text, reason=text),),
        never_called=(text,),
        dropped=3,
        findings=(finding,),
    )


def run(of: LedgerSummary | None) -> StoredRun:
    return CRAWLING.model_copy(update={"ledger": of})


def test_a_run_without_a_ledger_has_no_word_of_it() -> None:
    stored = run(None)
    assert ledger_line(stored) is None and ledger_markdown(stored) == ""
    assert "ledger" not in render_markdown(stored).lower() and "ledger" not in summary(stored)
    assert document(stored)["ledger"] is None


def test_the_sentence_stands_on_page_and_terminal_and_a_disagreement_with_it() -> None:
    stored = run(ledger())
    page, last = render_markdown(stored), summary(stored)
    head = page.split("<details>")[0]
    assert "**Ledger.** DCP 2; fused path not tried in 7 of 7 chunks" in head and "SOURCES DISAGREE" in head
    (line,) = [line for line in last.splitlines() if line.startswith("ledger:")]
    assert SENTENCE in line and "SOURCES DISAGREE" in line
    made = document(stored)["ledger"]
    assert (made["sentence"], made["expected_chunks"], made["ranks"][0]["chunks"]) == (SENTENCE, 64, 7)


def test_the_section_has_ranks_kernels_findings_and_what_could_not_be_recorded() -> None:
    body = ledger_markdown(run(ledger()))
    assert "| 7, each of 3 layers | not tried 7 " in body and "4.5 s on the host" in body
    assert "**disagree**" in body and "Could not be recorded" in body and "never called" in body
    assert "Some calls have no line" in body


def test_nothing_that_was_recorded_breaks_out_of_page_or_terminal() -> None:
    stored = run(ledger(EVIL, sentence=EVIL))
    body, last = ledger_markdown(stored), summary(stored)
    assert "\x1b" not in body + last
    assert not [line for line in body.splitlines() if line.startswith(("#", "<"))]
    outside = re.sub(r"(`+).+?\1", "", body)
    assert "@someone" not in outside and "<script>" not in outside and "</details>" not in outside
    rows = [line for line in body.splitlines() if line.startswith("|")]
    assert all("\n" not in row for row in rows)
