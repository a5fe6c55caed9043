import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparkdiag.errors import RunFolderError
from sparkdiag.evidence.base import Value
from sparkdiag.evidence.client import AnswerScored, PromptSent, ResponseEnd, TokenChunk
from sparkdiag.evidence.processes import ProcessInfo, ServerExit
from sparkdiag.evidence.run import RunRecord
from sparkdiag.evidence.stacks import Frame, SamplingStats, StackSample, ThreadStack
from sparkdiag.evidence.timeline import GpuPoint, KvCapacity, MetricPoint, NoteEvent, PhaseEvent, ProcessesEvent
from sparkdiag.evidence.verdict import EvidenceItem, Verdict
from sparkdiag.recording.folder import RunFolder
from sparkdiag.recording.listing import list_runs
from sparkdiag.recording.read import read_run

SENT = PromptSent(t_s=12, kind="needle", tokens=9, depth=0, seed=0, nonce="", expected="x", max_output_tokens=1)
VERDICT = Verdict(
    outcome="stalled",
    mode="crawling",
    function="f",
    evidence_for=(EvidenceItem(source="stacks", text="seen"),),
    decided_at_s=20,
)
RECORD = RunRecord(
    sparkdiag_version="0.1.0",
    started_at="2026-05-26T08:15:02+00:00",
    status="finished",
    scenario={"name": "lab"},
    command=("sparkdiag", "repro"),
    verdict=VERDICT,
)


def sample(pid: int, ended_s: float) -> StackSample:
    frame = Frame(function="f", filename="a.py", line=3, locals={"head_start": 1})
    return StackSample(pid=pid, started_s=ended_s - 0.1, ended_s=ended_s, threads=(ThreadStack(frames=(frame,)),))


def process(pid: int, title: str = "w") -> ProcessInfo:
    return ProcessInfo(pid=pid, started_at_s=1, role="worker", title=title)


EVENTS: tuple[Value, ...] = (
    PhaseEvent(t_s=1, phase="launching"),
    sample(2, 5),
    PhaseEvent(t_s=10, phase="ready"),
    KvCapacity(t_s=10, num_blocks=4, block_size_tokens=16),
    ProcessesEvent(t_s=11, processes=(process(2), process(3))),
    SENT,
    sample(3, 15),
    sample(2, 14),
    MetricPoint(t_s=15, kv_cache_usage=0.25),
    GpuPoint(t_s=15, index=0, utilisation_percent=96),
    NoteEvent(t_s=16, source="x", text="y"),
    ProcessesEvent(t_s=17, processes=(process(2, "renamed"),)),
    SamplingStats(taken=3, cpu_s=0.5),
    ResponseEnd(t_s=21, how="cancelled"),
    sample(2, 22),
    MetricPoint(t_s=22),
    ServerExit(at_s=23, exit_code=-9),
)


def make(runs: Path, events: tuple[Value, ...] = EVENTS, record: RunRecord = RECORD) -> Path:
    now = datetime(2026, 5, 26, 8, 15, 2, tzinfo=UTC)
    with RunFolder.create(runs, scenario_name="lab", short_sha="abc", dcp=2, now=now) as folder:
        folder.write_record(record)
        for event in events:
            folder.append(event)
        assert folder.problems == ()
    return folder.path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return make(tmp_path)


def test_what_was_written_is_read_as_the_judge_saw_it(path: Path) -> None:
    stored = read_run(path)
    seen = stored.observation
    assert stored.problems == ()
    assert stored.record == RECORD
    assert (seen.now_s, seen.ready_at_s) == (20, 10)
    assert seen.samples == (sample(2, 14), sample(3, 15))
    assert seen.processes == (process(2, "renamed"), process(3))
    assert [point.kv_cache_usage for point in seen.metrics] == [0.25]
    assert seen.kv_capacity == KvCapacity(t_s=10, num_blocks=4, block_size_tokens=16)
    assert seen.sampling == SamplingStats(taken=3, cpu_s=0.5)
    assert seen.gpus[0].utilisation_percent == 96
    assert seen.client.sent == SENT
    assert seen.client.in_flight
    assert seen.server_exit is None
    assert [event.phase for event in stored.phases] == ["launching", "ready"]
    assert [note.text for note in stored.notes] == ["y"]
    assert read_run(path / "run.json") == stored


def test_without_a_verdict_everything_counts(tmp_path: Path) -> None:
    seen = read_run(make(tmp_path, record=RECORD.model_copy(update={"verdict": None}))).observation
    assert seen.now_s == 23
    assert len(seen.samples) == 3
    assert seen.client.end is not None
    assert seen.server_exit == ServerExit(at_s=23, exit_code=-9)


def test_an_answer_keeps_its_score_although_scored_after_the_decision(tmp_path: Path) -> None:
    verdict = Verdict(outcome="completed", needle="retrieved", decided_at_s=20)
    events = (
        SENT, TokenChunk(t_s=14, text="a"), TokenChunk(t_s=15, text="b"), ResponseEnd(t_s=19, how="finished"),
        AnswerScored(t_s=21, score="retrieved", because="equal"),
    )  # fmt: skip
    client = read_run(make(tmp_path, events, RECORD.model_copy(update={"verdict": verdict}))).observation.client
    assert (client.text, client.score, client.score_because) == ("ab", "retrieved", "equal")
    assert (client.first_token_s, client.last_token_s, client.time_to_first_token_s) == (14, 15, 2)


