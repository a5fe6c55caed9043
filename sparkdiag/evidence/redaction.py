"""What was taken out of a report before somebody else may see it."""

from typing import Literal

from sparkdiag.evidence.base import Value

RedactionKind = Literal[
    "secret",
    "signed URL",
    "environment variable",
    "home folder",
    "user name",
    "host name",
    "address",
]


class Unclassified(Value):
    """A text that may be a secret, or may be none: nobody but a person can tell. It stays as it is until one has."""

    where: str
    """The field it stands in, ``record.environment.note``, or the page's line."""
    looks: str
    """Enough to find it again, too little to use it: ``q7Zk… (44 characters)``."""
    fingerprint: str
    """What a person names it by who has seen that it is no secret: eight hex digits of its SHA-256."""
    why: str


class Redactions(Value):
    """How often what was replaced, and what a person has to look at."""

    counts: dict[RedactionKind, int] = {}
    unclassified: tuple[Unclassified, ...] = ()

    def plus(self, other: "Redactions") -> "Redactions":
        """Both together; of what cannot be classified each fingerprint once."""
        kinds = {**self.counts, **other.counts}
        known = {one.fingerprint for one in self.unclassified}
        more = tuple(one for one in other.unclassified if one.fingerprint not in known)
        return Redactions(
            counts={kind: self.counts.get(kind, 0) + other.counts.get(kind, 0) for kind in kinds},
            unclassified=(*self.unclassified, *more),
        )
