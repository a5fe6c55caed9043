"""Which of a base's files a revision's tree gets."""

from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.environment.overlay_base import is_cpu, version_of
from sparkdiag.environment.overlay_files import GENERATED, choose_files
from sparkdiag.environment.spec import ExistingSpec, ReleaseSpec
from sparkdiag.environment.tree import Entry, Tree, parse_tree

PATHS = st.sampled_from(
    ["__init__.py", "_version.py", "_C.abi3.so", "a.py", "d/b.py", "d/c.json", "d/e.so", "d/e.so/f.py", "g", "g/h.py"]
)
OIDS = st.sampled_from(["1", "2"])
TREES = st.dictionaries(PATHS, st.builds(Entry, st.sampled_from(["100644", "160000"]), OIDS))


def possible(paths: list[str]) -> bool:
    """Whether a disk could hold them: none is a folder of another."""
    return not any(str(parent) in paths for path in paths for parent in PurePosixPath(path).parents)


BASES = st.dictionaries(PATHS, OIDS).filter(lambda base: possible(list(base)))


@given(BASES, st.none() | TREES, TREES, st.booleans())
def test_a_revisions_own_files_always_win(
    base: dict[str, str], at_base: Tree | None, tree: Tree, checkout: bool
) -> None:
    files: dict[str, str | None] = {path: oid if path.endswith(".py") else None for path, oid in base.items()}
    found = choose_files(files, at_base=at_base, at_revision=tree, checkout=checkout)
    held = {path for path, entry in tree.items() if entry.mode != "160000"}
    folders = {str(parent) for path in held for parent in PurePosixPath(path).parents}
    assert not set(found.links) & (held | folders) and set(found.links) <= set(base)
    assert not any(str(parent) in held for path in found.links for parent in PurePosixPath(path).parents)
    if at_base is not None:
        tracked = set(found.links) & set(at_base)
        assert checkout or not tracked
    if checkout or at_base is None:
        assert all(GENERATED.fullmatch(path) for path in found.links)
    for path in found.same:
        assert path in found.links or tree[path].oid == files[path]
    assert not set(found.same) & set(found.own) and {p for p in held if p.endswith(".py")} <= {*found.same, *found.own}


def test_what_a_build_made_is_taken_and_what_the_revision_deleted_is_not() -> None:
    base = {"__init__.py": "1", "gone.py": "1", "_version.py": "9", "_C.abi3.so": None, "notes.txt": None}
    at_base = {"__init__.py": Entry("100644", "1"), "gone.py": Entry("100644", "0")}
    at_revision = {"__init__.py": Entry("100644", "2"), "new.py": Entry("100644", "3"), "sub": Entry("160000", "4")}
    found = choose_files(base, at_base=at_base, at_revision=at_revision, checkout=False)
    assert found.links == ("_C.abi3.so", "_version.py", "notes.txt") and found.compiled == ("_C.abi3.so",)
    assert found.same == ("_version.py",) and found.own == ("__init__.py", "new.py")
    assert found.foreign == ("gone.py",) and found.submodules == ("sub",)
    unsure = choose_files(base, at_base=at_base, at_revision=at_revision, checkout=True)
    assert unsure.links == ("_C.abi3.so", "_version.py")


def test_trees_as_git_prints_them() -> None:
    output = b"100644 blob aa\tvllm/a b.py\x00160000 commit bb\tvllm/x/sub\x00100644 blob cc\tvllm/\xff\x00"
    found = dict(parse_tree(output, prefix="vllm/"))
    assert found == {"a b.py": ("100644", "aa"), "x/sub": ("160000", "bb"), "\udcff": ("100644", "cc")}
    assert dict(parse_tree(b"", prefix="vllm/")) == {}


@pytest.mark.parametrize(
    ("tag", "numbers"),
    [("v0.32.0", (0, 32, 0)), ("v0.9.1rc2", (0, 9, 1)), ("v0.23.1rc1.dev145-g8c631d45e", None), ("0.32.0", None)],
)
def test_version_tags(tag: str, numbers: tuple[int, int, int] | None) -> None:
    assert version_of(tag) == numbers


def test_cpu_builds() -> None:
    assert is_cpu(ReleaseSpec(version="0.32.0"), version=None)
    given_one = ExistingSpec(target="x")
    assert is_cpu(given_one, version="0.9.2.dev1+gabc.cpu") and is_cpu(given_one, version="0.32.0+cpu")
    assert not is_cpu(given_one, version="0.32.0") and not is_cpu(given_one, version=None)
