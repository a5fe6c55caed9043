"""The guardian's own decisions, over files and this very process; trees are in the integration tests."""

import os
from pathlib import Path

import pytest

from sparkdiag.serving import guardian, shared_memory, tree
from sparkdiag.serving.shared_memory import Segment, ShmLedger
from sparkdiag.serving.tree import Proc


def test_a_reused_pid_is_never_signalled() -> None:
    found = tree.read_stat(os.getpid())
    assert found is not None
    assert not tree.send(Proc(os.getpid(), found[1] + 1), 9)
    assert tree.send(Proc(os.getpid(), found[1]), 0)


def test_segments_from_before_and_from_strangers_are_not_owned(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(shared_memory, "SHM", str(tmp_path))
    (tmp_path / "before").touch()
    ledger = ShmLedger()
    own = Proc(os.getpid(), 0)
    (tmp_path / "stranger").touch()
    assert not ledger.look([own])
    with (tmp_path / "mine").open("w") as file, (tmp_path / "before").open():
        assert ledger.look([own])
        inode = os.fstat(file.fileno()).st_ino
    assert ledger.owned == {Segment("mine", inode)}
    assert shared_memory.sweep_shm(ledger.owned, tree=set()) == (["mine"], [])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["before", "stranger"]


def test_a_segment_that_somebody_else_holds_is_left() -> None:
    name = f"sparkdiag-test-{os.getpid()}"
    path = Path(shared_memory.SHM) / name
    ledger = ShmLedger()
    try:
        with path.open("w"):
            ledger.look([Proc(os.getpid(), 0)])
            assert shared_memory.sweep_shm(ledger.owned, tree=set()) == ([], [name])
        assert path.exists()
        assert shared_memory.sweep_shm(ledger.owned, tree=set()) == ([name], [])
    finally:
        path.unlink(missing_ok=True)


def test_the_least_grace_asked_for_counts_and_the_end_of_the_file_leaves_some() -> None:
    read_end, write_end = os.pipe()
    standard_input = os.dup(0)
    try:
        os.dup2(read_end, 0)
        asked = guardian.Guardian({}).asked
        assert asked() is None
        os.write(write_end, b'{"stop_grace_s": 10}\n{"stop_grace_s": 0}\n{"stop_gra')
        assert asked() == 0
        assert asked() is None
        os.write(write_end, b'ce_s": 7}\n')
        assert asked() == 7
        os.close(write_end)
        assert asked() == guardian.ALONE_GRACE_S > 0
        assert asked() is None
    finally:
        os.dup2(standard_input, 0)
        os.close(standard_input)
        os.close(read_end)


def test_a_pid_in_the_name_counts_only_as_a_whole_word_of_a_new_entry(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(shared_memory, "SHM", str(tmp_path))
    ledger = ShmLedger()
    (tmp_path / "torch_4711_1").touch()
    (tmp_path / "psm_a4711b").touch()
    assert ledger.look([Proc(4711, 0)])
    assert {segment.name for segment in ledger.owned} == {"torch_4711_1"}
    (tmp_path / "late_99").touch()
    assert not ledger.look([])
    assert not ledger.look([Proc(99, 0)])  # it was there before that process


def test_a_fork_with_a_vital_title_may_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guardian, "title_of", lambda pid: "python" if pid == 1 else "VLLM::Worker_TP0")
    watched = guardian.Guardian({"vital": ["::Worker"]})
    root, worker, fork = (Proc(pid, 0) for pid in (1, 2, 3))
    watched.look_at_vital([root, worker, fork])
    watched.look_at_vital([worker])
    assert watched.broken_at is None
    watched.look_at_vital([fork])
    assert watched.broken_by == "VLLM::Worker_TP0"
