"""Files of any revision from real repositories: without a checkout, whatever lies in the way."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from sparkdiag.environment.blobs import BlobReader, open_blobs, open_tree
from sparkdiag.environment.clone import Clone
from sparkdiag.environment.commit_range import read_range
from sparkdiag.environment.objects import Found, NotRead, ObjectReader
from sparkdiag.errors import EnvironmentFault, RouteError, SparkdiagError, UsageError
from sparkdiag.harmless.printable import hidden_characters
from sparkdiag.routing.across.history import CommitRange
from sparkdiag.routing.source.source_tree import SourceTree
from tests.integration.axis_case import Written, git, write

pytestmark = pytest.mark.integration

TEXT = "def sparse_attn_indexer():\n    pass\n"


def clear(error: SparkdiagError) -> SparkdiagError:
    """One line and a next step."""
    assert error.remedy and "\n" not in error.message and not hidden_characters(error.message)
    return error


def test_a_file_is_read_as_it_was_at_each_revision(tmp_path: Path) -> None:
    folder = tmp_path / "x.git"
    old, new, gone = write(
        folder,
        [
            Written(files={"vllm/a.py": "1", "b.py": "same"}),
            Written(parents=[0], files={"vllm/a.py": "2"}),
            Written(parents=[1], files={"vllm/a.py": None, "vllm/moved.py": "2"}),
        ],
    )
    with open_blobs(folder) as reader:
        trees: list[SourceTree] = [reader.tree(sha) for sha in (old, new, gone)]
        blobs = [tree.read("vllm/a.py") for tree in trees]
        assert [blob.text if blob else None for blob in blobs] == ["1", "2", None]
        moved, same = trees[2].read("vllm/moved.py"), [tree.read("b.py") for tree in trees]
        assert moved and blobs[1] and moved.oid == blobs[1].oid == git(folder, "rev-parse", f"{gone}:vllm/moved.py")
        assert len({blob.oid for blob in same if blob}) == 1
        for path in (
            "",
            "vllm",
            "vllm/",
            "/vllm/a.py",
            "./b.py",
            "vllm/../b.py",
            "no/b.py",
            "b.py/x",
            "a\nb",
            "b.py\0",
        ):
            assert trees[0].read(path) is None
    with open_tree(folder, "main") as tree:
        assert tree.revision == gone


def test_a_work_tree_is_read_from_its_top_and_not_from_its_files(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    folder.mkdir()
    git(folder, "init", "-q", ".")
    (folder / "sub").mkdir()
    (folder / "sub" / "a.py").write_text("committed = 1\n")
    git(folder, "add", "."), git(folder, "commit", "-q", "-m", "one")
    (folder / "sub" / "a.py").write_text("edited = 1\n")
    (folder / "sub" / "new.py").write_text("committed = 2\n")
    with open_tree(folder / "sub", "HEAD") as tree:
        blob = tree.read("sub/a.py")
        assert blob is not None and blob.text == "committed = 1\n"
        assert tree.holding("committed") == ("sub/a.py",)


def test_bytes_that_are_no_text_links_and_submodules(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    folder.mkdir()
    git(folder, "init", "-q", ".")
    (folder / "bad.py").write_bytes(b"x = '\xff'\n")
    (folder / "bom.py").write_bytes(b"\xef\xbb\xbfx = 1\n")
    (folder / "link.py").symlink_to("bom.py")
    (folder / "real").mkdir()
    (folder / "real" / "a.py").write_text("y = 1\n")
    (folder / "way").symlink_to("real")
    git(folder, "add", ".")
    git(folder, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},module.py")
    git(folder, "commit", "-q", "-m", "one")
    with open_tree(folder, "HEAD") as tree:
        texts = {path: blob.text for path in ("bad.py", "bom.py", "real/a.py") if (blob := tree.read(path))}
        assert texts == {"bad.py": "x = '\ufffd'\n", "bom.py": "x = 1\n", "real/a.py": "y = 1\n"}
        assert [tree.read(path) for path in ("link.py", "way/a.py", "module.py")] == [None, None, None]


def test_what_holds_a_text_is_the_same_near_a_known_commit_as_from_all_files(tmp_path: Path) -> None:
    folder = tmp_path / "x.git"
    files: list[dict[str, str | None]] = [
        {"old.py": TEXT, "readme.md": TEXT, "other.py": "1"},
        {"other.py": "2"},
        {"old.py": None, "new/place.py": TEXT},
        {"other.py": TEXT},
        {"new/place.py": "gone"},
    ]
    ids = write(folder, [Written([place - 1] if place else [], one) for place, one in enumerate(files)])
    wanted = [("old.py",), ("old.py",), ("new/place.py",), ("new/place.py", "other.py"), ("other.py",)]
    with open_blobs(folder) as reader:
        assert [reader.tree(sha).holding("def sparse_attn_indexer(") for sha in ids] == wanted
    for sha, paths in zip(ids, wanted, strict=True):
        with open_blobs(folder) as reader:
            assert reader.tree(sha).holding("def sparse_attn_indexer(") == paths
            assert reader.tree(sha).holding("nowhere at all") == reader.tree(sha).holding("") == ()
            assert reader.tree(sha).holding("-e x") == reader.tree(sha).holding("def .*") == ()


def test_a_file_that_is_too_large_is_one_clear_line_and_the_next_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "x.git"
    (sha,) = write(folder, [Written(files={"huge\x1b.py": "x" * 3000, "small.py": "y"})])
    reader = BlobReader(Clone(folder, bare=True), limit=2000)
    try:
        with pytest.raises(RouteError, match="a source file that large is not read") as caught:
            reader.tree(sha).read("huge\x1b.py")
        clear(caught.value)
        small = reader.tree(sha).read("small.py")
        assert small is not None and small.text == "y"
        assert not reader.holds(git(folder, "rev-parse", f"{sha}:huge\x1b.py"), "x")
    finally:
        reader.close()


def test_a_revision_that_is_none_and_a_folder_that_is_no_clone(tmp_path: Path) -> None:
    folder = tmp_path / "x.git"
    write(folder, [Written(files={"a.py": "1"})])
    for revision in ("nonsense", "", "-x", "f" * 40, "main:a.py", "a\nb", "\x1b[31m"):
        with pytest.raises(UsageError, match="--rev") as wrong, open_tree(folder, revision):
            pass
        clear(wrong.value)
    for place in (tmp_path, tmp_path / "none", folder / "config"):
        with pytest.raises(EnvironmentFault, match="no git clone") as none, open_tree(place, "main"):
            pass
        clear(none.value)


def cloned(source: Path, folder: Path, *options: str) -> Path:
    git(source.parent, "clone", "-q", "--no-local", "--bare", *options, source.as_uri(), str(folder))
    return folder


def test_a_shallow_clone_that_lacks_the_revision_says_so(tmp_path: Path) -> None:
    source = tmp_path / "x.git"
    ids = write(source, [Written([place - 1] if place else [], {"a.py": str(place)}) for place in range(4)])
    folder = cloned(source, tmp_path / "shallow", "--depth=2")
    with pytest.raises(UsageError, match="a shallow clone") as caught, open_tree(folder, ids[0]):
        pass
    assert "fetch --unshallow" in str(clear(caught.value).remedy)
    with open_blobs(folder) as reader:
        assert reader.named(ids[3]).read("a.py") is not None
        span = read_range(reader, "main")
        assert list(span.parents) == [ids[2], ids[3]] and span.cut_off == {ids[2]}


def test_a_partial_clone_that_lacks_a_file_says_how_to_get_it_and_fetches_nothing(tmp_path: Path) -> None:
    source = tmp_path / "x.git"
    (sha,) = write(source, [Written(files={"a.py": TEXT})])
    git(source, "config", "uploadpack.allowFilter", "true")
    folder = cloned(source, tmp_path / "partial", "--filter=blob:none")
    before = sorted(path for path in folder.rglob("*") if path.is_file())
    with open_blobs(folder) as reader:
        for ask, what in ((reader.tree(sha).read, "a.py"), (reader.tree(sha).holding, "def")):
            with pytest.raises(EnvironmentFault, match="a partial clone that lacks") as caught:
                ask(what)
            assert "fetch --refetch --no-filter" in str(clear(caught.value).remedy)
    assert sorted(path for path in folder.rglob("*") if path.is_file()) == before


def test_a_search_through_files_of_which_one_is_lost_finds_not_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "x.git"
    (sha,) = write(folder, [Written(files={"a.py": TEXT, "b.py": "x"})])
    oid = git(folder, "rev-parse", f"{sha}:a.py")
    for pack in list((folder / "objects" / "pack").glob("*.pack")):
        content = pack.read_bytes()
        for file in pack.parent.glob(f"{pack.stem}.*"):
            file.unlink()
        git(folder, "unpack-objects", "-q", stdin=content)
    lost = folder / "objects" / oid[:2] / oid[2:]
    lost.unlink()
    with open_blobs(folder) as reader:
        for ask, what in ((reader.tree(sha).holding, "def"), (reader.tree(sha).read, "a.py")):
            with pytest.raises(EnvironmentFault) as caught:
                ask(what)
            assert "fsck" in str(clear(caught.value).remedy)
        assert reader.tree(sha).read("b.py")


def children(name: str) -> list[int]:
    """Ids of this process's children with ``name`` in their command line."""
    done = subprocess.run(
        ["ps", "-o", "pid=,args=", "--ppid", str(os.getpid())], capture_output=True, text=True, check=True
    )
    return [int(line.split()[0]) for line in done.stdout.splitlines() if name in line]


