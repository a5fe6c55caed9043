"""Limits of control groups, both versions."""

from pathlib import Path

from sparkdiag.doctor.limits import cpu_quota, memory_free_bytes


def written(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


def test_version_two_takes_the_tightest_group_above(tmp_path: Path) -> None:
    written(tmp_path / "a", memory__max="4000000\n", memory__current="1000000\n", cpu__max="150000 100000\n")
    written(tmp_path / "a" / "b", memory__max="max\n", memory__current="5\n", cpu__max="max 100000\n")
    own = "0::/a/b\n"
    assert memory_free_bytes(root=tmp_path, own=own) == 3_000_000
    assert cpu_quota(root=tmp_path, own=own) == 1.5


def test_file_cache_is_given_back(tmp_path: Path) -> None:
    written(tmp_path, memory__max="1000", memory__current="900", memory__stat="anon 100\ninactive_file 300\n")
    assert memory_free_bytes(root=tmp_path, own="0::/\n") == 400


def test_version_one_with_and_without_a_limit(tmp_path: Path) -> None:
    written(tmp_path / "memory" / "x", memory__limit_in_bytes="2000", memory__usage_in_bytes="500")
    written(tmp_path / "memory", memory__limit_in_bytes=str(2**63 - 4096), memory__usage_in_bytes="500")
    written(tmp_path / "cpu,cpuacct", cpu__cfs_quota_us="-1", cpu__cfs_period_us="100000")
    written(tmp_path / "cpu", cpu__cfs_quota_us="50000", cpu__cfs_period_us="100000")
    own = "9:memory:/x\n3:cpuset:/y\n2:cpu,cpuacct:/\n"
    assert memory_free_bytes(root=tmp_path, own=own) == 1500
    assert cpu_quota(root=tmp_path, own=own) == 0.5


def test_nothing_there_is_no_limit(tmp_path: Path) -> None:
    assert memory_free_bytes(root=tmp_path, own="") is None
    assert cpu_quota(root=tmp_path, own="0::/../../etc\n:::\nnonsense\n") is None
    written(tmp_path, memory__max="soon", cpu__max="1")
    assert memory_free_bytes(root=tmp_path, own="0::/\n") is None
    assert cpu_quota(root=tmp_path, own="0::/\n") is None
