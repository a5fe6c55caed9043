"""The server's temporary folder: chosen, made, swept, and left alone where it is somebody's."""

import errno
import os
import re
from pathlib import Path

import pytest

from sparkdiag.cleaning.leftovers import NAME
from sparkdiag.serving.guardian import Guardian
from sparkdiag.serving.private_folder import MARKER, make_private_folder, remove, unused_path
from sparkdiag.serving.tree_folder import make_folder, sweep_folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "sparkdiag-12345678"


@pytest.mark.parametrize("made", [True, False])
def test_a_marked_folder_goes_whole_and_any_other_keeps_its_files(folder: Path, made: bool) -> None:
    folder.mkdir()
    (folder / "file").touch()
    assert sweep_folder(str(folder), MARKER, made=made) == []
    assert (folder / "file").exists()
    (folder / MARKER).touch()
    (folder / "inner").mkdir()
    (folder / "inner" / "link").symlink_to(folder.parent)
    assert sweep_folder(str(folder), MARKER, made=made) == [str(folder)]
    assert list(folder.parent.iterdir()) == []
    assert sweep_folder(str(folder), MARKER, made=made) == []
    assert sweep_folder("", MARKER, made=made) == []


def test_an_empty_unmarked_folder_goes_only_where_it_was_to_be_made(folder: Path) -> None:
    folder.mkdir()
    assert sweep_folder(str(folder), MARKER, made=False) == []
    assert folder.exists()
    assert sweep_folder(str(folder), MARKER, made=True) == [str(folder)]
    assert not folder.exists()


def test_the_marker_is_the_last_to_go(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever sweeps may be killed over it, and the next must know the rest for ours."""
    make_folder(str(folder), MARKER, ("probe",))
    for name in ("a", "b", "z"):
        (folder / name).touch()
    seen: list[bool] = []
    unlink = os.unlink

    def watched(path: str, *, dir_fd: int | None = None) -> None:
        if path != MARKER:
            seen.append((folder / MARKER).exists())
        unlink(path, dir_fd=dir_fd)

    monkeypatch.setattr(os, "unlink", watched)
    sweep_folder(str(folder), MARKER, made=True)
    assert seen == [True] * 3
    assert not folder.exists()


def test_it_is_made_for_this_user_alone_with_what_is_to_be_in_it(folder: Path) -> None:
    make_folder(str(folder), MARKER, ("probe",))
    assert {path.name for path in folder.iterdir()} == {MARKER, "probe"}
    assert [path.stat().st_mode & 0o777 for path in (folder, folder / "probe")] == [0o700, 0o700]


@pytest.mark.parametrize("kind", ["empty", "full", "marked", "link", "dangling", "file"])
def test_what_is_there_already_is_neither_taken_nor_removed(folder: Path, tmp_path: Path, kind: str) -> None:
    other = tmp_path / "other"
    other.mkdir()
    match kind:
        case "link" | "dangling":
            folder.symlink_to(other if kind == "link" else tmp_path / "nowhere")
        case "file":
            folder.touch()
        case _:
            folder.mkdir()
            if kind != "empty":
                (folder / (MARKER if kind == "marked" else "file")).touch()
    before = sorted(tmp_path.rglob("*"))
    ordered = Guardian({"private_dir": str(folder), "marker": MARKER, "make": ["probe"]})
    said: list[dict[str, object]] = []
    ordered.say = lambda **event: said.append(event)  # type: ignore[method-assign]
    assert not ordered.make_folder()
    assert said == [
        {"event": "failed", "of": "folder", "error": f"its temporary folder {folder} could not be made: File exists"}
    ]
    assert ordered.sweep_folder() == []
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("refused", ["open", "mkdir"])
def test_what_could_be_made_only_in_part_is_gone(folder: Path, monkeypatch: pytest.MonkeyPatch, refused: str) -> None:
    work = getattr(os, refused)

    def full(path: str, *args: int) -> int:
        if Path(path).parent == folder:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        return int(work(path, *args) or 0)

    monkeypatch.setattr(os, refused, full)
    with pytest.raises(OSError, match="No space left"):
        make_folder(str(folder), MARKER, ("probe",))
    assert not folder.exists()


def test_a_path_is_chosen_where_nothing_is_and_nothing_is_made() -> None:
    chosen = {unused_path() for _ in range(50)}
    assert len(chosen) == 50
    assert not any(os.path.lexists(path) for path in chosen)
    assert all(re.fullmatch(NAME, path.name) for path in chosen), "what clean would find"


def test_a_folder_made_beforehand_is_ours_alone(tmp_path: Path) -> None:
    folder = make_private_folder()
    assert folder.stat().st_mode & 0o077 == 0
    assert folder.parent == unused_path().parent
    remove(folder)
    assert not folder.exists()
    (tmp_path / "x").touch()
    remove(tmp_path)
    assert (tmp_path / "x").exists()
