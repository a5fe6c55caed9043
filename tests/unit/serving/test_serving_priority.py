import errno
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.evidence.timeline import BUSY_SHARE
from sparkdiag.serving import priority
from sparkdiag.serving.priority import busy_share, lower_priority, put_back_due, restore_priority

IDLE = "cpu  100 0 100 1000 0 0 0 0 0 0\n"
LATER_IDLE = "cpu  101 0 101 1100 0 0 0 0 0 0\n"
LATER_BUSY = "cpu  180 0 120 1010 10 0 0 0 0 0\n"
GUARDIAN, SERVER = 5, 7


def process(proc: Path, pid: int | str, *, parent: int, session: int, group: str) -> Path:
    folder = proc / str(pid)
    folder.mkdir()
    (folder / "stat").write_text(f"{pid} (a ) name) S {parent} {session} {session} 0 -1\n")
    (folder / "autogroup").write_text(f"/autogroup-{group} nice 0\n")
    return folder / "autogroup"


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    (tmp_path / "stat").write_text(IDLE)
    process(tmp_path, "self", parent=1, session=1, group="1")
    process(tmp_path, GUARDIAN, parent=os.getpid(), session=GUARDIAN, group="2")
    return tmp_path


def test_the_servers_own_group_is_lowered(proc: Path) -> None:
    file = process(proc, SERVER, parent=GUARDIAN, session=SERVER, group="3")
    lower_priority(SERVER, proc=proc, look_s=0, way_back=lambda: None)
    assert file.read_text() == "10"


def test_on_a_machine_that_others_keep_busy_it_is_not(proc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = process(proc, SERVER, parent=GUARDIAN, session=SERVER, group="3")
    monkeypatch.setattr("time.sleep", lambda _s: (proc / "stat").write_text(LATER_BUSY))
    done = lower_priority(SERVER, proc=proc)
    assert done.nice is None
    assert "other programs use 83%" in done.because
    assert file.read_text() == "/autogroup-3 nice 0\n"


@pytest.mark.parametrize(
    ("parent", "session", "group", "why"),
    [
        (1, SERVER, "3", "did not start it"),
        (SERVER, SERVER, "3", "did not start it"),
        (GUARDIAN, SERVER, "1", "shares its scheduling group"),
        (GUARDIAN, GUARDIAN, "2", "shares its scheduling group"),
    ],
)
def test_what_is_not_ours_alone_is_left_as_it_is(proc: Path, parent: int, session: int, group: str, why: str) -> None:
    file = process(proc, SERVER, parent=parent, session=session, group=group)
    done = lower_priority(SERVER, proc=proc, look_s=0, way_back=lambda: None)
    assert done.nice is None
    assert why in done.because
    assert file.read_text() == f"/autogroup-{group} nice 0\n"


def test_a_kernel_without_autogroup_is_a_note(proc: Path) -> None:
    process(proc, SERVER, parent=GUARDIAN, session=SERVER, group="3").unlink()
    assert "no autogroups" in lower_priority(SERVER, proc=proc).because


@pytest.mark.parametrize("everybody", [True, False])
def test_a_session_without_a_group_is_a_note_and_nothing_is_written(proc: Path, everybody: bool) -> None:
    """The kernel answers with an empty file although autogroups are enabled: seen on a machine of the CI."""
    file = process(proc, SERVER, parent=GUARDIAN, session=SERVER, group="3")
    for emptied in (file, proc / "self" / "autogroup") if everybody else (file,):
        emptied.write_text("")
    done = lower_priority(SERVER, proc=proc, look_s=0, way_back=lambda: None)
    assert (done.nice, file.read_text()) == (None, "")
    assert done.because.endswith("its session has no scheduling group")


def test_a_server_with_a_group_is_lowered_also_where_we_have_none(proc: Path) -> None:
    file = process(proc, SERVER, parent=GUARDIAN, session=SERVER, group="3")
    (proc / "self" / "autogroup").write_text("")
    assert lower_priority(SERVER, proc=proc, look_s=0, way_back=lambda: None).nice == priority.NICE
    assert file.read_text() == "10"


@pytest.mark.parametrize("own", ["1", None])
@pytest.mark.parametrize("servers", ["1", "3", None])
@pytest.mark.parametrize("session", [SERVER, GUARDIAN])
def test_only_a_group_of_its_own_is_lowered_wherever_we_are(
    proc: Path, monkeypatch: pytest.MonkeyPatch, own: str | None, servers: str | None, session: int
) -> None:
    """Our session may be in no group while one that is made later gets one: also seen on a machine of the CI."""
    file = process(proc, SERVER, parent=GUARDIAN, session=session, group="3")
    groups = {"self": own, str(SERVER): servers}

    def told(path: Path) -> tuple[str, int] | None:
        group = groups[path.parent.name]
        return None if group is None else (f"/autogroup-{group}", 0)

    monkeypatch.setattr(priority, "read_group", told)
    done = lower_priority(SERVER, proc=proc, look_s=0, way_back=lambda: None)
    alone = session == SERVER and servers not in (None, own)
    assert (done.nice == priority.NICE) is (file.read_text() == "10") is alone
    if not alone:
        why = "it shares its scheduling group with others" if servers is not None else priority.NO_GROUP
        assert done.because.endswith(why)


def test_waiting_for_io_is_not_busy() -> None:
    assert busy_share(IDLE, LATER_IDLE) == pytest.approx(2 / 102)
    assert busy_share(IDLE, LATER_BUSY) == pytest.approx(100 / 120)
    assert busy_share(IDLE, IDLE) == 0


def test_what_could_not_be_taken_back_is_not_lowered(proc: Path) -> None:
    file = process(proc, SERVER, parent=GUARDIAN, session=SERVER, group="3")
    done = lower_priority(SERVER, proc=proc, look_s=0, way_back=lambda: "it could not be put back later")
    assert done.nice is None
    assert "could not be put back" in done.because
    assert file.read_text() == "/autogroup-3 nice 0\n"


@pytest.mark.parametrize(("refusals", "written"), [(1, True), (2, False)])
def test_the_kernel_is_asked_once_more_when_it_is_busy(
    proc: Path, monkeypatch: pytest.MonkeyPatch, refusals: int, written: bool
) -> None:
    file = process(proc, SERVER, parent=GUARDIAN, session=SERVER, group="3")
    left = [BlockingIOError(errno.EAGAIN, "again")] * refusals
    write = Path.write_text

    def refused(path: Path, text: str, *args: Any, **kept: Any) -> int:
        if left:
            raise left.pop()
        return write(path, text, *args, **kept)

    monkeypatch.setattr(Path, "write_text", refused)
    monkeypatch.setattr(priority, "WRITE_AGAIN_S", 0)
    if written:
        restore_priority(SERVER, proc=proc)
    else:
        with pytest.raises(BlockingIOError):
            restore_priority(SERVER, proc=proc)
    assert (file.read_text() == "0") is written


@given(st.lists(st.floats(0, 1), max_size=8))
def test_two_busy_looks_in_a_row_and_nothing_less_put_it_back(shares: list[float]) -> None:
    busy = [share > BUSY_SHARE for share in shares]
    assert put_back_due(shares) is (busy[-2:] == [True, True])
