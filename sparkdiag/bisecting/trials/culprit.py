"""What the commit that brought the change did to the watched files."""

from collections.abc import Sequence
from pathlib import Path

from sparkdiag.environment.clone import open_clone
from sparkdiag.environment.commits import unified_diff
from sparkdiag.errors import EnvironmentFault
from sparkdiag.harmless.printable import escaped
from sparkdiag.harmless.secrets import redact_text

MAX_DIFF_BYTES = 200_000
"""A report's share; the whole is one ``git diff`` away."""


def suspect_diff(repo: Path, *, old_sha: str, new_sha: str, paths: Sequence[str]) -> str:
    """What changed in the watched files between two commits, as git prints it: without secrets and without what a
    terminal obeys, at most about ``MAX_DIFF_BYTES``. Empty without paths or changes, or when git could not tell."""
    try:
        found = unified_diff(open_clone(repo).top(), old_sha, new_sha, paths, limit=MAX_DIFF_BYTES) if paths else None
    except EnvironmentFault:
        return ""
    if found is None:
        return ""
    text, is_cut = found
    whole, rest = (text.rpartition("\n")[0], f"\n… cut after {MAX_DIFF_BYTES:,} bytes\n") if is_cut else (text, "")
    return escaped(redact_text(whole), allowed="\n\t") + rest
