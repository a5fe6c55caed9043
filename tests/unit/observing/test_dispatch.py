"""The probe's ledger as it is read: whole lines only, times on the run clock, nothing trusted."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.evidence.base import Value
from sparkdiag.evidence.ledger import DispatchCall, DispatchProcess, DispatchTotals
from sparkdiag.evidence.timeline import NoteEvent
from sparkdiag.observing import dispatch
from sparkdiag.observing.dispatch import DispatchFollower, DispatchReader, parse_line

OFFSET_S = 1000.0


def call(number: int = 1, **changes: Any) -> dict[str, Any]:
    return {
        "event": "call",
        "pid": 7,
        "number": number,
        "function": "f",
        "module": "m",
        "began_s": 1010.0,
        "took_s": 0.5,
        **changes,
    }


def text(document: dict[str, Any]) -> str:
    return json.dumps(document) + "\n"


def write(folder: Path, *documents: dict[str, Any], pid: int = 7) -> Path:
    path = folder / f"dispatch-{pid}.jsonl"
    with path.open("a", encoding="utf-8") as file:
        file.write("".join(map(text, documents)))
    return path


def followed(folder: Path, **changes: Any) -> tuple[DispatchFollower, list[Value]]:
    kept: list[Value] = []
    given: dict[str, Any] = {"clock": lambda: 50.0, "monotonic": lambda: 50.0 + OFFSET_S, "sink": kept.append}
    return DispatchFollower(folder, **{**given, **changes}), kept


def parsed(document: dict[str, Any]) -> DispatchCall:
    found = parse_line(json.dumps(document), pid=7, clock_offset_s=OFFSET_S)
    assert isinstance(found, DispatchCall)
    return found


def test_times_are_put_on_the_run_clock() -> None:
    found = parsed(call(took_s=2.5))
    assert (found.began_s, found.took_s) == (10.0, 2.5)


@pytest.mark.parametrize(
    "document",
    [
        call(pid=8),
        call(number=0),
        call(began_s="now"),
        call(began_s=float("nan")),
        call(took_s=-1),
        call(took_s=float("inf")),
        {"event": "other", "pid": 7},
        {"pid": 7},
        [],
        "text",
    ],
)
def test_what_is_no_line_of_the_ledger_is_none(document: Any) -> None:
    assert parse_line(json.dumps(document), pid=7, clock_offset_s=0) is None


@pytest.mark.parametrize("line", [b"", b"{", b"\xff\xfe", b"[" * 5000, b'"' + b"x" * 70_000 + b'"'])
def test_torn_and_hostile_bytes_are_none(line: bytes) -> None:
    assert parse_line(line, pid=7, clock_offset_s=0) is None


def test_text_is_made_harmless_and_everything_cut() -> None:
    found = parsed(
        call(
            function="f\x1b[31m" + "x" * 1000,
            arguments={"password": "hunter2", "deep": [[[[[[1]]]]]], "wide": list(range(9000)), "key": 10**40},
            seen={"where": "https://user:hunter2@host/"},
        )
    )
    shown = found.model_dump_json()
    assert "\x1b" not in shown and "hunter2" not in shown and len(shown) < 4000
    assert len(found.function) <= 200
    assert "password" not in found.arguments and found.arguments["key"] == "an integer of 41 digits"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_whatever_an_argument_holds_the_line_can_be_written_as_json(value: Any) -> None:
    found = parsed(call(arguments={"value": value}))
    json.dumps(found.model_dump(mode="json"), allow_nan=False)


def test_a_torn_last_line_waits_for_its_end(tmp_path: Path) -> None:
    reader = DispatchReader(tmp_path, clock_offset_s=0)
    line = text(call(1))
    path = tmp_path / "dispatch-7.jsonl"
    path.write_text(text(call(2)) + line[:20], encoding="utf-8")
    assert [one.number for one in reader.read() if isinstance(one, DispatchCall)] == [2]
    with path.open("a", encoding="utf-8") as file:
        file.write(line[20:])
    assert [one.number for one in reader.read() if isinstance(one, DispatchCall)] == [1]
    assert list(reader.read()) == [] and reader.skipped == 0


def test_a_look_is_bounded_and_the_rest_comes_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "READ_LIMIT_BYTES", 1000)
    write(tmp_path, *(call(number) for number in range(1, 41)))
    reader = DispatchReader(tmp_path, clock_offset_s=0)
    first = list(reader.read())
    assert 0 < len(first) < 40 and reader.behind
    found = first + [one for _ in range(40) for one in reader.read()]
    assert len(found) == 40 and not reader.behind


def test_a_line_longer_than_a_look_is_stepped_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "READ_LIMIT_BYTES", 500)
    (tmp_path / "dispatch-7.jsonl").write_text("x" * 5000 + "\n" + text(call(1)), encoding="utf-8")
    reader = DispatchReader(tmp_path, clock_offset_s=0)
    found = [one for _ in range(40) for one in reader.read()]
    assert len(found) == 1


def test_pipes_links_and_foreign_names_are_not_read(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text(text(call(pid=1)), encoding="utf-8")
    (tmp_path / "dispatch-1.jsonl").symlink_to(elsewhere)
    os.mkfifo(tmp_path / "dispatch-2.jsonl")
    (tmp_path / "dispatch-3.jsonl").mkdir()
    (tmp_path / "dispatch-x.jsonl").write_text(text(call()), encoding="utf-8")
    assert list(DispatchReader(tmp_path, clock_offset_s=0).read()) == []
    assert list(DispatchReader(tmp_path / "gone", clock_offset_s=0).read()) == []


def test_the_last_look_takes_what_came_and_says_what_could_not_be_read(tmp_path: Path) -> None:
    follower, kept = followed(tmp_path)
    write(tmp_path, {"event": "process", "pid": 7}, call(1), {"event": "nonsense", "pid": 7})
    follower.look()
    write(tmp_path, {"event": "process", "pid": 7}, call(2), {"event": "process", "pid": 7, "dcp_world_size": 2})
    follower.finish(wait_s=0)
    assert [one.number for one in kept if isinstance(one, DispatchCall)] == [1, 2]
    assert len([one for one in kept if isinstance(one, DispatchProcess)]) == 2
    assert [one.text for one in kept if isinstance(one, NoteEvent)] == [
        "1 line of the probe's files could not be read and were left out"
    ]


def test_of_totals_only_the_newest_is_handed_on(tmp_path: Path) -> None:
    now = [40.0]
    follower, kept = followed(tmp_path, clock=lambda: now[0])
    write(tmp_path, *({"event": "totals", "pid": 7, "written": number} for number in range(5)))
    follower.look()
    assert [one.written for one in kept if isinstance(one, DispatchTotals)] == [4]
    write(tmp_path, {"event": "totals", "pid": 7, "written": 9})
    follower.look()
    assert len(kept) == 1
    follower.finish(wait_s=0)
    assert [one.written for one in kept if isinstance(one, DispatchTotals)] == [4, 9]


def test_a_run_s_lines_are_bounded_and_the_rest_is_counted(tmp_path: Path) -> None:
    follower, kept = followed(tmp_path, most_lines=3)
    write(tmp_path, *(call(number) for number in range(1, 8)))
    follower.look()
    follower.finish(wait_s=0)
    assert len([one for one in kept if isinstance(one, DispatchCall)]) == 3
    assert [one.text for one in kept if isinstance(one, NoteEvent)] == [
        "4 lines came after the first 3 and were left out"
    ]


def test_a_disk_that_refuses_ends_nothing(tmp_path: Path) -> None:
    def refuse(_value: Value) -> None:
        raise OSError("full")

    follower, _kept = followed(tmp_path, sink=refuse)
    write(tmp_path, call(1), call(2))
    follower.look()
    follower.finish(wait_s=0)


def test_started_it_follows_by_itself(tmp_path: Path) -> None:
    follower, kept = followed(tmp_path)
    write(tmp_path, call(1))
    follower.start()
    write(tmp_path, call(2))
    follower.finish(wait_s=0)
    assert [one.number for one in kept if isinstance(one, DispatchCall)] == [1, 2]
