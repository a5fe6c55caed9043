"""The commits between two ends, as a DAG that answers "who is an ancestor of whom" in one step. Pure."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Self

from sparkdiag.evidence.base import Value
from sparkdiag.evidence.bisection import Commit

Span = tuple[int, int]
"""First place and the one after the last."""


class History(Value):
    """Commits in history order, oldest first: every parent that is in it stands before its children.

    Sets of commits are Python integers used as bit sets, bit ``i`` for ``commits[i]``: 4,096 commits cost 2 MB.
    """

    commits: tuple[Commit, ...]

    @classmethod
    def of(cls, commits: Iterable[Commit]) -> Self:
        """Sort into history order; commits already in one keep it. Raises ``ValueError`` on a commit given twice or a
        circle."""
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

    @cached_property
    def ancestor_spans(self) -> tuple[tuple[Span, ...], ...]:
        """``ancestors`` as runs of neighbouring places: few for a commit, since branches stand together. With running
        totals the weight of all ancestors is one subtraction a run."""
        return tuple(spans(bits) for bits in self.ancestors)

    def ancestors_of(self, sha: str) -> int:
        """``sha`` and all it contains. Raises ``KeyError`` for a commit that is not in this history."""
        return self.ancestors[self.index[sha]]

    def parents_of(self, sha: str) -> tuple[str, ...]:
        """Those that are in this history. Raises ``KeyError``."""
        return tuple(parent for parent in self.commits[self.index[sha]].parents if parent in self.index)

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


def spans(bits: int) -> tuple[Span, ...]:
    """The runs of set bits, lowest first."""
    edges = places(bits ^ (bits << 1))
    return tuple(zip(edges[::2], edges[1::2], strict=True))


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
