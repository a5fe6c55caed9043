"""A clone of vLLM's Python tree with a few commits on top, made from an installed package: nothing of vLLM is kept."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

GENERATED = ("*.so", "_version.py", "__pycache__", "*.pyc")
RUNNER = "vllm/v1/worker/gpu_model_runner.py"
WORKER = "vllm/v1/worker/gpu_worker.py"
MARK = "_forward_through_overlay"
"""A function that the commit ``frame`` puts between model runner and model: a prefill is then seen inside it."""
CALL = "        return self.model(\n"
TIMEOUT_S = 120


class OverlayHistory(NamedTuple):
    """The clone, and its commits after the base, which is tagged ``v<version>``: each has a tag of its name."""

    repo: Path
    adjacent: tuple[str, ...]
    """Commits that differ in one module."""
    docs: str
    frame: str
    broken: str
    """The server's import fails."""


def make_history(package: Path, repo: Path, *, version: str, adjacent: int = 0) -> OverlayHistory:
    """Build it. ``package``: the folder of an installed vllm. Raises ``CalledProcessError`` and ``OSError``."""
    repo.mkdir(parents=True)
    shutil.copytree(package, repo / "vllm", ignore=shutil.ignore_patterns(*GENERATED))
    git(repo, "init", "-q", "-b", "main")
    commit(repo, "vLLM as installed")
    git(repo, "tag", f"v{version}")
    neighbours = []
    for number in range(adjacent):
        with (repo / WORKER).open("a") as file:
            file.write(f"\nADJACENT_{number} = {number}\n")
        neighbours.append(commit(repo, f"Change one module ({number})"))
    (repo / "docs").mkdir()
    (repo / "docs" / "page.md").write_text("A page.\n")
    docs = commit(repo, "Write a page", tag="docs")
    (repo / RUNNER).write_text(with_mark((repo / RUNNER).read_text()))
    frame = commit(repo, "Call the model through a function of its own", tag="frame")
    worker = (repo / WORKER).read_text()
    (repo / WORKER).write_text(f"import vllm.there_is_no_such_module  # noqa\n{worker}")
    broken = commit(repo, "Import a module that is not there", tag="broken")
    return OverlayHistory(repo=repo, adjacent=tuple(neighbours), docs=docs, frame=frame, broken=broken)


def with_mark(source: str) -> str:
    """Put ``MARK`` into the path that every forward call takes. Raises ``ValueError`` where this vLLM has it not."""
    head, found, body = source.partition("    def _model_forward(")
    if not found or CALL not in body:
        raise ValueError("this vLLM's model runner has no _model_forward that returns self.model(...)")
    method = f"    def {MARK}(self, **arguments):\n        return self.model(**arguments)\n\n"
    return head + method + found + body.replace(CALL, f"        return self.{MARK}(\n", 1)


def commit(repo: Path, message: str, *, tag: str | None = None) -> str:
    """Commit everything; the commit's id."""
    git(repo, "add", "--all")
    git(repo, "commit", "-q", "-m", message)
    if tag:
        git(repo, "tag", tag)
    return git(repo, "rev-parse", "HEAD")


def git(repo: Path, *words: str) -> str:
    """Plain git without anybody's configuration."""
    identity = ("-c", "user.name=sparkdiag", "-c", "user.email=sparkdiag@example.invalid", "-c", "gc.auto=0")
    env = {"PATH": os.environ["PATH"], "HOME": str(repo), "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        ["git", *identity, *words], cwd=repo, env=env, check=True, capture_output=True, text=True, timeout=TIMEOUT_S
    )
    return done.stdout.strip()
