"""What a run's source says, read beside a real server and held against the stacks of its workers."""

import json
from pathlib import Path

import pytest

from sparkdiag.evidence.stored import StoredRun
from sparkdiag.recording.folder import RECORD
from sparkdiag.recording.read import read_run
from sparkdiag.reporting.document import document
from sparkdiag.reporting.markdown import render_markdown
from sparkdiag.reporting.predicted_route import route_sentence
from sparkdiag.reporting.summary import summary
from sparkdiag.reproducing.ending import compared, stored_run
from sparkdiag.scenario.model import Scenario, WatchedFunction
from sparkdiag.scenario.route import RouteSettings, RouteValue
from tests.integration.serving_case import FAKES
from tests.integration.test_reproducing_session import Silent, reproduce

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

TORCH, TRITON = "_fp8_mqa_logits_torch", "fp8_mqa_logits_triton"
PACKAGE = str(FAKES / "site" / "vllm")
ENTRY = WatchedFunction(function="sparse_attn_indexer", role="entry", modules=("vllm.utils.deep_gemm",))


def routed(made: Scenario, *, fast: str) -> Scenario:
    """The fake tree's dispatch, whose only guard beside ``clean_logits`` is ``fast``."""
    value = RouteValue(name="fast", value=fast, because="as the scenario says")
    return made.model_copy(update={"watch": (ENTRY,), "route": RouteSettings(kernels=(TORCH, TRITON), values=(value,))})


def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, *, fast: str) -> tuple[StoredRun, Silent]:
    view = Silent()
    folder, record = reproduce(
        tmp_path, monkeypatch, mode, view=view, package_path=PACKAGE, routed=lambda made: routed(made, fast=fast)
    )
    return stored_run(folder, record), view


def test_a_fallback_that_the_source_predicts_is_seen_and_they_agree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored, view = run(tmp_path, monkeypatch, "crawling", fast="False")
    predicted = stored.record.predicted
    assert predicted is not None and predicted.route is not None, predicted
    assert (predicted.route.kernels, predicted.route.exact, predicted.route.files) == ((TORCH,), True, {})
    assert PACKAGE in predicted.read_from
    assert predicted.route.config.dcp == 2 and predicted.route.config.chunk_tokens == 512
    assert any(f"this run reaches {TORCH}" in note for note in view.notes)
    found = stored.agreement
    assert found is not None and found.answer == "agree"
    assert found.seen[0].function == TORCH and 0 < found.seen[0].samples <= found.inside <= found.samples
    sentence = str(route_sentence(stored))
    assert sentence.startswith(f"source says: {TORCH} (")
    assert f"{TORCH} in {found.seen[0].samples} of {found.samples} worker samples: they agree" in sentence
    assert "route:    source says" in summary(stored)
    assert "**Route.**" in render_markdown(stored)
    # Offline, from the folder alone, the same is told.
    again = compared(read_run(Path(stored.run_dir)))
    assert route_sentence(again) == sentence
    assert document(again)["route"] == document(stored)["route"]


def test_a_fallback_that_the_source_excludes_is_a_disagreement_and_the_verdict_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored, _ = run(tmp_path, monkeypatch, "crawling", fast="True")
    assert stored.record.verdict is not None
    assert (stored.record.verdict.outcome, stored.record.verdict.function) == ("stalled", TORCH)
    found = stored.agreement
    assert found is not None and found.answer == "disagree"
    assert found.predicted == (TRITON,) and [one.function for one in found.seen] == [TORCH]
    assert [guard.source for guard in found.doubted] == ["fast"]
    sentence = str(route_sentence(stored))
    assert f"source says: {TRITON}" in sentence and "THEY DISAGREE" in sentence
    assert "would have to be otherwise: fast is True" in sentence


def test_a_run_that_is_over_quickly_is_no_disagreement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fast kernel takes microseconds and is hardly ever on a stack."""
    stored, _ = run(tmp_path, monkeypatch, "healthy", fast="True")
    assert stored.record.verdict is not None and stored.record.verdict.outcome == "completed"
    found = stored.agreement
    assert found is not None and found.predicted == (TRITON,)
    assert found.answer == ("agree" if found.seen else "not compared")
    assert found.seen or found.because


def test_a_source_that_cannot_be_read_is_a_note_and_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, record = reproduce(
        tmp_path,
        monkeypatch,
        "healthy",
        package_path=str(tmp_path / "nothing"),
        routed=lambda made: routed(made, fast="False"),
    )
    assert record.verdict is not None and record.verdict.outcome == "completed"
    assert record.predicted is not None and record.predicted.route is None and record.predicted.problem
    stored = stored_run(folder, record)
    assert any(note.source == "route" and record.predicted.problem in note.text for note in stored.notes)
    assert "nothing:" in str(route_sentence(stored))
    # A run from before routes were read.
    document_ = json.loads((folder.path / RECORD).read_text(encoding="utf-8"))
    del document_["predicted"]
    (folder.path / RECORD).write_text(json.dumps(document_), encoding="utf-8")
    old = compared(read_run(folder.path))
    assert (old.problems, old.record.predicted, old.agreement, route_sentence(old)) == ((), None, None, None)
