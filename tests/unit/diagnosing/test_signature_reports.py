"""The 43 public reports, as typed frames: what share is named right, and that nothing healthy is called stalled."""

import json
from pathlib import Path

import pytest
from signature_stacks import MODEL, RUN, look

from scripts.score_triage import Scored, looks_of, main, read_rows, score, share_right
from sparkdiag.diagnosing.diagnose import diagnose
from sparkdiag.evidence.dump import ProcessDump

REPORTS = Path(__file__).parents[2] / "fixtures" / "stalls" / "reports.jsonl"
OWN_CODE = "main (experiments/train.py) < <module> (runner.py)"


@pytest.fixture(scope="module")
def scored() -> tuple[Scored, ...]:
    return score(read_rows(REPORTS))


def test_nine_in_ten_concluded_reports_are_named_right(scored: tuple[Scored, ...]) -> None:
    concluded = [each for each in scored if each.concluded]
    assert len(concluded) == 14
    assert share_right(concluded) >= 0.9, [each for each in concluded if not each.right]


def test_nearly_as_many_of_all_are(scored: tuple[Scored, ...]) -> None:
    assert len(scored) == 43
    assert share_right(scored) >= 0.88, [each for each in scored if not each.right]


def test_no_healthy_one_is_called_stalled(scored: tuple[Scored, ...]) -> None:
    healthy = [each for each in scored if each.healthy]
    assert len(healthy) >= 5
    assert all(each.right for each in healthy), healthy


def test_the_score_counts_wrong_ones_and_false_alarms(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = {
        "id": "one",
        "status": "concluded",
        "healthy": True,
        "expect": ["idle"],
        "stack": [
            {"process": "VLLM::EngineCore", "thread": "MainThread", "frames": ["_to_list (gpu_model_runner.py:1)"]}
        ],
    }
    path = tmp_path / "reports.jsonl"
    path.write_text(json.dumps(row) + "\n")
    assert main([str(path)]) == 1
    assert "healthy ones called stalled: one" in capsys.readouterr().out
    path.write_text(json.dumps({**row, "healthy": False, "expect": ["gpu-wait"]}) + "\n")
    assert main([str(path), "--quiet"]) == 0
    assert main([str(path), "--at-least", "101"]) == 1


def test_entries_without_a_process_belong_to_the_one_before() -> None:
    stack = [
        {"process": "Process 7: VLLM::Worker_TP1", "thread": 'Thread 7 (idle): "MainThread"', "frames": ["a (a.py:1)"]},
        {"process": None, "thread": 'Thread 8 (active+gil): "other"', "frames": ["b"]},
        {"process": None, "thread": 'Thread 9 (active): "MainThread"', "frames": ["c (libc.so.6)", "..."]},
    ]
    first, second = looks_of({"process_role": "Worker", "stack": stack})
    assert (first.pid, first.role, first.ranks.tp, [thread.name for thread in first.threads]) == (
        7,
        "worker",
        1,
        ["MainThread", "other"],
    )
    assert first.threads[1].owns_gil
    assert [(frame.function, frame.native) for frame in second.threads[0].frames] == [("c", True)]


def test_the_rank_that_is_elsewhere_decides_where_its_peers_wait_on_the_device() -> None:
    waits = [look(f"synchronize (torch/cuda/streams.py) < {RUN}", role="worker") for _ in range(3)]
    waits = [each.model_copy(update={"pid": pid}) for pid, each in enumerate(waits, 1)]
    works = look(f"rotate (vllm/model_executor/rope.py) < {MODEL}", role="worker").model_copy(update={"pid": 9})
    found = diagnose([*waits, works])
    assert (found.kind, found.function) == ("forward", "rotate")
    assert [each.pid for each in found.processes if each.differs] == [9]


def test_a_program_of_its_own_beside_ranks_that_wait_is_one_of_them() -> None:
    waits = look("_value (jax/_src/array.py) < main (experiments/train.py)").model_copy(update={"pid": 1})
    lags = look(OWN_CODE).model_copy(update={"pid": 2})
    found = diagnose([waits, lags])
    assert (found.kind, found.function) == ("forward", "main")
    alone: ProcessDump = lags
    assert diagnose([alone]).kind == "not-an-engine"
