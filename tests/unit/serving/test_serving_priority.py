from pathlib import Path

from sparkdiag.serving.priority import lower_priority


def group(proc: Path, name: str, text: str) -> Path:
    (proc / name).mkdir()
    (proc / name / "autogroup").write_text(text)
    return proc / name / "autogroup"


def test_the_servers_own_group_is_lowered(tmp_path: Path) -> None:
    group(tmp_path, "self", "/autogroup-1 nice 0\n")
    file = group(tmp_path, "7", "/autogroup-2 nice 0\n")
    lower_priority(7, proc=tmp_path)
    assert file.read_text() == "10"


def test_sparkdiags_own_group_is_not(tmp_path: Path) -> None:
    group(tmp_path, "self", "/autogroup-1 nice 0\n")
    file = group(tmp_path, "7", "/autogroup-1 nice 0\n")
    assert "left as it is" in lower_priority(7, proc=tmp_path)
    assert file.read_text() == "/autogroup-1 nice 0\n"


def test_a_kernel_without_autogroup_is_a_note(tmp_path: Path) -> None:
    assert "FileNotFoundError" in lower_priority(7, proc=tmp_path)
