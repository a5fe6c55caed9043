import json
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

import sparkdiag.recording.folder as folder_module
import sparkdiag.recording.reserve as reserve_module
from sparkdiag.errors import ExitCode, RunFolderError
from sparkdiag.evidence.client import AnswerScored, PromptSent, ResponseEnd, TokenChunk
from sparkdiag.evidence.processes import ProcessInfo, ServerExit
from sparkdiag.evidence.run import RunRecord
from sparkdiag.evidence.stacks import Frame, SamplingStats, StackSample, ThreadStack
from sparkdiag.evidence.timeline import GpuPoint, KvCapacity, MetricPoint, NoteEvent, PhaseEvent, ProcessesEvent
from sparkdiag.recording.folder import RunFolder, folder_name

NOW = datetime(2026, 5, 26, 8, 15, 2, tzinfo=UTC)
RECORD = RunRecord(
    sparkdiag_version="0.1.0",
    started_at="2026-05-26T08:15:02+00:00",
    status="running",
    scenario={"name": "lab"},
    command=("sparkdiag", "repro", "--", "--api-key", "PlantedSecret"),
    server_env={"HF_TOKEN": "PlantedSecret", "VLLM_X": "1"},
)


def create(runs: Path) -> RunFolder:
    return RunFolder.create(runs, scenario_name="lab", short_sha="3f2a9c41d0", dcp=2, now=NOW)


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return create(tmp_path / "runs")


