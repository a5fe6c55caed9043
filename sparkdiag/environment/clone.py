"""Questions to a git clone, by GitPython: bounded in time, never fetching, never running what the clone configures."""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import BinaryIO, Self, cast

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
FILTERS = r"^filter\..*\.(clean|smudge|process|required)$"
ABBREVIATED = re.compile(r"[0-9a-f]{4,39}")
MAX_FITTING = 1000
# A clone may name programs that git runs (fsmonitor), and a partial one fetches what it lacks: neither here.
# A hook or an alias that called us may have set what git would take for the repository, or for a path: not here.
CALLERS = (
    *("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_NAMESPACE", "GIT_PREFIX"),
    *("GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_SHALLOW_FILE"),
    *("GIT_LITERAL_PATHSPECS", "GIT_GLOB_PATHSPECS", "GIT_NOGLOB_PATHSPECS", "GIT_ICASE_PATHSPECS"),
)
PLAIN = ("env", *(word for name in CALLERS for word in ("-u", name)), "git")
SAFE = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
# Replace refs and grafts show other parents or contents under a commit's id. They are local to the clone: whoever else
# reads an id that we name sees the original, so we look at the original too.
ENVIRONMENT = {
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",  # an older git does not know the line above
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": os.devnull,
    "LC_ALL": "C",
}
UNREADABLE = "unable to read"
MAX_OUTPUT_BYTES = 64 * 1024 * 1024


class Head(Value):
    """Where a working tree stands."""

    root: str
    sha: str
    dirty: bool


