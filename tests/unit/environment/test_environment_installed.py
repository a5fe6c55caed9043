"""An installed package read where it lies: files only, nothing outside, nothing that never ends."""

import hashlib
import os
from pathlib import Path

import pytest

from sparkdiag.environment.installed import MOST_BYTES, InstalledTree
from sparkdiag.errors import EnvironmentFault


@pytest.fixture
def tree(tmp_path: Path) -> InstalledTree:
    site = tmp_path / "site-packages"
    (site / "vllm" / "utils").mkdir(parents=True)
    (site / "vllm" / "__init__.py").write_bytes(b"\xef\xbb\xbfx = 1\n")
    (site / "vllm" / "utils" / "deep_gemm.py").write_bytes(b"def entry(): ...\n# \xff\n")
    (site / "vllm" / "note.txt").write_text("def entry(): ...")
    (site / "torch").mkdir()
    (site / "torch" / "__init__.py").write_text("entry = 1")
    return InstalledTree(site / "vllm", revision="vLLM 0.32.0")


def test_a_file_is_read_with_the_id_that_git_would_give_it(tree: InstalledTree) -> None:
    blob = tree.read("vllm/utils/deep_gemm.py")
    assert blob is not None
    content = b"def entry(): ...\n# \xff\n"
    assert blob.oid == hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
    assert blob.text == "def entry(): ...\n# \ufffd\n"
    first = tree.read("vllm/__init__.py")
    assert first is not None and first.text == "x = 1\n"
    assert tree.revision == "vLLM 0.32.0"


@pytest.mark.parametrize(
    "path",
    [
        "vllm/missing.py",
        "vllm/utils",
        "vllm/__init__.py/x.py",
        "torch/__init__.py",
        "vllm/../torch/__init__.py",
        "../vllm/__init__.py",
        "/etc/passwd",
        "",
        "vllm/\0",
    ],
)
def test_nothing_but_the_packages_own_files_is_read(tree: InstalledTree, path: str) -> None:
    assert tree.read(path) is None


def test_a_pipe_and_a_huge_file_are_no_source(tree: InstalledTree, tmp_path: Path) -> None:
    package = tmp_path / "site-packages" / "vllm"
    os.mkfifo(package / "pipe.py")
    with (package / "huge.py").open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    assert tree.read("vllm/pipe.py") is None
    assert tree.read("vllm/huge.py") is None
    assert tree.holding("entry") == ("vllm/utils/deep_gemm.py",)


def test_an_installer_that_links_to_its_cache_is_followed(tree: InstalledTree, tmp_path: Path) -> None:
    (tmp_path / "cached").write_text("cached = 1\n")
    (tmp_path / "site-packages" / "vllm" / "linked.py").symlink_to(tmp_path / "cached")
    linked = tree.read("vllm/linked.py")
    assert linked is not None and linked.text == "cached = 1\n"


def test_files_that_hold_a_text_are_found_in_order(tree: InstalledTree, tmp_path: Path) -> None:
    (tmp_path / "site-packages" / "vllm" / "a.py").write_text("def entry(): ...")
    assert tree.holding("def entry") == ("vllm/a.py", "vllm/utils/deep_gemm.py")
    assert tree.holding("nowhere") == ()


def test_a_file_that_may_not_be_read_is_a_fault(tree: InstalledTree, tmp_path: Path) -> None:
    package = tmp_path / "site-packages" / "vllm"
    (package / "loop.py").symlink_to(package / "loop.py")
    with pytest.raises(EnvironmentFault, match=r"vllm/loop\.py"):
        tree.read("vllm/loop.py")
