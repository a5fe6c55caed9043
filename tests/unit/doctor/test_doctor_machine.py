"""Memory, cores, disk, shared memory, limits, clock and priority against what a run needs."""

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.doctor import look_machine, machine
from sparkdiag.doctor.machine import GIB, MIB, ClockLook, Cores, Memory, Priority, Room, SharedMemory

ORDER = {"ok": 0, "warn": 1, "fail": 2}


def room(**change: object) -> Room:
    values: dict[str, object] = {
        "what": "run folders", "label": "runs", "folder": "/runs", "free_bytes": 10**10, "least_bytes": 10**7,
        "spare_bytes": 10**8, "elsewhere": "sparkdiag repro --out DIR",
    }  # fmt: skip
    return Room.model_validate(values | change)


@pytest.mark.parametrize(
    ("available_gib", "cgroup_gib", "status"),
    [(16.0, None, "ok"), (2.5, None, "warn"), (1.0, None, "fail"), (16.0, 1.0, "fail"), (16.0, 0.0, "fail")],
)
def test_memory_of_the_lab(available_gib: float, cgroup_gib: float | None, status: str) -> None:
    memory = Memory(
        available_bytes=int(available_gib * GIB),
        cgroup_free_bytes=None if cgroup_gib is None else int(cgroup_gib * GIB),
    )
    found = machine.judge_memory(memory, lab=True, ranks=2)
    assert found.status == status
    assert ("docker run --memory" in (found.next_step or "")) is (cgroup_gib is not None)


def test_memory_of_an_unknown_model_never_fails() -> None:
    found = machine.judge_memory(Memory(available_bytes=MIB), lab=False, ranks=8)
    assert found.status == "warn"
    assert "is not known" in found.seen


@given(st.integers(1, 64), st.integers(0, 2**40), st.integers(0, 2**40))
def test_more_memory_is_never_worse_and_more_ranks_never_better(ranks: int, one: int, other: int) -> None:
    less, more = sorted((one, other))

    def worse(available: int, on: int) -> int:
        return ORDER[machine.judge_memory(Memory(available_bytes=available), lab=True, ranks=on).status]

    assert worse(less, ranks) >= worse(more, ranks)
    assert worse(less, ranks) <= worse(less, ranks + 1)


@pytest.mark.parametrize(
    ("cores", "lab", "status"),
    [
        (Cores(usable=2), True, "ok"),
        (Cores(usable=1), True, "warn"),
        (Cores(usable=1), False, "ok"),
        (Cores(usable=8, quota=1.5), True, "warn"),
        (Cores(usable=8, busy_share=0.6), True, "warn"),
    ],
)
def test_cores(cores: Cores, lab: bool, status: str) -> None:
    assert machine.judge_cores(cores, lab=lab, ranks=2).status == status


def test_rooms_that_are_well_are_one_finding_and_each_bad_one_is_its_own() -> None:
    good, small = room(), room(free_bytes=5 * 10**7, folder="/small")
    full, closed = room(free_bytes=10, folder="/full"), room(problem="Read-only file system", folder="/closed")
    (only,) = machine.judge_rooms([good, good])
    assert (only.status, only.seen) == ("ok", "free: runs 10 GB, runs 10 GB")
    found = machine.judge_rooms([small, good, full, closed])
    assert [one.status for one in found] == ["warn", "fail", "fail"]
    assert "/closed (run folders) cannot be written: Read-only file system" in found[2].seen
    assert found[2].next_step == "sparkdiag repro --out DIR"


@pytest.mark.parametrize("refusing", ["open", "unlink"])
def test_a_read_only_folder_of_shared_memory_is_a_failure_and_no_crash(
    refusing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There even the removal of what is not there is refused with EROFS."""

    def refuse(*_args: object, **_options: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    with monkeypatch.context() as patched:
        if refusing == "open":
            patched.setattr(os, "open", refuse)
        patched.setattr(Path, "unlink", refuse)
        (found,) = look_machine.shared_memory(ranks=2, folder=tmp_path)
    assert found.status == "fail"
    assert "Read-only file system" in found.seen
    assert ("could not be made" if refusing == "open" else "could not be removed") in found.seen


def test_shared_memory() -> None:
    def status(free: int, ranks: int = 2) -> str:
        return machine.judge_shared_memory(SharedMemory(total_bytes=2**34, free_bytes=free), ranks=ranks).status

    assert (status(2**33), status(64 * MIB), status(MIB)) == ("ok", "warn", "fail")
    assert status(GIB, ranks=8) == "warn"
    closed = machine.judge_shared_memory(SharedMemory(problem="Permission denied"), ranks=2)
    assert closed.status == "fail"
    assert "docker run --shm-size" in (closed.next_step or "")


@pytest.mark.parametrize(("hard", "status"), [(65535, "ok"), (1024, "warn"), (256, "fail")])
def test_open_files_go_by_the_hard_limit(hard: int, status: str) -> None:
    assert machine.judge_open_files(256, hard).status == status


@pytest.mark.parametrize(
    ("look", "said"),
    [
        (ClockLook(0.02, 0.02, 2e9, 1.9e9), "advance alike"),
        (ClockLook(0.02, 0.0, 2e9, 1.9e9), "does not advance"),
        (ClockLook(-3600.0, 0.02, 2e9, 1.9e9), "jumped by -3600.0 s"),
        (ClockLook(0.02, 0.02, 0.0, 864000.0), "10 days behind"),
    ],
)
def test_clock(look: ClockLook, said: str) -> None:
    found = machine.judge_clock(look)
    assert said in found.seen
    assert (found.status == "ok") is (said == "advance alike")


def test_autogroup() -> None:
    lowered = machine.judge_autogroup(Priority(own_nice=0, autogroup_enabled=True, autogroup_nice=10))
    refused = machine.judge_autogroup(Priority(own_nice=0, autogroup_enabled=True, refusal="PermissionError"))
    unmoved = machine.judge_autogroup(Priority(own_nice=0, autogroup_enabled=True, autogroup_nice=0))
    assert (lowered.status, refused.status, unmoved.status) == ("ok", "warn", "warn")
    assert "PermissionError" in refused.seen
    assert machine.judge_autogroup(Priority(own_nice=0)).status == "ok"
    assert "switched off" in machine.judge_autogroup(Priority(own_nice=0, autogroup_enabled=False)).seen
    alone = machine.judge_autogroup(Priority(own_nice=0, autogroup_enabled=True, grouped=False))
    assert (alone.status, "gets no group: sessions share CPU time by process" in alone.seen) == ("ok", True)


def test_nice() -> None:
    assert machine.judge_nice(Priority(own_nice=0, child_nice=10)).status == "ok"
    assert machine.judge_nice(Priority(own_nice=19, child_nice=19)).status == "warn"
    assert machine.judge_nice(Priority(own_nice=0)).status == "warn"