def test_git_is_ended_with_the_reader_and_started_again_when_somebody_kills_it(tmp_path: Path) -> None:
    folder = tmp_path / "x.git"
    (sha,) = write(folder, [Written(files={"a.py": "1", "b.py": "2"})])
    with open_blobs(folder) as reader:
        assert reader.tree(sha).read("a.py")
        (child,) = children("cat-file")
        os.kill(child, signal.SIGKILL)
        with pytest.raises(EnvironmentFault) as caught:
            while True:  # as long as what it had written is still in the pipe
                reader.tree(sha).read("b.py")
        clear(caught.value)
        assert reader.tree(sha).read("b.py")
        assert children("cat-file") not in ([], [child])
    assert children("cat-file") == []


class Hanging(Clone):
    """Its git says nothing, or half of an answer, and stays."""

    said = ""

    def child(self, *words: str) -> "subprocess.Popen[bytes]":
        pipe = subprocess.PIPE
        return subprocess.Popen(["sh", "-c", f"printf '{self.said}'; exec sleep 60"], stdin=pipe, stdout=pipe)


@pytest.mark.parametrize("said", ["", "half", f"{'1' * 40} blob 100\\n123", f"{'2' * 40} blob 1\\n1\\n", "x" * 500])
def test_a_git_that_hangs_or_says_something_else_is_ended(tmp_path: Path, said: str) -> None:
    clone = Hanging(tmp_path)
    clone.said = said
    reader = ObjectReader(clone, timeout_s=0.3)
    began_s = time.monotonic()
    assert reader.read("1" * 40) == NotRead("failed")
    assert time.monotonic() - began_s < 30
    assert children("sleep") == []


