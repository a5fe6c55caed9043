"""What was asked of ``post``, checked."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sparkdiag.errors import UsageError

if TYPE_CHECKING:
    from sparkdiag.posting.where import Target

_LONGEST_S = 3600.0


@dataclass(frozen=True, kw_only=True)
class Typed:
    """The options as they were typed."""

    folder: Path
    pr: str | None
    yes: bool
    dry_run: bool
    full: bool
    force: bool
    gist: bool
    not_secret: frozenset[str]
    search: bool
    search_in: tuple[str, ...]
    api_url: str | None
    timeout_s: float
    patience_s: float
    as_json: bool


@dataclass(frozen=True, kw_only=True)
class Asked:
    """``Typed`` that makes sense; ``target`` is None for a search alone."""

    typed: Typed
    target: "Target | None"
    api_url: str
    repositories: tuple[str, ...]
    """To search; empty where nothing is to be searched."""


def checked(typed: Typed, *, environ: Mapping[str, str]) -> Asked:
    """Raises ``UsageError``."""
    from sparkdiag.posting.where import GITHUB_API, checked_api_url, repository_of, target_of

    for name, seconds in (("--timeout-s", typed.timeout_s), ("--patience-s", typed.patience_s)):
        if not 0 <= seconds <= _LONGEST_S or (name == "--timeout-s" and seconds < 1):
            raise UsageError(f"{name} {seconds:g}: out of range", remedy=f"{name} 20")
    if typed.yes and typed.dry_run:
        raise UsageError("--yes posts and --dry-run does not", remedy="give one of them")
    usual = environ.get("GITHUB_API_URL") or None
    target = target_of(typed.pr, asked_api=typed.api_url, usual_api=usual) if typed.pr else None
    searching = typed.search or bool(typed.search_in)
    named = tuple(repository_of(text) for text in typed.search_in)
    own = (target.repository,) if target is not None else ()
    repositories = tuple(dict.fromkeys((*own, *named))) if searching else ()
    if target is None and not searching:
        raise UsageError("where to post is missing", remedy="--pr OWNER/REPO#N")
    if searching and not repositories:
        raise UsageError("--search: where is missing", remedy="--pr OWNER/REPO#N or --search-in OWNER/REPO")
    if searching and typed.yes:
        raise UsageError("a search posts nothing, so --yes has no meaning", remedy="leave out one of them")
    if typed.as_json and not (typed.yes or typed.dry_run or searching):
        raise UsageError("--json asks nothing", remedy="--yes, or --dry-run to see what would be posted")
    api = target.api_url if target is not None else checked_api_url(typed.api_url or usual or GITHUB_API)
    return Asked(typed=typed, target=target, api_url=api, repositories=repositories)