class _Kept:
    """The beginning of what git says; the rest is counted and dropped, so that no answer fills the memory."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.content = bytearray()
        self.dropped = 0

    def write(self, piece: bytes) -> int:
        """Called by GitPython with what it has read."""
        kept = piece[: max(0, self.limit - len(self.content))]
        self.content += kept
        self.dropped += len(piece) - len(kept)
        return len(piece)


class Clone:
    """A clone on disk, or the clone that holds a folder."""

    def __init__(self, folder: Path, *, timeout_s: int = TIMEOUT_S, bare: bool = False) -> None:
        """``bare``: the folder itself is the repository, which git need not (and by ``safe.bareRepository`` may not)
        find out."""
        self.folder = folder
        self._timeout_s = timeout_s
        self._place = ("--bare",) if bare else ()
        self._git = git.Git(str(folder))
        self._git.update_environment(**ENVIRONMENT)

    def _ask(
        self,
        *words: str,
        ok: tuple[int, ...] = (0,),
        stdin: bytes | None = None,
        limit: int | None = None,
        env: dict[str, str] | None = None,
    ) -> tuple[int, bytes] | None:
        """Exit status and output of one git command; None when git failed, hung, said far too much or was not there.

        ``limit``: only so many bytes of the answer are wanted, and it may be cut there.
        """
        kept = _Kept(MAX_OUTPUT_BYTES if limit is None else limit)
        try:
            with nullcontext() if stdin is None else tempfile.TemporaryFile() as file:
                if file is not None and stdin is not None:
                    file.write(stdin)
                    file.seek(0)
                status, _, errors = self._git.execute(
                    [*PLAIN, *SAFE, *self._place, *words],
                    istream=file,
                    output_stream=cast(BinaryIO, kept),
                    with_extended_output=True,
                    with_exceptions=False,
                    stdout_as_string=False,
                    kill_after_timeout=self._timeout_s,
                    env=env,
                )
        except (GitError, OSError, ValueError):  # ValueError: a NUL among the words
            return None
        if UNREADABLE in errors:  # git grep goes on without the file
            return None
        if limit is None and kept.dropped:
            return None
        return (int(status), bytes(kept.content)) if int(status) in ok else None

    def output(
        self, *words: str, stdin: bytes | None = None, limit: int | None = None, ok: tuple[int, ...] = (0,)
    ) -> bytes | None:
        """What git says, its first ``limit`` bytes where there is one; None when it failed. For the questions of this
        folder's modules: words that change nothing."""
        found = self._ask(*words, ok=ok, stdin=stdin, limit=limit)
        return None if found is None else found[1]

    def child(self, *words: str) -> "subprocess.Popen[bytes]":
        """A git that answers many questions over its pipes; the caller bounds each answer and ends it. In a session of
        its own: Ctrl+C is the caller's to hear, and the end of its input ends it.

        Raises ``OSError`` when it cannot be started.
        """
        return subprocess.Popen(
            [*PLAIN, *SAFE, *self._place, *words],
            cwd=self.folder,
            env={**os.environ, **ENVIRONMENT},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

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

    def top(self) -> Self:
        """The same clone, asked from its top, where paths are the repository's own."""
        root = self.root()
        return self if root is None or root == self.folder else type(self)(root, timeout_s=self._timeout_s)

    def resolve(self, revision: str) -> str | None:
        """The commit's 40 digits; None when the clone has no such commit, or an abbreviation fits several."""
        found = self._text("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        return found if found and SHA.fullmatch(found) else None

    def resolve_id(self, digits: str) -> str | None:
        """The commit whose id begins with these digits, whatever branches are called; None where none or several do."""
        if SHA.fullmatch(digits):
            return self.resolve(digits)
        found = self.fitting(digits)
        return found[0] if len(found) == 1 else None

    def is_ancestor(self, older: str, newer: str) -> bool | None:
        """Whether ``newer`` contains ``older``; None when git cannot tell."""
        found = self._ask("merge-base", "--is-ancestor", older, newer, ok=(0, 1))
        return None if found is None else found[0] == 0

    def merge_base(self, one: str, other: str) -> str | None:
        """The best common ancestor; None for unrelated histories."""
        found = self._text("merge-base", one, other)
        return found if found and SHA.fullmatch(found) else None

    def fitting(self, digits: str) -> tuple[str, ...]:
        """The commits that an abbreviated id could mean."""
        if not ABBREVIATED.fullmatch(digits):
            return ()
        objects = (self._text("rev-parse", f"--disambiguate={digits}") or "").split()
        asked = "".join(f"{sha}\n" for sha in objects[:MAX_FITTING]).encode()
        kinds = self.output("cat-file", "--batch-check=%(objectname) %(objecttype)", stdin=asked) or b""
        described = (line.split() for line in kinds.decode(errors="replace").splitlines())
        return tuple(sha for sha, kind, *_ in described if kind == "commit")

    def is_shallow(self) -> bool:
        """Whether the history was cut off."""
        return self._text("rev-parse", "--is-shallow-repository") == "true"

    def tags(self) -> tuple[str, ...]:
        """Names of the tags."""
        return tuple((self._text("for-each-ref", "--format=%(refname:strip=2)", "refs/tags") or "").split())

    def cut_off(self) -> frozenset[str]:
        """The commits at which a shallow clone's history was cut: their parents are missing."""
        place = self._text("rev-parse", "--git-path", "shallow")
        try:
            with (self.folder / (place or "shallow")).open("rb") as file:
                return frozenset(file.read(MAX_OUTPUT_BYTES).decode("ascii", errors="replace").split())
        except OSError:
            return frozenset()

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
        # A look into a submodule would be by the submodule's own settings.
        words = ("status", "--porcelain", "--untracked-files=no", "--ignore-submodules=dirty")
        changes = self._ask(*words, env=self._without_filters())
        if root is None or sha is None or changes is None:
            return None
        return Head(root=str(root), sha=sha, dirty=bool(changes[1]))

    def _without_filters(self) -> dict[str, str]:
        """An environment in which git does not send files through the programs that this clone names: comparing a
        touched file would. The user's own (``git lfs install``) stay."""
        said = self._text("config", "-z", "--show-scope", "--name-only", "--get-regexp", FILTERS)
        words = (said or "").split("\0")
        named = [name for scope, name in zip(words[::2], words[1::2], strict=False) if scope in ("local", "worktree")]
        env = {"GIT_CONFIG_COUNT": str(len(named))}
        for number, name in enumerate(named):
            env[f"GIT_CONFIG_KEY_{number}"] = name
            env[f"GIT_CONFIG_VALUE_{number}"] = "false" if name.endswith(".required") else ""
        return env


def open_clone(folder: Path) -> Clone:
    """The clone at ``folder``; raises ``EnvironmentFault`` when there is none that git would read."""
    need_git(f"to look into {folder}")
    clone = Clone(folder, bare=_looks_bare(folder))
    if not folder.is_dir() or not clone.is_clone():
        raise EnvironmentFault(
            f"{folder} is no git clone that can be read",
            remedy=f"git -C {folder} status (git says why; a clone of another user needs safe.directory)",
        )
    return clone


def _looks_bare(folder: Path) -> bool:
    return not (folder / ".git").exists() and (folder / "HEAD").is_file() and (folder / "objects").is_dir()


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
