"""The embedded lab's source at one revision, exported into the cache."""

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from sparkdiag.environment.build import one_at_a_time
from sparkdiag.environment.cache import make_root, writing
from sparkdiag.environment.clone import Clone
from sparkdiag.environment.expected import file_sha256, from_git
from sparkdiag.evidence.base import Value
from sparkdiag.evidence.run import FileProof

MODEL_FOLDER = "model"


class LabHistory(Protocol):
    """What the lab offers (``sparkdiag.lab.history``); tests put their own in its place."""

    def ensure_lab_repo(self, folder: Path) -> Path:
        """Build the lab's clone in ``folder`` where it is not there yet."""

    def resolve(self, repo: Path, rev: str | None) -> str:
        """The commit's 40 digits."""

    def export(self, repo: Path, sha: str, dest: Path) -> Path:
        """Write the tree of ``sha`` into ``dest``."""


class LabTree(Value):
    """An exported tree."""

    path: str
    repo: str
    sha: str
    files: tuple[FileProof, ...]
    """The watched modules as committed."""

    @property
    def model_path(self) -> str:
        return str(Path(self.path) / MODEL_FOLDER)


def lab_repo(history: LabHistory, *, root: Path, say: Callable[[str], None] = lambda _text: None) -> Path:
    """The lab's (bare) clone in the cache under ``root``."""
    make_root(root)
    lab = root / "lab"
    with writing(root):
        lab.mkdir(exist_ok=True)
    with writing(root), one_at_a_time(lab / "lab.lock", what="the lab's source", say=say):
        return history.ensure_lab_repo(lab / "repo")


def lab_tree(
    history: LabHistory, *, revision: str | None, modules: tuple[str, ...], root: Path, say: Callable[[str], None]
) -> LabTree:
    """The tree of ``revision`` (None: the lab's default), exported where the cache has it not or not as committed."""
    repo = lab_repo(history, root=root, say=say)
    lab = root / "lab"
    with writing(root), one_at_a_time(lab / "lab.lock", what="the lab's source", say=say):
        sha = history.resolve(repo, revision)
        tree = lab / sha
        files = from_git(Clone(repo), sha, modules=modules, root=tree)
        if tree.exists() and any(file_sha256(Path(file.path)) != file.sha256 for file in files):
            say(f"the exported lab source {sha[:10]} was changed on disk; exporting it again")
            shutil.rmtree(tree)
        if not tree.exists():
            _export(history, repo=repo, sha=sha, tree=tree)
    return LabTree(path=str(tree), repo=str(repo), sha=sha, files=files)


def _export(history: LabHistory, *, repo: Path, sha: str, tree: Path) -> None:
    """Export beside and rename, so that a tree that exists is whole."""
    with tempfile.TemporaryDirectory(prefix=f"{sha[:10]}-", dir=tree.parent) as beside:
        written = history.export(repo, sha, Path(beside) / "tree")
        written.rename(tree)
