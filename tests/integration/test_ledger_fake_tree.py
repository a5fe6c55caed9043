"""The ledger's whole way over a fake vLLM tree: the real probe inside its workers, the run folder, the report."""

import json
from pathlib import Path

import pytest

from sparkdiag.evidence.ledger import LedgerSummary
from sparkdiag.recording.read import read_run
from sparkdiag.reporting.markdown import render_markdown
from sparkdiag.reporting.summary import summary
from sparkdiag.reproducing.ending import compared, stored_run
from sparkdiag.scenario.ledger import LedgerGuard, LedgerSettings
from sparkdiag.scenario.model import Scenario, WatchedFunction, Work
from tests.integration.test_reproducing_session import reproduce

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

MODULE = ("vllm.utils.deep_gemm",)
SUSPECT = "_fp8_mqa_logits_torch"


def watched(made: Scenario) -> Scenario:
    """The fake's dispatch; its fused path is the fast kernel, and its guard the local that the worker sets."""
    roles = {
        "sparse_attn_indexer": "entry",
        "fp8_fp4_mqa_logits": "dispatch",
        "_fp8_mqa_logits_sm12x": "dispatch",
        SUSPECT: "leaf",
        "fp8_mqa_logits_triton": "leaf",
        "not_in_this_tree": "leaf",
    }
    watch = [WatchedFunction(function=name, role=role, modules=MODULE) for name, role in roles.items()]
    settings = LedgerSettings(
        fused="fp8_mqa_logits_triton",
        facts=("k_cache_prefix", "fast"),
        guards=(LedgerGuard(fact="fast", more_than=0),),
    )
    work = Work(layers=2, heads=8, budget_bytes=1 << 20)
    return made.model_copy(update={"watch": tuple(watch), "ledger": settings, "work": work})


def of(path: Path) -> LedgerSummary:
    found = compared(read_run(path)).ledger
    assert found is not None
    return found


def test_a_crawling_tree_s_ledger_agrees_with_its_stacks_and_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, record = reproduce(tmp_path, monkeypatch, "crawling", routed=watched)
    stored = stored_run(folder, record)
    ledger = stored.ledger
    assert ledger is not None
    assert ledger.expected_chunks == 32 and ledger.dropped == 0
    assert [rank.rank for rank in ledger.ranks] == ["TP0 DCP0", "TP1 DCP1"]
    for rank in ledger.ranks:
        assert (rank.counted, rank.whole_in, rank.missing) == ("chunks", SUSPECT, 0)
        assert 1 <= rank.chunks <= 32 and rank.fused is not None
        assert (rank.fused.not_tried, rank.fused.unexplained) == (rank.chunks, 0)
        assert [(one.fact, one.value) for one in rank.fused.not_tried_because] == [("fast", 0)]
    answers = {one.question: one.answer for one in ledger.findings}
    assert {"which kernel", "heads a pass", "keys a pass", f"shapes of {SUSPECT}"} <= set(answers)
    assert "disagree" not in answers.values(), ledger.findings
    assert answers["which kernel"] == "agree"
    assert "not_in_this_tree" in {one.function for one in ledger.not_wrapped}
    assert "Dispatch ledger" in render_markdown(stored) and "\nledger:   " in summary(stored)
    lines = (folder.path / "dispatch.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(lines[0])["stream"] == "dispatch"
    assert of(folder.path) == ledger


def test_a_healthy_tree_s_ledger_holds_every_chunk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last half second too: the prefill ends just before the server is stopped."""
    folder, _record = reproduce(tmp_path, monkeypatch, "healthy", routed=watched)
    ledger = of(folder.path)
    assert [rank.chunks for rank in ledger.ranks] == [32, 32]
    for rank in ledger.ranks:
        assert (rank.layers, rank.whole_in, rank.missing) == (2, "fp8_mqa_logits_triton", 0)


def test_without_the_probe_the_reason_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, _record = reproduce(tmp_path, monkeypatch, "healthy", probe=False, routed=watched)
    assert of(folder.path).nothing_because == "the server was started without the probe"
    assert not (folder.path / "dispatch.jsonl").exists()