def lines(file: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def sample(pid: int, ended_s: float = 2.0) -> StackSample:
    frame = Frame(function="f", filename="a.py", line=3, locals={"head_start": 1})
    return StackSample(pid=pid, started_s=1.0, ended_s=ended_s, threads=(ThreadStack(frames=(frame,)),))


def test_the_name_sorts_by_time_and_needs_no_quoting() -> None:
    assert folder_name(scenario_name="lab", short_sha="3f2a9c41d0", dcp=2, now=NOW) == (
        "20260526T081502Z-lab-3f2a9c41d0-dcp2"
    )
    assert folder_name(scenario_name="../x y", short_sha=None, dcp=1, now=NOW) == "20260526T081502Z-x-y-norev-dcp1"


def test_two_runs_in_one_second_get_two_folders(tmp_path: Path) -> None:
    first, second, third = (create(tmp_path) for _ in range(3))
    assert [one.path.name.removeprefix(first.path.name) for one in (first, second, third)] == ["", "-2", "-3"]


def test_every_stream_begins_with_its_header(run: RunFolder) -> None:
    for stream in ("timeline", "stacks", "client"):
        assert lines(run.path / f"{stream}.jsonl") == [{"schema": 1, "stream": stream}]
    assert not (run.path / "dispatch.jsonl").exists()
    run.append_document("dispatch", {"function": "f"})
    assert lines(run.path / "dispatch.jsonl") == [{"schema": 1, "stream": "dispatch"}, {"function": "f"}]


def test_values_go_to_their_streams_and_are_there_at_once(run: RunFolder) -> None:
    process = ProcessInfo(pid=1, started_at_s=1, role="worker", title="w")
    timeline = (
        PhaseEvent(t_s=0, phase="ready"),
        MetricPoint(t_s=1),
        KvCapacity(t_s=1, num_blocks=4, block_size_tokens=16),
        GpuPoint(t_s=1, index=0),
        ProcessesEvent(t_s=1, processes=(process,)),
        NoteEvent(t_s=1, source="x", text="y"),
        SamplingStats(taken=4),
        ServerExit(at_s=3),
    )
    client = (
        PromptSent(t_s=1, kind="needle", tokens=9, depth=0, seed=0, nonce="", expected="", max_output_tokens=1),
        TokenChunk(t_s=2, text="x"),
        ResponseEnd(t_s=3, how="finished"),
        AnswerScored(t_s=3, score="wrong"),
    )
    for value in (*timeline, *client, sample(1)):
        run.append(value)
    assert [line.get("event") for line in lines(run.path / "timeline.jsonl")[1:]] == [
        "phase", "metrics", "kv_capacity", "gpu", "processes", "note", "sampling", "server_exit",
    ]  # fmt: skip
    assert [line.get("event") for line in lines(run.path / "client.jsonl")[1:]] == [
            "sent", "chunk", "chunk", "end", "score",
        ]  # fmt: skip
    assert len(lines(run.path / "stacks.jsonl")) == 2
    assert run.problems == ()


def test_the_record_is_replaced_whole_and_leaves_nothing_beside_it(run: RunFolder) -> None:
    run.write_record(RECORD)
    run.write_record(RECORD.model_copy(update={"status": "finished"}))
    assert json.loads((run.path / "run.json").read_text())["status"] == "finished"
    assert sorted(file.name for file in run.path.iterdir()) == [
        "client.jsonl", "run.json", "stacks.jsonl", "timeline.jsonl",
    ]  # fmt: skip


def test_a_failed_replacement_keeps_the_old_record(run: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    run.write_record(RECORD)

    def full(_fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(folder_module.os, "fsync", full)
    run.write_record(RECORD.model_copy(update={"status": "finished"}))
    assert json.loads((run.path / "run.json").read_text())["status"] == "running"
    assert not [file for file in run.path.iterdir() if file.name.startswith(".")]
    assert "No space left on device" in run.problems[0]


def test_no_secret_is_written(run: RunFolder) -> None:
    run.write_record(RECORD)
    run.append(NoteEvent(t_s=1, source="x", text="Authorization: Bearer PlantedSecret"))
    process = ProcessInfo(pid=1, started_at_s=1, role="api_server", title="vllm serve --api-key PlantedSecret")
    run.append(ProcessesEvent(t_s=1, processes=(process,)))
    run.write_report("report.md", "https://u:PlantedSecret@host/")
    for file in run.path.iterdir():
        assert "PlantedSecret" not in file.read_text(), file.name
    assert json.loads((run.path / "run.json").read_text())["server_env"] == {"VLLM_X": "1"}


def test_many_threads_never_mix_their_lines(run: RunFolder) -> None:
    def write(pid: int) -> None:
        for _ in range(50):
            run.append(sample(pid))

    threads = [threading.Thread(target=write, args=(pid,)) for pid in range(1, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    written = lines(run.path / "stacks.jsonl")[1:]
    assert sorted(line["process"] for line in written) == sorted(list(range(1, 7)) * 50)


def test_a_full_disk_is_remembered_once_and_writing_goes_on(run: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    real = folder_module.os.write

    def torn(fd: int, data: bytes) -> int:
        if len(data) > 10:
            return real(fd, data[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(folder_module.os, "write", torn)
    for _ in range(3):
        run.append(NoteEvent(t_s=1, source="x", text="lost"))
    monkeypatch.setattr(folder_module.os, "write", real)
    run.append(NoteEvent(t_s=2, source="x", text="kept"))
    run.append(sample(1))
    assert len(run.problems) == 1
    assert "timeline.jsonl" in run.problems[0]
    assert "No space left on device" in run.problems[0]
    assert run.problems[0].endswith("(3 times)")
    assert json.loads((run.path / "timeline.jsonl").read_text().splitlines()[-1])["text"] == "kept"
    assert len(lines(run.path / "stacks.jsonl")) == 2


def test_a_folder_that_vanishes_ends_nothing(run: RunFolder) -> None:
    for file in run.path.iterdir():
        file.unlink()
    run.path.rmdir()
    run.append(sample(1))
    run.write_record(RECORD)
    assert any("run.json" in problem for problem in run.problems)


def test_after_close_an_append_is_a_problem_and_a_report_still_is_kept(run: RunFolder) -> None:
    with run:
        pass
    run.append(sample(1))
    assert "closed" in run.problems[0]
    assert run.write_report("report.md", "x").read_text() == "x"


def test_a_place_that_cannot_be_written_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunFolderError, match="cannot make a run folder") as caught:
        create(tmp_path / "file" / "runs")
    assert caught.value.remedy == "name a folder you may write to: --out DIR"
    assert caught.value.exit_code == ExitCode.ENVIRONMENT


def test_new_runs_folders_hide_from_git_and_old_ones_are_left_alone(tmp_path: Path) -> None:
    create(tmp_path / "new")
    assert (tmp_path / "new" / ".gitignore").read_text() == "*\n"
    (tmp_path / "old").mkdir()
    create(tmp_path / "old")
    assert not (tmp_path / "old" / ".gitignore").exists()


def test_an_answer_is_written_as_a_whole_so_that_a_secret_in_pieces_is_known(tmp_path: Path) -> None:
    with create(tmp_path) as run:
        for t_s, piece in enumerate(["my key is hf_", "abcdefgh", "ijklmnop", "qrst."]):
            run.append(TokenChunk(t_s=t_s, text=piece))
        run.append(ResponseEnd(t_s=9, how="finished"))
        written = lines(run.path / "client.jsonl")[1:]
    chunks = [line for line in written if line["event"] == "chunk"]
    assert [chunk["t_s"] for chunk in chunks] == [0, 1, 2, 3, 3]
    assert "".join(chunk["text"] for chunk in chunks) == "my key is [redacted]."


def test_room_is_kept_for_the_end_without_a_name_and_given_back_with_the_ending_record(run: RunFolder) -> None:
    def nameless() -> list[int]:
        links = [path.readlink() for path in Path("/proc/self/fd").iterdir() if path.is_symlink()]
        return [1 for link in links if str(link).startswith(str(run.path)) and str(link).endswith("(deleted)")]

    assert len(nameless()) == 1 and not [path for path in run.path.iterdir() if path.name.startswith(".")]
    run.write_record(RECORD)
    assert len(nameless()) == 1
    run.write_record(RECORD.model_copy(update={"status": "interrupted"}))
    assert nameless() == []
    run.close()
    run.close()


def test_a_stream_that_the_full_disk_refused_takes_nothing_of_the_room_for_the_end(
    run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = folder_module.os.write

    def full(_fd: int, _data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(folder_module.os, "write", full)
    run.append(sample(1))
    monkeypatch.setattr(folder_module.os, "write", real)
    run.write_record(RECORD.model_copy(update={"status": "finished"}))
    run.append(sample(2))
    assert run.problems == ("stacks.jsonl: [Errno 28] No space left on device (2 times)",)
    assert len(lines(run.path / "stacks.jsonl")) == 1
    assert json.loads((run.path / "run.json").read_text())["status"] == "finished"


def test_where_no_room_can_be_kept_the_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_fd: int, _begin: int, _size: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(reserve_module.os, "posix_fallocate", refused)
    with create(tmp_path) as run:
        run.append(sample(1))
        run.write_record(RECORD.model_copy(update={"status": "finished"}))
    assert run.problems == ()


def test_a_record_that_was_written_in_the_end_is_no_problem(run: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_fd: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(folder_module.os, "fsync", full)
        run.write_record(RECORD)
    assert "run.json" in run.problems[0]
    run.write_record(RECORD)
    assert run.problems == ()
