"""Questions to a git clone, by GitPython: bounded in time, never fetching, never running what the clone configures."""

import hashlib
import os
import re
import shutil
from pathlib import Path

# Where no git is installed this import would fail, and with it everything that needs none.
os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")

import git
from git.exc import GitError

from sparkdiag.errors import EnvironmentFault
from sparkdiag.evidence.base import Value
from sparkdiag.evidence.run import Containment
from sparkdiag.needed import need_git

TIMEOUT_S = 60
SHA = re.compile(r"[0-9a-f]{40}")
# A clone may name programs that git runs (fsmonitor), and a partial one fetches what it lacks: neither here.
# A hook or an alias that called us may have set what git would take for the repository: not here.
PLAIN = ("env", "-u", "GIT_DIR", "-u", "GIT_WORK_TREE", "-u", "GIT_INDEX_FILE", "-u", "GIT_OBJECT_DIRECTORY", "git")
SAFE = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
ENVIRONMENT = {"GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}


class Head(Value):
    """Where a working tree stands."""

    root: str
    sha: str
    dirty: bool


class Clone:
    """A clone on disk, or the clone that holds a folder."""

    def __init__(self, folder: Path, *, timeout_s: int = TIMEOUT_S) -> None:
        self.folder = folder
        self._timeout_s = timeout_s
        self._git = git.Git(str(folder))
        self._git.update_environment(**ENVIRONMENT)

    def _ask(self, *words: str, ok: tuple[int, ...] = (0,)) -> tuple[int, bytes] | None:
        """Exit status and output of one git command; None when git failed, hung or was not there."""
        try:
            status, output, _ = self._git.execute(
                [*PLAIN, *SAFE, *words],
                with_extended_output=True,
                with_exceptions=False,
                stdout_as_string=False,
                strip_newline_in_stdout=False,
                kill_after_timeout=self._timeout_s,
            )
        except (GitError, OSError):
            return None
        content = output if isinstance(output, bytes) else str(output).encode()
        return (int(status), content) if int(status) in ok else None

    def _text(self, *words: str) -> str | None:
        found = self._ask(*words)
        return found[1].decode(errors="replace").strip() if found is not None else None

    def is_clone(self) -> bool:
        """Whether there is a readable git repository here."""
        return self._text("rev-parse", "--git-dir") is not None

    def root(self) -> Path | None:
        """Top of the working tree; None for a bare clone or no clone."""
        found = self._text("rev-parse", "--show-toplevel")
        return Path(found) if found else None

    def resolve(self, revision: str) -> str | None:
        """The commit's 40 digits; None when the clone has no such commit, or an abbreviation fits several."""
        found = self._text("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        return found if found and SHA.fullmatch(found) else None

    def is_ancestor(self, older: str, newer: str) -> bool | None:
        """Whether ``newer`` contains ``older``; None when git cannot tell."""
        found = self._ask("merge-base", "--is-ancestor", older, newer, ok=(0, 1))
        return None if found is None else found[0] == 0

    def is_shallow(self) -> bool:
        """Whether the history was cut off."""
        return self._text("rev-parse", "--is-shallow-repository") == "true"

    def is_partial(self) -> bool:
        """Whether objects were left at a remote (``git clone --filter=…``): what is missing is never fetched here."""
        return bool(self._text("config", "--get-regexp", r"^(extensions\.partialclone|remote\..*\.promisor)$"))

    def blob_sha256(self, sha: str, path: str) -> str | None:
        """SHA-256 of a file's content at a commit; None when it is not there."""
        found = self._ask("cat-file", "blob", f"{sha}:{path}")
        return hashlib.sha256(found[1]).hexdigest() if found is not None else None

    def tracks(self, path: Path) -> bool:
        """Whether the file is part of the clone, and not merely below it (an environment inside a checkout)."""
        return self._ask("ls-files", "--error-unmatch", "--", str(path)) is not None

    def head(self) -> Head | None:
        """The checked-out commit, and whether tracked files differ from it."""
        root, sha = self.root(), self.resolve("HEAD")
        changes = self._text("status", "--porcelain", "--untracked-files=no")
        if root is None or sha is None or changes is None:
            return None
        return Head(root=str(root), sha=sha, dirty=bool(changes))


def open_clone(folder: Path) -> Clone:
    """The clone at ``folder``; raises ``EnvironmentFault`` when there is none that git would read."""
    need_git(f"to look into {folder}")
    clone = Clone(folder)
    if not folder.is_dir() or not clone.is_clone():
        raise EnvironmentFault(
            f"{folder} is no git clone that can be read",
            remedy=f"git -C {folder} status (git says why; a clone of another user needs safe.directory)",
        )
    return clone


def containment(clone: Clone, sha: str | None, *, commits: tuple[str, ...]) -> tuple[Containment, str]:
    """Whether ``sha`` contains one of ``commits`` (a commit and its rebased twins), and why that is the answer."""
    if not commits:
        return "unknown", "the scenario names no suspect commit"
    if sha is None:
        return "unknown", "the running code belongs to no known revision"
    if shutil.which("git") is None:
        return "unknown", "git is not installed, so no history can be looked into"
    if not clone.is_clone():
        return "unknown", f"{clone.folder} is no git clone that can be read"
    newer = clone.resolve(sha)
    if newer is None:
        return "not-in-this-clone", f"the running revision {sha[:10]} is not in this clone"
    shallow = clone.is_shallow()
    known = [(commit, found) for commit in commits if (found := clone.resolve(commit)) is not None]
    if not known:
        cut = " (a shallow clone: git fetch --unshallow)" if shallow else ""
        return "not-in-this-clone", f"this clone has none of {', '.join(commit[:10] for commit in commits)}{cut}"
    answers = {commit: clone.is_ancestor(found, newer) for commit, found in known}
    for commit, answer in answers.items():
        if answer:
            twin = "" if commit == commits[0] else f" (twin of {commits[0][:10]})"
            return "yes", f"{commit[:10]}{twin} is an ancestor of {newer[:10]}"
    names = ", ".join(commit[:10] for commit in answers)
    if shallow:
        return "unknown", f"{names} is no ancestor of {newer[:10]} as far as this shallow clone goes"
    if None in answers.values():
        return "unknown", f"git could not compare {names} with {newer[:10]}"
    return "no", f"{names} is no ancestor of {newer[:10]}"
