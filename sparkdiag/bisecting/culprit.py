"""What is told of the commit that brought the change: subject, date, pull request, and what it changed."""

import re
from collections.abc import Sequence
from pathlib import Path

from sparkdiag.environment.clone import open_clone
from sparkdiag.environment.commits import unified_diff
from sparkdiag.errors import EnvironmentFault
from sparkdiag.evidence.base import Value
from sparkdiag.evidence.bisection import Commit
from sparkdiag.harmless.printable import escaped
from sparkdiag.harmless.secrets import redact_text

MAX_DIFF_BYTES = 200_000
"""A report's share; the whole is one ``git diff`` away."""

_SQUASHED = re.compile(r"\(#([1-9][0-9]{0,8})\)\s*$")
_MERGED = re.compile(r"Merge pull request #([1-9][0-9]{0,8}) from \S")


class Culprit(Value):
    """One candidate as a report names it. Its author is left out: a search finds changes, not people."""

    sha: str
    subject: str
    committed_on: str
    """The day, ISO 8601; empty when unknown."""
    pull_request: int | None = None

    def __str__(self) -> str:
        number = (
            f", pull request #{self.pull_request}"
            if self.pull_request and str(self.pull_request) not in self.subject
            else ""
        )
        return f"{self.sha[:10]} {self.subject} ({self.committed_on or 'no date'}{number})"


def pr_number_of(message: str) -> int | None:
    """The pull request a commit message names, as GitHub writes it: ``(#123)`` at the subject's end (squashed, as vLLM
    does), ``Merge pull request #123 from ...`` (merged). None for any other number: an issue is no pull request. Pure.

    https://docs.github.com/en/pull-requests/collaborating-with-pull-requests/incorporating-changes-from-a-pull-request/about-pull-request-merges
    """
    subject = message.lstrip("\n").partition("\n\n")[0].replace("\n", " ")
    found = _MERGED.match(subject) or _SQUASHED.search(subject)
    return int(found[1]) if found else None


def described(commits: Sequence[Commit]) -> tuple[Culprit, ...]:
    """The culprit or every candidate, in the order given. Pure."""
    return tuple(
        Culprit(
            sha=commit.sha,
            subject=commit.subject,
            committed_on=commit.committed_at[:10],
            pull_request=pr_number_of(commit.subject),
        )
        for commit in commits
    )


def suspect_diff(repo: Path, *, old_sha: str, new_sha: str, paths: Sequence[str]) -> str:
    """What changed in the watched files between two commits, as git prints it: without secrets and without what a
    terminal obeys, at most ``MAX_DIFF_BYTES``. Empty without paths or changes, or when git could not tell."""
    if not paths:
        return ""
    try:
        clone = open_clone(repo)
    except EnvironmentFault:
        return ""
    found = unified_diff(clone, old_sha, new_sha, paths, limit=MAX_DIFF_BYTES)
    if found is None:
        return ""
    text, is_cut = found
    whole, rest = (text.rpartition("\n")[0], f"\n… cut after {MAX_DIFF_BYTES:,} bytes\n") if is_cut else (text, "")
    return escaped(redact_text(whole), allowed="\n\t") + rest
