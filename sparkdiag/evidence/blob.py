"""One file of a revision, as git keeps it."""

from sparkdiag.evidence.base import Value


class Blob(Value):
    """One file as it is at a revision."""

    path: str
    oid: str
    """Id of its content, 40 digits: equal ids, equal files."""
    text: str
