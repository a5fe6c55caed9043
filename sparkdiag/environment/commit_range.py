"""All commits between two of a clone, by the thousands: who came from whom, and which Python files each changes."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from shlex import quote
from typing import NamedTuple

from sparkdiag.environment.blobs import BlobReader, RevisionTree
from sparkdiag.environment.clone import Clone
from sparkdiag.environment.commits import LINKS, Difference, described, read_differences, unlisted
from sparkdiag.environment.named import named_commit
from sparkdiag.errors import UsageError
from sparkdiag.evidence.bisection import Commit
from sparkdiag.scenario.shown import shown

MAX_COMMITS = 200_000
_AT_ONCE = 4_000
"""Commits a call of git, so that no answer comes near what ``Clone`` takes."""
_CHANGES = ("diff-tree", "--stdin", "-r", "--root", "--raw", "--no-renames", "--no-abbrev", "-z", "--", "*.py")


class FileChange(NamedTuple):
    """What a commit does to one file."""

    path: str
    oid: str | None
    """Id of the new content; None where the file goes, or becomes a link."""
    added: bool
    """The path was not there before."""


class ClonedRange:
    """``old..new`` of one clone; a ``sparkdiag.routing.across.history.CommitRange``."""

    def __init__(self, reader: BlobReader, *, old: str, new: str) -> None:
        """Ids of 40 digits; ``old`` empty for everything that ``new`` contains."""
        self.old = old
        self.new = new
        self._reader = reader

    @cached_property
    def parents(self) -> Mapping[str, tuple[str, ...]]:
        """The parents of each commit of the range, outside ones too; parents before children.

        Raises ``EnvironmentFault`` when git failed, ``UsageError`` for too many commits.
        """
        without = (f"^{self.old}",) if self.old else ()
        bound = f"--max-count={MAX_COMMITS + 1}"
        said = self._clone.output("rev-list", "--topo-order", "--reverse", "--parents", bound, *without, self.new, "--")
        if said is None:
            raise unlisted(self._clone)
        found = {sha: tuple(parents) for sha, *parents in map(str.split, said.decode("ascii").splitlines())}
        if len(found) > MAX_COMMITS:
            raise UsageError(f"more than {MAX_COMMITS:,} commits", remedy="a shorter range: --history A..B")
        return found

    @cached_property
    def cut_off(self) -> frozenset[str]:
        """The commits of the range whose parents a shallow clone lacks."""
        return self._clone.cut_off().intersection(self.parents)

    @cached_property
    def changes(self) -> Mapping[str, Sequence[FileChange]]:
        """Of each commit the Python files that differ from its first parent's; a commit without parents adds all.

        Two or three seconds for 18,000 commits. Raises ``EnvironmentFault`` when git failed.
        """
        found: dict[str, list[FileChange]] = {}
        for change in self._differences():
            oid = None if change.status == b"D" or change.mode in LINKS else change.oid
            found.setdefault(change.sha, []).append(FileChange(change.path, oid, added=change.status == b"A"))
        return found

    def _differences(self) -> Iterator[Difference]:
        edges = [" ".join((sha, *parents[:1])) for sha, parents in self.parents.items()]
        for start in range(0, len(edges), _AT_ONCE):
            asked = "\n".join([*edges[start : start + _AT_ONCE], ""]).encode()
            said = self._clone.output(*_CHANGES, stdin=asked)
            if said is None:
                raise unlisted(self._clone)
            yield from read_differences(said)

    def tree(self, sha: str) -> RevisionTree:
        """The files of a commit."""
        return self._reader.tree(sha)

    def oids(self, sha: str, paths: Sequence[str]) -> tuple[str | None, ...]:
        """Ids of these files' contents at a commit, None where there is no such file."""
        return tuple(self._reader.oid_at(sha, path) for path in paths)

    def holds(self, oid: str, text: str) -> bool:
        """Whether the file with this id holds ``text`` literally."""
        return self._reader.holds(oid, text)

    def described(self, shas: Sequence[str]) -> tuple[Commit, ...]:
        """These commits with subject and date."""
        return described(self._clone, shas)

    @property
    def _clone(self) -> Clone:
        return self._reader.clone


def read_range(reader: BlobReader, text: str, *, option: str = "--history") -> ClonedRange:
    """``A..B`` as it was typed after ``option``; ``A..`` ends at HEAD, and ``B`` alone is all that B contains.

    Raises ``UsageError`` where an end is no commit of the clone, or nothing lies between.
    """
    clone = reader.clone
    first, dots, last = text.partition("..")
    if last.startswith("."):
        raise UsageError(
            f"{option} {shown(text)} has three dots", remedy=f"{option} A..B: all that B has and A has not"
        )
    if dots and not first:
        raise UsageError(
            f"{option} {shown(text)} has no beginning", remedy=f"{option} A..B, or {option} B for everything up to B"
        )
    old = named_commit(clone, first, option=option) if dots else ""
    new = named_commit(clone, (last or "HEAD") if dots else first, option=option)
    if old == new:
        raise UsageError(f"{option} {shown(text)}: both ends are the commit {old[:10]}", remedy=f"{option} A..B")
    if old and clone.is_ancestor(new, old):
        turned = f"{last or 'HEAD'}..{first}"
        raise UsageError(
            f"{option} {shown(text)}: nothing lies between, the first contains the second",
            remedy=f"{option} {quote(turned)}",
        )
    return ClonedRange(reader, old=old, new=new)
