"""What GitHub tells, as far as posting needs it. Texts in here are anybody's."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Conversation:
    """A pull request or an issue as GitHub tells it now."""

    repository: str
    number: int
    title: str
    state: str
    """``open``, ``closed``, ``merged``."""
    locked: bool
    is_pull_request: bool
    url: str


@dataclass(frozen=True, kw_only=True)
class Comment:
    """One comment of a conversation."""

    id: int
    login: str
    body: str
    url: str
    updated_at: str


@dataclass(frozen=True, kw_only=True)
class Hit:
    """One issue or pull request that a search found."""

    repository: str
    number: int
    title: str
    is_pull_request: bool
    updated_at: str
    url: str
