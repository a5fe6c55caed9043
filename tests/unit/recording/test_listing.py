"""Which state a run folder is in: by its record, its streams, and whether somebody writes it."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparkdiag.evidence.run import RunRecord
from sparkdiag.evidence.timeline import PhaseEvent
from sparkdiag.recording.folder import RunFolder
from sparkdiag.recording.in_use import is_held
from sparkdiag.recording.listing import (
    ListedRun,
    began_s,
    foreign_entries,
    has_our_headers,
    is_run_folder,
    list_runs,
    listed_runs,
    state_of,
)

RECORD = RunRecord(
    sparkdiag_version="0.1.0",
    started_at="2026-05-26T08:15:02+00:00",
    status="running",
    scenario={"name": "lab"},
    command=("sparkdiag", "repro"),
)
NAME = "20260526T081502Z-lab-abc-dcp2"
HEADER = {"timeline": b'{"schema":1,"stream":"timeline"}\n'}


def begun(runs: Path, *, status: str = "running") -> RunFolder:
    now = datetime(2026, 5, 26, 8, 15, 2, tzinfo=UTC)
    folder = RunFolder.create(runs, scenario_name="lab", short_sha="abc", dcp=2, now=now)
    folder.write_record(RECORD.model_copy(update={"status": status}))
    folder.append(PhaseEvent(t_s=0, phase="launching"))
    return folder


def only(runs: Path) -> ListedRun:
    [run] = listed_runs(runs)
    return run


@pytest.mark.parametrize(
    ("status", "held", "state"),
    [
        ("running", True, "running"),
        ("running", False, "killed"),
        ("running", None, "running"),
        ("finished", False, "finished"),
        ("failed", None, "failed"),
        ("unknown", False, "damaged"),
        (None, False, "damaged"),
        (None, None, "damaged"),
        (None, True, "running"),
    ],
)
def test_the_state_follows_from_record_and_holder(status: str | None, held: bool | None, state: str) -> None:
    record = RECORD.model_copy(update={"status": status}) if status is not None else None
    found, because = state_of(record, problem="run.json is missing" if record is None else "", held=held)
    assert found == state
    assert bool(because) == (state in ("killed", "damaged") or (status == "running" and held is None) or record is None)


def test_a_run_is_running_as_long_as_its_folder_is_open(tmp_path: Path) -> None:
    folder = begun(tmp_path)
    assert (only(tmp_path).state, only(tmp_path).held) == ("running", True)
    folder.close()
    assert (only(tmp_path).state, only(tmp_path).held) == ("killed", False)
    assert "gone" in only(tmp_path).because


@pytest.mark.parametrize(
    ("content", "because"),
    [
        (None, "run.json is missing"),
        (b"", "run.json is empty"),
        (b"\0" * 64, "run.json is empty"),
        (b'{"schema": 1, "status": "fini', "run.json is not whole: "),
        (b"[1]", "run.json holds no JSON object"),
        (b"{}", "run.json is not a record of sparkdiag's"),
    ],
)
def test_a_folder_without_a_readable_record_is_damaged(tmp_path: Path, content: bytes | None, because: str) -> None:
    with begun(tmp_path, status="finished") as folder:
        pass
    (folder.path / "run.json").unlink()
    if content is not None:
        (folder.path / "run.json").write_bytes(content)
    run = only(tmp_path)
    assert (run.state, run.ours, run.record) == ("damaged", True, None)
    assert run.because.startswith(because)
    assert run.began_s == datetime(2026, 5, 26, 8, 15, 2, tzinfo=UTC).timestamp()
    assert list_runs(tmp_path) == ()


def test_a_pipe_or_a_link_for_a_record_is_damage_and_holds_nobody_up(tmp_path: Path) -> None:
    with begun(tmp_path / "a", status="finished") as folder:
        (folder.path / "run.json").rename(tmp_path / "elsewhere.json")
    (folder.path / "run.json").symlink_to(tmp_path / "elsewhere.json")
    assert only(tmp_path / "a").because == "run.json is a link, which is not followed"
    (folder.path / "run.json").unlink()
    os.mkfifo(folder.path / "run.json")
    assert only(tmp_path / "a").because == "run.json cannot be read: it is no plain file"


def test_a_bare_folder_of_our_name_is_damaged_and_not_ours(tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()
    assert (only(tmp_path).state, only(tmp_path).ours) == ("damaged", False)


def test_strangers_and_links_are_not_listed(tmp_path: Path) -> None:
    begun(tmp_path / "real", status="finished").close()
    [real] = [path for path in (tmp_path / "real").iterdir() if path.is_dir()]
    runs = tmp_path / "runs"
    for name, content in (("tensorboard", None), ("other-tool", '{"started_at": "2020", "status": "finished"}')):
        (runs / name).mkdir(parents=True)
        if content is not None:
            (runs / name / "run.json").write_text(content)
    (runs / NAME).symlink_to(real)
    assert listed_runs(runs) == ()
    assert listed_runs(tmp_path / "nowhere") == ()


@pytest.mark.parametrize(
    ("headers", "ours"),
    [
        ({}, False),
        (HEADER, True),
        ({"timeline": HEADER["timeline"], "stacks": b'{"schema":1,"stream":"stacks"}'}, True),
        ({"timeline": HEADER["timeline"], "stacks": b"their own\n"}, False),
        ({"timeline": b'{"schema":1,"stream":"stacks"}'}, False),
        ({"timeline": b'{"schema":true,"stream":"timeline"}'}, False),
        ({"timeline": b'{"stream":"timeline"}'}, False),
        ({"timeline": b"[" * 4000}, False),
    ],
)
def test_only_our_own_header_lines_show_that_it_is_ours(headers: dict[str, bytes], ours: bool) -> None:
    assert has_our_headers(headers) is ours


def test_what_is_a_run_folder() -> None:
    def known(name: str, **changes: bool) -> bool:
        return is_run_folder(name, **({"has_record": False, "is_json": False} | changes), headers={})

    assert known(NAME)
    assert known(f"{NAME}-2")
    assert not known("notes")
    assert known("renamed", has_record=True)
    assert not known("stranger", has_record=True, is_json=True)
    assert is_run_folder("renamed", has_record=False, is_json=False, headers=HEADER)


def test_what_a_run_did_not_write_is_named() -> None:
    ours = (
        "run.json",
        ".run.json.ab_12xyz",
        "timeline.jsonl",
        "stacks.jsonl",
        "client.jsonl",
        "server.log",
        "report.md",
        "posted.json",
        ".posted.json.ab_12xyz",
    )
    theirs = ("notes.md", "run.json.bak", "my.jsonl", ".run.json.short", "core")
    assert foreign_entries([*((name, True) for name in (*ours, *theirs)), ("report.md", False)]) == tuple(
        sorted((*theirs, "report.md"))
    )


def test_the_start_is_by_record_then_name_then_time_of_writing() -> None:
    assert began_s(RECORD, name="x", written_s=1) == datetime(2026, 5, 26, 8, 15, 2, tzinfo=UTC).timestamp()
    broken = RECORD.model_copy(update={"started_at": "yesterday"})
    assert began_s(broken, name=NAME, written_s=1) == datetime(2026, 5, 26, 8, 15, 2, tzinfo=UTC).timestamp()
    assert began_s(None, name="20269999T999999Z-lab-abc-dcp2", written_s=5) == 5


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.binary(max_size=200) | st.recursive(st.none() | st.text(), st.lists).map(lambda v: json.dumps(v).encode()))
def test_no_bytes_in_a_record_break_listing(tmp_path: Path, junk: bytes) -> None:
    folder = tmp_path / NAME
    folder.mkdir(exist_ok=True)
    (folder / "run.json").write_bytes(junk)
    assert only(tmp_path).state == "damaged"


def test_nobody_holds_what_was_never_begun(tmp_path: Path) -> None:
    assert is_held(tmp_path) is False
    (tmp_path / "timeline.jsonl").symlink_to("/dev/null")
    assert is_held(tmp_path) is None
