"""The seam to git: the files of one revision, by path."""

from typing import Protocol

from sparkdiag.evidence.blob import Blob

__all__ = ["Blob", "SourceTree"]


class SourceTree(Protocol):
    """One revision's files. ``environment/blobs.py`` reads them from a clone, without a checkout."""

    @property
    def revision(self) -> str:
        """Id of the commit, 40 digits."""
        ...

    def read(self, path: str) -> Blob | None:
        """The file, decoded as UTF-8 (undecodable bytes replaced); None where there is none, or where it is a link.

        Raises ``EnvironmentFault`` when git fails.
        """
        ...

    def holding(self, text: str) -> tuple[str, ...]:
        """Paths of Python files that hold ``text`` literally: the slow way to a function that moved."""
        ...
