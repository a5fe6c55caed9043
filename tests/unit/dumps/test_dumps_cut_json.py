"""py-spy's JSON of which only the beginning was pasted."""

import json

import pytest

from sparkdiag.dumps.read import read_dumps

FRAME = {"name": "f", "filename": "/x/vllm/a.py", "short_filename": "vllm/a.py", "line": 3, "locals": None}
THREAD = {
    "pid": 7,
    "thread_id": 7,
    "thread_name": "MainThread",
    "active": True,
    "owns_gil": False,
    "frames": [FRAME] * 3,
}
WHOLE = json.dumps([THREAD, {**THREAD, "thread_name": "Thread-1"}])


@pytest.mark.parametrize("length", [200, 300, len(json.dumps(THREAD)) - 5])
def test_cut_in_its_first_thread_it_is_said_to_be_cut(length: int) -> None:
    found = read_dumps(WHOLE[:length], source="x")
    assert found.looks == ()
    assert found.refused_kind == "garbled" and "cut off" in (found.refused or "")


def test_cut_later_the_whole_threads_are_read() -> None:
    (look,) = read_dumps(WHOLE[:-20], source="x").looks
    assert [thread.name for thread in look.threads] == ["MainThread"]
    assert any("ends in the middle" in note for note in look.notes)


def test_json_that_is_no_stack_is_no_cut_one() -> None:
    assert read_dumps('{"frames": [1, 2', source="x").refused_kind == "not-an-engine"
