from pathlib import Path

import pytest

from sparkdiag.serving.priority import busy_share, lower_priority

IDLE = "cpu  100 0 100 1000 0 0 0 0 0 0\n"
LATER_IDLE = "cpu  101 0 101 1100 0 0 0 0 0 0\n"
LATER_BUSY = "cpu  180 0 120 1010 10 0 0 0 0 0\n"


def group(proc: Path, name: str, text: str) -> Path:
    (proc / name).mkdir()
    (proc / name / "autogroup").write_text(text)
    (proc / "stat").write_text(IDLE)
    return proc / name / "autogroup"


def test_the_servers_own_group_is_lowered(tmp_path: Path) -> None:
    group(tmp_path, "self", "/autogroup-1 nice 0\n")
    file = group(tmp_path, "7", "/autogroup-2 nice 0\n")
    lower_priority(7, proc=tmp_path, look_s=0)
    assert file.read_text() == "10"


def test_on_a_machine_that_others_keep_busy_it_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    group(tmp_path, "self", "/autogroup-1 nice 0\n")
    file = group(tmp_path, "7", "/autogroup-2 nice 0\n")
    monkeypatch.setattr("time.sleep", lambda _s: (tmp_path / "stat").write_text(LATER_BUSY))
    assert "other programs use 83%" in lower_priority(7, proc=tmp_path)
    assert file.read_text() == "/autogroup-2 nice 0\n"


def test_sparkdiags_own_group_is_not(tmp_path: Path) -> None:
    group(tmp_path, "self", "/autogroup-1 nice 0\n")
    file = group(tmp_path, "7", "/autogroup-1 nice 0\n")
    assert "left as it is" in lower_priority(7, proc=tmp_path)
    assert file.read_text() == "/autogroup-1 nice 0\n"


def test_a_kernel_without_autogroup_is_a_note(tmp_path: Path) -> None:
    assert "FileNotFoundError" in lower_priority(7, proc=tmp_path)


def test_waiting_for_io_is_not_busy() -> None:
    assert busy_share(IDLE, LATER_IDLE) == pytest.approx(2 / 102)
    assert busy_share(IDLE, LATER_BUSY) == pytest.approx(100 / 120)
    assert busy_share(IDLE, IDLE) == 0
