"""The cache's decisions: what is whole, what is ours, what goes first."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.environment import cache
from sparkdiag.environment.cache import CachedEnvironment, Stamp
from sparkdiag.environment.growth import folder_bytes
from sparkdiag.environment.prune import choose_victims, delete, delete_locks, prune


def make(root: Path, key: str, *, size: int = 10, complete: bool = True) -> Path:
    cache.make_root(root)
    folder = cache.environments_dir(root) / key
    cache.mark(folder)
    for path in ("venv-1/bin/python", "venv-1/lib/vllm/__init__.py", "venv-1/lib/vllm.dist-info/RECORD"):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(b"x" * size)
    if complete:
        cache.write_stamp(folder, stamp(key, size=3 * size))
    return folder


def stamp(key: str, *, size: int = 30) -> Stamp:
    return Stamp(
        key=key,
        lock_sha256="0",
        vllm_version="0.32.0",
        venv="venv-1",
        python="venv-1/bin/python",
        package_path="venv-1/lib/vllm",
        record_path="venv-1/lib/vllm.dist-info/RECORD",
        installed_bytes=size,
        built_at="2026-01-01T00:00:00+00:00",
        build_s=1.0,
    )


def test_a_whole_environment(tmp_path: Path) -> None:
    folder = make(tmp_path, "a")
    assert cache.read_stamp(folder) == stamp("a")
    (found,) = cache.list_environments(tmp_path)
    assert found.complete and found.bytes == 30 and found.vllm_version == "0.32.0"


@pytest.mark.parametrize("content", [b"", b"{", b"{}", b"\xff\xfe", b"null"])
def test_a_corrupt_stamp_counts_as_none(tmp_path: Path, content: bytes) -> None:
    folder = make(tmp_path, "a")
    (folder / cache.STAMP).write_bytes(content)
    assert cache.read_stamp(folder) is None
    assert not cache.list_environments(tmp_path)[0].complete


def test_a_stamp_of_another_folder_or_pointing_out_of_it_counts_as_none(tmp_path: Path) -> None:
    folder = make(tmp_path, "a")
    cache.write_stamp(folder, stamp("b"))
    assert cache.read_stamp(folder) is None
    cache.write_stamp(folder, stamp("a").model_copy(update={"python": "/bin/sh"}))
    assert cache.read_stamp(folder) is None


def test_an_interpreter_that_is_gone_makes_it_incomplete(tmp_path: Path) -> None:
    folder = make(tmp_path, "a")
    (folder / "venv-1/bin/python").unlink()
    (folder / "venv-1/bin/python").symlink_to(tmp_path / "removed-python")
    assert cache.read_stamp(folder) is None


def test_only_our_own_folders_are_listed_and_deleted(tmp_path: Path) -> None:
    make(tmp_path, "ours")
    foreign = cache.environments_dir(tmp_path) / "foreign"
    foreign.mkdir()
    copied = cache.environments_dir(tmp_path) / "copied"
    copied.mkdir()
    (copied / cache.MARKER).write_text("ours")
    link = cache.environments_dir(tmp_path) / "link"
    link.symlink_to(foreign)
    report = prune(tmp_path, max_bytes=0, dry_run=False)
    assert [one.key for one in report.removed] == ["ours"]
    assert foreign.exists() and copied.exists() and link.is_symlink()
    with pytest.raises(AssertionError, match="no marker"):
        delete(foreign)


def test_a_link_inside_an_environment_is_not_followed(tmp_path: Path) -> None:
    folder = make(tmp_path, "a")
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").touch()
    (folder / "out").symlink_to(precious)
    delete(folder)
    assert not folder.exists() and (precious / "file").exists()


def test_dry_run_deletes_nothing(tmp_path: Path) -> None:
    folder = make(tmp_path, "a")
    report = prune(tmp_path, max_bytes=0, dry_run=True)
    assert [one.key for one in report.removed] == ["a"] and report.freed_bytes == 30 and folder.exists()


def test_locks_resolved_on_demand_can_go(tmp_path: Path) -> None:
    assert delete_locks(tmp_path) == 0
    (tmp_path / "locks").mkdir()
    (tmp_path / "locks" / "x.txt").touch()
    assert delete_locks(tmp_path) == 1 and not list((tmp_path / "locks").iterdir())


ENVIRONMENTS = st.lists(
    st.builds(
        CachedEnvironment,
        key=st.uuids().map(str),
        path=st.just("/x"),
        complete=st.booleans(),
        vllm_version=st.none(),
        bytes=st.integers(0, 1000),
        last_used_s=st.floats(0, 1e9),
    ),
    max_size=8,
).map(tuple)


@given(ENVIRONMENTS, st.integers(0, 4000))
def test_victims_are_the_oldest_and_no_more_than_needed(found: tuple[CachedEnvironment, ...], limit: int) -> None:
    victims = choose_victims(found, max_bytes=limit)
    kept = [one for one in found if one not in victims]
    assert all(one.complete for one in kept)
    assert not kept or sum(one.bytes for one in kept) <= limit
    whole = [one for one in victims if one.complete]
    if whole:
        assert all(kept_one.last_used_s >= whole[-1].last_used_s for kept_one in kept)
        assert sum(one.bytes for one in kept) + whole[-1].bytes > limit


def test_overlays_go_before_the_base_they_stand_on() -> None:
    def cached(key: str, *, base: str | None, used_s: float) -> CachedEnvironment:
        whole = {"path": "/x", "complete": True, "vllm_version": "1", "bytes": 10}
        return CachedEnvironment(key=key, base_key=base, last_used_s=used_s, **whole)

    over, base = cached("over", base="base", used_s=9), cached("base", base=None, used_s=1)
    other = cached("other", base=None, used_s=5)
    assert choose_victims((over, base, other), max_bytes=20) == (over, base)
    assert choose_victims((over, base, other), max_bytes=30) == ()


def test_folder_bytes_counts_files_once_and_follows_no_link(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"123")
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "b").write_bytes(b"4567")
    (tmp_path / "d" / "loop").symlink_to(tmp_path)
    assert folder_bytes(tmp_path) == 7
    assert folder_bytes(tmp_path / "none") == 0


def test_the_variable_names_the_cache() -> None:
    assert cache.cache_root({"SPARKDIAG_CACHE": "/c"}) == Path("/c")
    assert cache.cache_root({}).name == "sparkdiag"
