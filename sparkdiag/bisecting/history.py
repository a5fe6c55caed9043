"""The commits between two ends, as a DAG that answers "who is an ancestor of whom" in one step. Pure."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Self

from sparkdiag.evidence.base import Value
from sparkdiag.evidence.bisection import Commit


class History(Value):
    """Commits in history order, oldest first: every parent that is in it stands before its children.

    Sets of commits are Python integers used as bit sets, bit ``i`` for ``commits[i]``: 4,096 commits cost 2 MB.
    """

    commits: tuple[Commit, ...]

    @classmethod
    def of(cls, commits: Iterable[Commit]) -> Self:
        """Sort into history order. Raises ``ValueError`` on a commit given twice or a circle."""
        given = tuple(commits)
        by_sha = {commit.sha: commit for commit in given}
        if len(by_sha) != len(given):
            raise ValueError("a commit is given twice")
        return cls(commits=tuple(by_sha[sha] for sha in _oldest_first(by_sha)))

    @cached_property
    def index(self) -> dict[str, int]:
        """Place of each commit."""
        return {commit.sha: place for place, commit in enumerate(self.commits)}

    @cached_property
    def ancestors(self) -> tuple[int, ...]:
        """For each commit, the set of its ancestors and itself."""
        found: list[int] = []
        for place, commit in enumerate(self.commits):
            bits = 1 << place
            for parent in commit.parents:
                if parent in self.index:
                    bits |= found[self.index[parent]]
            found.append(bits)
        return tuple(found)

    def ancestors_of(self, sha: str) -> int:
        """``sha`` and all it contains. Raises ``KeyError`` for a commit that is not in this history."""
        return self.ancestors[self.index[sha]]

    def members(self, bits: int) -> tuple[str, ...]:
        """The commits of a set, in history order."""
        return tuple(self.commits[place].sha for place in places(bits))


def places(bits: int) -> list[int]:
    """Which bits are set, lowest first."""
    found = []
    while bits:
        lowest = bits & -bits
        found.append(lowest.bit_length() - 1)
        bits ^= lowest
    return found


def _oldest_first(by_sha: dict[str, Commit]) -> Sequence[str]:
    """Depth first without recursion: histories are thousands deep."""
    done: dict[str, bool] = {}
    order: list[str] = []
    for start in by_sha:
        stack = [start]
        while stack:
            sha = stack[-1]
            if done.get(sha):
                stack.pop()
                continue
            waiting = [parent for parent in by_sha[sha].parents if parent in by_sha and not done.get(parent)]
            if sha in done and waiting:
                raise ValueError(f"{sha} is its own ancestor")
            done[sha] = not waiting
            if waiting:
                stack += waiting
            else:
                order.append(sha)
                stack.pop()
    return order