def test_a_control_request_is_not_the_request(tmp_path: Path) -> None:
    control = SENT.model_copy(update={"t_s": 2, "control": True})
    events = (control, TokenChunk(t_s=3, text="no"), ResponseEnd(t_s=4, how="finished"), SENT)
    client = read_run(make(tmp_path, events)).observation.client
    assert client.sent == SENT
    assert client.text == ""
    assert client.end is None


def test_a_torn_last_line_costs_only_itself(path: Path) -> None:
    file = path / "stacks.jsonl"
    file.write_bytes(file.read_bytes()[:-20])
    stored = read_run(path)
    assert len(stored.observation.samples) == 2
    assert stored.problems == ("stacks.jsonl: the last line is torn; it was left out",)


def test_garbage_in_the_middle_is_counted(path: Path) -> None:
    file = path / "timeline.jsonl"
    kept = file.read_bytes().splitlines()
    file.write_bytes(
        b"\n".join([*kept[:2], b"\xff\xfe{", b"[1]", b'{"event":"nobody"}', b"[" * 50_000, *kept[2:]]) + b"\n"
    )
    stored = read_run(path)
    assert stored.observation.ready_at_s == 10
    [problem] = stored.problems
    assert problem == f"timeline.jsonl: left out 4 of {len(kept) + 4} lines that cannot be read (first: line 3)"


def test_missing_streams_are_named(path: Path) -> None:
    (path / "client.jsonl").unlink()
    (path / "stacks.jsonl").unlink()
    stored = read_run(path)
    assert set(stored.problems) == {"client.jsonl is missing", "stacks.jsonl is missing"}
    assert stored.record.verdict == VERDICT


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '{"status": 3'])
def test_without_a_record_the_streams_are_still_read(path: Path, content: str) -> None:
    (path / "run.json").write_text(content)
    stored = read_run(path)
    assert stored.record.verdict is None
    assert stored.observation.client.sent == SENT
    assert stored.record.status == "unknown"
    assert stored.problems[0].startswith("run.json ")


def test_fields_that_do_not_fit_are_left_out_of_the_record(path: Path) -> None:
    document = json.loads((path / "run.json").read_text())
    (path / "run.json").write_text(json.dumps(document | {"schema": 7, "dcp": "two", "status": "odd", "new": 1}))
    stored = read_run(path)
    assert stored.record.verdict == VERDICT
    assert stored.record.dcp is None
    assert stored.record.status == "unknown"
    assert "run.json was written by a newer sparkdiag (schema 7, this one reads 1)" in stored.problems
    assert "run.json: left out what does not fit: dcp, status" in stored.problems


@pytest.mark.parametrize(("schema", "word"), [(0, "an older"), (9, "a newer")])
def test_another_schema_of_a_stream_is_said(path: Path, schema: int, word: str) -> None:
    file = path / "client.jsonl"
    file.write_text(file.read_text().replace('{"schema":1', f'{{"schema":{schema}', 1))
    assert [problem for problem in read_run(path).problems if f"client.jsonl was written by {word}" in problem]


def test_a_stream_without_header_is_read(path: Path) -> None:
    file = path / "client.jsonl"
    file.write_text("".join(file.read_text().splitlines(keepends=True)[1:]))
    stored = read_run(path)
    assert stored.observation.client.sent == SENT
    assert stored.problems == ("client.jsonl has no header line",)


@pytest.mark.parametrize("name", ["nowhere", "empty", "empty/run.json"])
def test_no_run_is_one_clear_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(RunFolderError) as caught:
        read_run(tmp_path / name)
    assert caught.value.remedy == "sparkdiag runs list"


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.binary(max_size=200), st.sampled_from(["run.json", "timeline.jsonl", "stacks.jsonl", "client.jsonl"]))
def test_no_bytes_in_any_file_break_reading(path: Path, junk: bytes, name: str) -> None:
    (path / name).write_bytes(junk)
    assert read_run(path).problems or name != "run.json"


def test_runs_are_listed_newest_first_without_strangers(tmp_path: Path) -> None:
    first, second = make(tmp_path), make(tmp_path)
    for name, content in (("stranger", '{"started_at": "now"}'), ("broken", "{"), ("none", None)):
        (tmp_path / name).mkdir()
        if content is not None:
            (tmp_path / name / "run.json").write_text(content)
    (tmp_path / "link").symlink_to(first)
    assert [path for path, _ in list_runs(tmp_path)] == [second, first]
    assert list_runs(tmp_path / "nowhere") == ()


@pytest.mark.parametrize("name", ["run.json", "timeline.jsonl", "stacks.jsonl"])
def test_a_pipe_in_place_of_a_file_holds_no_reader_up(path: Path, name: str) -> None:
    (path / name).unlink()
    os.mkfifo(path / name)
    assert f"{name} cannot be read: it is no plain file" in read_run(path).problems
