"""Names that tell whose machine it was: what a public report leaves out beside secrets. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Identities:
    """Names known to belong to somebody: of this machine, or found in what was recorded."""

    hosts: frozenset[str] = frozenset()
    users: frozenset[str] = frozenset()
