import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.observing.inprocess import CONTROL_FILE, InProcessReader, parse_line, switch_off, switch_on

KEPT = frozenset({"k_cache_prefix"})


def line(pid: int = 7, *, began: float = 101.0, **locals_: Any) -> bytes:
    frame = {"function": "_fp8_mqa_logits_torch", "filename": "/x/y.py", "short_filename": "y.py", "line": 3}
    thread = {"thread_id": 1, "os_thread_id": 7, "thread_name": "MainThread", "active": True, "owns_gil": False}
    document = {
        "schema": 1,
        "pid": pid,
        "started_monotonic_s": began,
        "ended_monotonic_s": began + 0.01,
        "threads": [{**thread, "frames": [{**frame, "locals": locals_}]}],
    }
    return json.dumps(document).encode() + b"\n"


def reader(folder: Path) -> InProcessReader:
    return InProcessReader(folder, clock=lambda: 5.0, monotonic=lambda: 105.0, kept_names=KEPT)


def test_a_line_is_a_sample_on_the_run_clock() -> None:
    sample = parse_line(
        line(head_start=3, clean_logits=False, k_cache_prefix="l.5", prompt="secret", ratio=1.5),
        pid=7,
        clock_offset_s=100.0,
        kept_names=KEPT,
    )
    assert sample is not None
    assert (sample.source, sample.started_s, round(sample.ended_s, 6)) == ("in-process", 1.0, 1.01)
    assert sample.threads[0].frames[0].locals == {"head_start": 3, "clean_logits": False, "k_cache_prefix": "l.5"}


def test_names_are_cleaned() -> None:
    sample = parse_line(line().replace(b"y.py", b"\\u001b[31m"), pid=7, clock_offset_s=0.0)
    assert sample is not None
    assert "\x1b" not in sample.model_dump_json()
    assert "\\u001b" not in sample.model_dump_json()


def test_a_file_is_read_as_it_grows_and_a_torn_line_waits(tmp_path: Path) -> None:
    file = tmp_path / "stacks-7.jsonl"
    source = reader(tmp_path)
    assert source.read(frozenset({7})) == ()
    whole = line(head_start=2)
    file.write_bytes(line(head_start=1) + whole[:20])
    assert [s.threads[0].frames[0].locals["head_start"] for s in source.read(frozenset({7}))] == [1]
    assert source.read(frozenset({7})) == ()
    with file.open("ab") as stream:
        stream.write(whole[20:] + b"garbage\n")
    assert [s.threads[0].frames[0].locals["head_start"] for s in source.read(frozenset({7}))] == [2]
    assert source.read(frozenset({7})) == ()


def test_processes_are_merged_in_order_and_strangers_left_out(tmp_path: Path) -> None:
    (tmp_path / "stacks-7.jsonl").write_bytes(line(7, began=101) + line(7, began=103))
    (tmp_path / "stacks-8.jsonl").write_bytes(line(8, began=102))
    (tmp_path / "stacks-9.jsonl").write_bytes(line(9, began=102))
    assert [s.pid for s in reader(tmp_path).read(frozenset({7, 8}))] == [7, 8, 7]


def test_a_full_file_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "stacks-7.jsonl").write_bytes(line() + b'{"schema":1,"pid":7,"full":true}\n')
    source = reader(tmp_path)
    assert len(source.read(frozenset({7}))) == 1
    assert source.full == {7}


def test_the_switch(tmp_path: Path) -> None:
    switch_on(tmp_path, period_s=1.25)
    assert json.loads((tmp_path / CONTROL_FILE).read_text()) == {"period_s": 1.25}
    switch_off(tmp_path)
    switch_off(tmp_path)
    assert not (tmp_path / CONTROL_FILE).exists()


@given(st.binary(max_size=200))
def test_any_bytes_are_a_sample_or_none(data: bytes) -> None:
    parse_line(data, pid=1, clock_offset_s=0.0)
