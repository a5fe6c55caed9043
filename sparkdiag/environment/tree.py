"""What a commit holds below a folder, and which paths two commits differ in: asked of a clone, parsed purely."""

from collections.abc import Iterator
from typing import NamedTuple

from sparkdiag.environment.clone import Clone
from sparkdiag.errors import EnvironmentFault

PACKAGE = "vllm"
SUBMODULE = "160000"


class Entry(NamedTuple):
    """One path of a commit's tree."""

    mode: str
    """As git writes it: ``100644``, ``120000`` for a link, ``160000`` for a submodule."""
    oid: str


Tree = dict[str, Entry]
"""By path, relative to the folder that was asked for."""


def tree_of(clone: Clone, sha: str, *, folder: str = PACKAGE) -> Tree:
    """Every file of ``folder`` at a commit. Raises ``EnvironmentFault`` when git cannot tell."""
    found = clone.output("ls-tree", "-r", "-z", "--full-tree", sha, "--", f"{folder}/")
    if found is None:
        raise EnvironmentFault(
            f"git cannot list {folder}/ at {sha[:10]} in {clone.folder}",
            remedy=f"git -C {clone.folder} ls-tree {sha[:10]} (git says why)",
        )
    return dict(parse_tree(found, prefix=f"{folder}/"))


def parse_tree(output: bytes, *, prefix: str) -> Iterator[tuple[str, Entry]]:
    """Read ``git ls-tree -r -z``. Pure."""
    for line in output.split(b"\0"):
        facts, tab, path = line.partition(b"\t")
        name = path.decode(errors="surrogateescape")
        if tab and name.startswith(prefix):
            mode, _, oid = facts.decode("ascii").split()
            yield name.removeprefix(prefix), Entry(mode=mode, oid=oid)


def paths_between(clone: Clone, old: str, new: str) -> tuple[str, ...] | None:
    """The paths in which two commits differ, renames as both their names; None when git cannot tell."""
    found = clone.output("diff-tree", "-r", "-z", "--name-only", "--no-renames", "--no-ext-diff", old, new)
    if found is None:
        return None
    return tuple(path.decode(errors="surrogateescape") for path in found.split(b"\0") if path)
