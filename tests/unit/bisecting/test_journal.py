"""The journal's file: what counts, what is cut off, what is refused."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.bisecting.question.journal import Begun, Ended, Finished, Journal, Started, Step, read_journal
from sparkdiag.errors import UsageError
from tests.unit.bisecting.simulated import sha_of, stalled

STEPS: tuple[Step, ...] = (
    Begun(at="2026-05-26T08:15:02+00:00", old_end=sha_of(0), new_end=sha_of(9), question={"repeat": 1}),
    Started(at="2026-05-26T08:15:03+00:00", sha=sha_of(0), purpose="end"),
    Finished(at="2026-05-26T08:17:03+00:00", purpose="end", result=stalled(sha_of(0))),
    Ended(at="2026-05-26T08:18:03+00:00", outcome="inconclusive"),
)


def journal_of(path: Path, *steps: Step) -> Journal:
    journal = Journal(path)
    for step in steps:
        journal.append(step)
    return journal


def test_what_was_appended_is_read_back(tmp_path: Path) -> None:
    journal = journal_of(tmp_path / "journal.jsonl", *STEPS)
    assert read_journal(journal.path) == STEPS
    assert len(journal.path.read_bytes().splitlines()) == len(STEPS)


def test_a_journal_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    assert read_journal(tmp_path / "journal.jsonl") == ()


@given(cut=st.integers(0, 2000), data=st.data())
def test_a_torn_tail_is_passed_over_and_never_glued_to(
    tmp_path_factory: pytest.TempPathFactory, cut: int, data: st.DataObject
) -> None:
    journal = journal_of(tmp_path_factory.mktemp("torn") / "journal.jsonl", *STEPS)
    content = journal.path.read_bytes()
    cut = cut % (len(content) + 1)
    journal.path.write_bytes(content[:cut] + data.draw(st.sampled_from([b"", b"\0" * 5000, b'{"event":"sta'])))
    whole = content[:cut].count(b"\n")
    assert read_journal(journal.path) == STEPS[:whole]
    journal.append(STEPS[whole] if whole < len(STEPS) else STEPS[-1])
    assert read_journal(journal.path)[:whole] == STEPS[:whole]
    assert len(read_journal(journal.path)) == whole + 1


def test_every_append_is_on_the_disk_before_it_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[tuple[str, int]] = []
    real = os.fsync

    def fsync(fd: int) -> None:
        path = Path(f"/proc/self/fd/{fd}").resolve()
        synced.append((path.name, path.stat().st_size if path.is_file() else 0))
        real(fd)

    monkeypatch.setattr(os, "fsync", fsync)
    folder = tmp_path / "bisection"
    folder.mkdir()
    journal = journal_of(folder / "journal.jsonl", STEPS[0])
    first = journal.path.stat().st_size
    assert synced == [("journal.jsonl", first), ("bisection", 0)]
    journal.append(STEPS[1])
    assert synced[2:] == [("journal.jsonl", journal.path.stat().st_size)]


def test_short_writes_make_a_whole_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[:7]))
    journal = journal_of(tmp_path / "journal.jsonl", *STEPS)
    monkeypatch.undo()
    assert read_journal(journal.path) == STEPS


def test_what_a_newer_sparkdiag_adds_does_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    documents = [json.loads(step.model_dump_json(by_alias=True)) for step in STEPS]
    documents[1]["machine"] = "a new field"
    lines = [json.dumps(document) for document in documents]
    lines.insert(2, '{"event": "paused", "at": "now"}')
    path.write_text("\n".join(lines) + "\n")
    assert read_journal(path) == STEPS


@pytest.mark.parametrize(
    ("line", "because"),
    [
        ('{"event":"begun","schema":99,"at":"","old_end":"a","new_end":"b"}', "written by a newer sparkdiag"),
        ("not JSON at all", "not a step"),
        ("[1, 2]", "not a step"),
        ('{"schema": 1}', "not a step"),
        ('{"event":"started","at":"now","sha":"a","purpose":"lunch"}', "does not fit: purpose"),
        ('{"event":"started","at":"now","sha":"a","purpose":"end"}', "is no journal"),
    ],
)
def test_what_is_no_journal_is_refused(tmp_path: Path, line: str, because: str) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(UsageError, match=because):
        read_journal(path)


def test_damage_before_the_end_is_no_torn_line(tmp_path: Path) -> None:
    journal = journal_of(tmp_path / "journal.jsonl", *STEPS)
    lines = journal.path.read_bytes().splitlines(keepends=True)
    journal.path.write_bytes(lines[0] + lines[1][:20] + b"\n" + b"".join(lines[2:]))
    with pytest.raises(UsageError, match=r"line 2: not a step"):
        read_journal(journal.path)


def test_a_folder_is_no_journal(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read the journal"):
        read_journal(tmp_path)


@pytest.mark.parametrize("there", [True, False])
def test_nothing_is_written_through_a_symbolic_link(tmp_path: Path, there: bool) -> None:
    other = tmp_path / "other"
    if there:
        journal_of(other, STEPS[0])
    before = other.read_bytes() if there else None
    link = tmp_path / "journal.jsonl"
    link.symlink_to(other)
    with pytest.raises(OSError):
        Journal(link).append(STEPS[1])
    assert (other.read_bytes() if other.exists() else None) == before