def test_only_ids_are_ever_written_to_git(tmp_path: Path) -> None:
    folder = tmp_path / "x.git"
    (sha,) = write(folder, [Written(files={"a.py": "1"})])
    reader = ObjectReader(Clone(folder, bare=True))
    for oid in ("main", f"{sha}\n{sha}", f"{sha}:a.py", "", sha[:10], sha.upper()):
        assert reader.read(oid) == NotRead("missing")
    assert children("cat-file") == []
    found = reader.read(sha)
    reader.close()
    assert isinstance(found, Found) and found.kind == "commit"
    assert reader.read("f" * 40) == NotRead("missing")
    reader.close()


def test_a_clone_that_names_programs_runs_none_of_them(tmp_path: Path) -> None:
    folder, trap = tmp_path / "w", tmp_path / "ran"
    folder.mkdir()
    git(folder, "init", "-q", ".")
    (folder / "a.py").write_text(TEXT)
    (folder / ".gitattributes").write_text("*.py diff=x filter=x textconv=x\n")
    git(folder, "add", "."), git(folder, "commit", "-q", "-m", "one")
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {trap}\ncat\n")
    program.chmod(0o755)
    for key in (
        "core.fsmonitor",
        "diff.x.textconv",
        "diff.external",
        "diff.x.command",
        "filter.x.smudge",
        "core.pager",
    ):
        git(folder, "config", key, str(program))
    git(folder, "config", "grep.fallbackToNoIndex", "true"), git(folder, "config", "grep.patternType", "perl")
    trap.unlink(missing_ok=True)
    with open_blobs(folder) as reader:
        tree = reader.named("HEAD")
        assert tree.read("a.py") and tree.holding("def sparse_attn_indexer(") == ("a.py",)
        span: CommitRange = read_range(reader, "HEAD")
        assert [change.path for change in span.changes[tree.revision]] == ["a.py"]
    assert not trap.exists()


def test_replaced_objects_and_a_callers_variables_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "x.git"
    old, new = write(folder, [Written(files={"a.py": "1"}), Written([0], {"a.py": "2"})])
    git(folder, "replace", new, old)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(tmp_path / "elsewhere"))
    with open_tree(folder, new) as tree:
        blob = tree.read("a.py")
    assert blob is not None and blob.text == "2"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("main...old", "three dots"),
        ("..main", "no beginning"),
        ("main..main", "both ends"),
        ("main..old", "nothing lies between"),
        ("nonsense..main", "is no commit"),
        ("old..nonsense", "is no commit"),
        ("", "is no commit"),
        ("-x..main", "begins with -"),
    ],
)
def test_a_range_that_is_none(tmp_path: Path, text: str, why: str) -> None:
    folder = tmp_path / "x.git"
    ids = write(folder, [Written(files={"a.py": "1"}), Written([0], {"a.py": "2"})])
    git(folder, "branch", "old", ids[0])
    with open_blobs(folder) as reader, pytest.raises(UsageError, match=why) as caught:
        read_range(reader, text)
    assert "--history" in clear(caught.value).message
