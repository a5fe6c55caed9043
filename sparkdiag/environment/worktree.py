"""A git worktree of a commit of somebody else's clone, without a byte of that clone being changed.

The worktree belongs to a small repository of sparkdiag's own that borrows the clone's objects (git-clone(1),
"alternates"). So the clone's index, branches and list of worktrees stay as they are, it may be read-only or bare, and
neither its configuration (hooks, filters, fsmonitor, submodule commands) nor the user's takes part: every attribute
that would run a program or change a byte on the way to the disk is switched off in the repository's
``info/attributes``, which is stronger than any file of the tree (gitattributes(5)).
"""

import os
from itertools import chain
from pathlib import Path

from git import Git
from git.exc import GitError

from sparkdiag.environment.clone import Clone
from sparkdiag.errors import EnvironmentFault
from sparkdiag.evidence.base import Value
from sparkdiag.harmless.printable import printable

TIMEOUT_S = 300
AS_COMMITTED = "* -text -ident -filter !eol !working-tree-encoding\n"
OWN_CONFIG = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.autocrlf=false")
ISOLATED = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TEMPLATE_DIR": "",
    "GIT_DEFAULT_HASH": "sha1",
    "GIT_DEFAULT_REF_FORMAT": "files",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
LAST_LINES = 5


class Worktree(Value):
    """Where it lies: the tree, and the repository it belongs to, both in one folder that is all there is to delete."""

    folder: str

    @property
    def tree(self) -> Path:
        return Path(self.folder) / "tree"

    @property
    def repository(self) -> Path:
        return Path(self.folder) / "repository.git"


def add_worktree(worktree: Worktree, *, clone: Clone, sha: str, package: str) -> None:
    """Check ``package`` of commit ``sha`` out into a folder that does not exist yet.

    Raises ``EnvironmentFault`` with git's own words, and ``OSError``.
    """
    Path(worktree.folder).mkdir()
    repository = worktree.repository
    run = _Isolated(Path(worktree.folder), clone=clone)
    run("init", "--quiet", "--bare", str(repository))
    (repository / "objects" / "info").mkdir(exist_ok=True)
    (repository / "objects" / "info" / "alternates").write_text(f"{_quoted(objects_of(clone))}\n", encoding="utf-8")
    (repository / "info").mkdir(exist_ok=True)
    (repository / "info" / "attributes").write_text(AS_COMMITTED)
    exclude(worktree, ())
    at = ("--git-dir", str(repository))
    run(*at, "worktree", "add", "--quiet", "--detach", "--no-checkout", str(worktree.tree), sha)
    run("-C", str(worktree.tree), "sparse-checkout", "set", "--no-cone", f"/{package}/")
    run("-C", str(worktree.tree), "read-tree", "-m", "-u", "HEAD")


def objects_of(clone: Clone) -> Path:
    """The folder of the clone's objects, shared by all its worktrees. Raises ``EnvironmentFault``."""
    found = clone.output("rev-parse", "--git-path", "objects")
    path = os.fsdecode(found.removesuffix(b"\n")) if found else ""
    if not path:
        raise EnvironmentFault(f"git cannot tell where {clone.folder} keeps its objects", remedy="git status there")
    return (clone.folder / path).resolve()


def exclude(worktree: Worktree, paths: tuple[str, ...]) -> None:
    """Let git overlook bytecode, and ``paths`` that were put into the tree."""
    lines = ("__pycache__/", *(f"/{_escaped(path)}" for path in paths))
    text = "".join(f"{line}\n" for line in lines)
    (worktree.repository / "info" / "exclude").write_text(text, encoding="utf-8", errors="surrogateescape")


def changes(worktree: Worktree, *, clone: Clone) -> tuple[str, ...]:
    """Paths that are no longer as committed, or that somebody added. Raises ``EnvironmentFault`` when git fails."""
    run = _Isolated(Path(worktree.folder), clone=clone)
    found = run("-C", str(worktree.tree), "status", "--porcelain", "--untracked-files=all", "--ignore-submodules=all")
    return tuple(line[3:] for line in found.splitlines())


class _Isolated:
    """Runs git on the repository alone: nothing of the user's configuration, nothing of a caller's variables."""

    def __init__(self, folder: Path, *, clone: Clone) -> None:
        self._folder, self._clone = folder, clone
        self._git = Git(str(folder))
        theirs = chain.from_iterable(("-u", name) for name in os.environ if name.startswith("GIT_"))
        ours = {**ISOLATED, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
        self._prefix = ("env", *theirs, *(f"{name}={value}" for name, value in ours.items()), "git", *OWN_CONFIG)

    def __call__(self, *words: str) -> str:
        try:
            status, output, problem = self._git.execute(
                [*self._prefix, *words],
                with_extended_output=True,
                with_exceptions=False,
                kill_after_timeout=TIMEOUT_S,
            )
        except (GitError, OSError) as error:
            raise EnvironmentFault(f"git could not be run: {type(error).__name__}", remedy="git --version") from error
        if status:
            raise self._failed(words, str(problem))
        return str(output)

    def _failed(self, words: tuple[str, ...], problem: str) -> EnvironmentFault:
        command = next(word for word in words if word in ("init", "worktree", "sparse-checkout", "read-tree", "status"))
        remedy = f"git -C {self._clone.folder} fsck"
        if self._clone.is_partial():
            remedy = f"git -C {self._clone.folder} fetch --refetch --no-filter (this clone left objects at its remote)"
        lines = [printable(line, limit=300) for line in problem.splitlines() if line.strip()]
        return EnvironmentFault(
            f"git {command} failed on a copy of {self._clone.folder}", remedy=remedy, details=tuple(lines[-LAST_LINES:])
        )


def _quoted(path: Path) -> str:
    """A line of ``objects/info/alternates``: a name with unusual characters stands in C's quotes
    (https://git-scm.com/docs/gitrepository-layout)."""
    text = str(path)
    if text.isprintable() and '"' not in text and not text.startswith("#"):
        return text
    return '"' + "".join(_in_c(byte) for byte in os.fsencode(text)) + '"'


def _in_c(byte: int) -> str:
    return chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:03o}"


def _escaped(path: str) -> str:
    """A path as a pattern that means itself (gitignore(5))."""
    return "".join(f"\\{letter}" if letter in "\\*?[ " else letter for letter in path)
