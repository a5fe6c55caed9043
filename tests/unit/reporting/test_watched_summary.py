"""What is shown of a server that was only watched: in the terminal, on the page, as a document."""

from typing import Any

from sparkdiag.evidence.client import ClientOutcome, PromptSent
from sparkdiag.evidence.diagnosis import Diagnosis, ProcessDiagnosis, Reason
from sparkdiag.evidence.observation import Observation
from sparkdiag.evidence.run import DcpProof, RevisionProof, RunRecord
from sparkdiag.evidence.stacks import SamplingStats
from sparkdiag.evidence.stored import StoredRun
from sparkdiag.evidence.timeline import GpuPoint, NoteEvent
from sparkdiag.evidence.verdict import Verdict
from sparkdiag.reporting.document import document
from sparkdiag.reporting.markdown import MOST_BYTES, render_markdown
from sparkdiag.reporting.watched import watched_summary

HOSTILE = "f\x1b[2J</details>`|@everyone"
FOUND = Diagnosis(
    kind="torch-fallback",
    finding="moving",
    confidence="high",
    process="Worker_TP0",
    function="_fp8_mqa_logits_torch",
    processes=(ProcessDiagnosis(pid=1, name="Worker_TP0", role="worker", kind="torch-fallback"),),
    looks=7,
    reasons_for=(Reason(source="metrics", text="1 running"),),
    next_step="look again",
)
BLIND = Diagnosis(
    kind="not-an-engine",
    reason="no stack was taken: SYS_PTRACE is missing",
    reasons_for=(Reason(source="metrics", text="1 requests running"),),
    next_step="docker run --cap-add SYS_PTRACE",
)


def watched(found: Diagnosis | None, *, sent: bool = False, **observed: Any) -> StoredRun:
    prompt = PromptSent(t_s=1, kind="needle", tokens=9, depth=0, seed=0, nonce="n", expected="e", max_output_tokens=1)
    record = RunRecord(
        sparkdiag_version="0",
        started_at="2026-01-01T00:00:00+00:00",
        status="finished",
        scenario={"name": "watched"},
        command=("sparkdiag", "watch", "--pid", "7"),
        environment={"watched": True, "found_by": "it listens on port 8000"},
        revision=RevisionProof(version="0.32.0", because="started by somebody else"),
        dcp=DcpProof(asked=2, size=2, witnesses=("worker titles: DCP0, DCP1",)),
        verdict=Verdict(outcome="inconclusive", reason="nothing stands still"),
        diagnosis=found,
    )
    client = ClientOutcome(sent=prompt) if sent else ClientOutcome()
    notes = (NoteEvent(t_s=2, source="metrics", text="its time to first token is its own"),)
    return StoredRun(
        run_dir="runs/x", record=record, observation=Observation(now_s=9, client=client, **observed), notes=notes
    )


def test_the_diagnosis_comes_first_and_then_what_was_watched() -> None:
    text = watched_summary(watched(FOUND))
    assert text.startswith("torch-fallback in _fp8_mqa_logits_torch, Worker_TP0: it moves")
    assert "server:   it listens on port 8000; version 0.32.0 as it says, not proved" in text
    assert "DCP:      2 (worker titles: DCP0, DCP1)" in text
    assert "prompt:" not in text and "GPU" not in text


def test_a_process_that_ended_meanwhile_is_told_before_all_else() -> None:
    found = watched(FOUND)
    gone = NoteEvent(t_s=4, source="process-tree", text="APIServer 7 ended while it was watched")
    text = watched_summary(found.model_copy(update={"notes": (*found.notes, gone)}))
    assert text.startswith("gone:     APIServer 7 ended while it was watched\ntorch-fallback in")


def test_metrics_that_told_nothing_are_said_to_be_missing() -> None:
    found = watched(FOUND)
    note = NoteEvent(t_s=4, source="no-metrics", text="http://127.0.0.1:1/metrics told nothing: it answered 404")
    assert "missing:  http://127.0.0.1:1/metrics told nothing" in watched_summary(
        found.model_copy(update={"notes": (note,)})
    )


def test_gpus_are_shown_and_decide_nothing() -> None:
    gpus = tuple(GpuPoint(t_s=t_s, index=0, utilisation_percent=90 + t_s, power_w=600) for t_s in (1, 8))
    text = watched_summary(watched(FOUND, gpus=gpus))
    assert "GPU 0: 98 %, 600 W" in text and "decides nothing" in text


def test_a_prompt_of_ours_is_told_with_its_company() -> None:
    text = watched_summary(watched(FOUND, sent=True))
    assert text.startswith("prompt:   Inconclusive: nothing stands still.")  # what was asked for comes first
    assert "traffic:  its time to first token is its own" in text
    page = render_markdown(watched(FOUND, sent=True))
    assert "the verdict on our own prompt" in page


def test_without_stacks_the_counters_and_the_capability_are_named() -> None:
    stats = SamplingStats(mode="none", reason="SYS_PTRACE is missing")
    for text in (watched_summary(watched(BLIND, sampling=stats)), render_markdown(watched(BLIND, sampling=stats))):
        assert "cannot tell: no stack was taken" in text
        assert "1 requests running" in text and "cap-add" in text
        assert "no inference engine" not in text


def test_the_document_has_the_keys_of_a_reproduction_and_the_diagnosis() -> None:
    made = document(watched(FOUND))
    assert {"verdict", "needle", "dcp_world_size", "revision", "timings_s", "run_dir", "diagnosis"} <= set(made)
    assert (made["diagnosis"]["kind"], made["dcp_world_size"], made["revision"]["proved"]) == (
        "torch-fallback",
        2,
        False,
    )
    assert document(watched(None))["diagnosis"] is None


def test_nothing_of_the_server_steers_the_terminal_or_breaks_out_of_the_page() -> None:
    hostile = FOUND.model_copy(update={"function": HOSTILE, "process": HOSTILE, "next_step": HOSTILE})
    assert "\x1b" not in watched_summary(watched(hostile))
    page = render_markdown(watched(hostile))
    assert "\x1b" not in page and "</details>`|" not in page
    many = FOUND.model_copy(update={"processes": FOUND.processes * 5000})
    assert len(render_markdown(watched(many)).encode()) <= MOST_BYTES
