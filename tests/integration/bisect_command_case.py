"""``sparkdiag bisect`` as a child process over a clone of the fake vLLM tree, whose commits say how it behaves."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.integration.bad_case import FAKES, SCENARIO, BadCase

WATCHED = """
[[watch]]
function = "sparse_attn_indexer"
modules = ["vllm.utils.deep_gemm"]
[suspect]
paths = ["vllm/utils/deep_gemm.py", "vllm/fake_mode.txt"]
"""
QUICK = SCENARIO.replace("tokens = 16384", "tokens = 8192").replace("timeout_s = 90", "timeout_s = 60")
AUTHOR = {f"GIT_{who}_{what}": "a@a" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


class Planned(NamedTuple):
    """One commit of the fake history, on top of the one before it."""

    subject: str
    mode: str | None = None
    """Flags of the fake tree from here on; None: as before."""


class BisectCommandCase(BadCase):
    """A base environment, a clone, and how to search it."""

    def __init__(self, folder: Path, history: Sequence[Planned]) -> None:
        super().__init__(folder, mode="")
        self.scenario.write_text(QUICK.format(server="") + WATCHED, encoding="utf-8")
        self.clone = folder / "clone"
        self.shas = self._commit_all(history)

    def git(self, *words: str) -> str:
        env = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "GIT_CONFIG_GLOBAL": os.devnull, **AUTHOR}
        done = subprocess.run(
            ["git", "-C", str(self.clone), *words], env=env, capture_output=True, text=True, check=True, timeout=60
        )
        return done.stdout.strip()

    def _commit_all(self, history: Sequence[Planned]) -> list[str]:
        shutil.copytree(FAKES / "site", self.clone, ignore=shutil.ignore_patterns("__pycache__"))
        self.git("init", "--quiet", "--initial-branch=main")
        shas = []
        for place, planned in enumerate(history):
            (self.clone / "CHANGES").write_text(f"{place}\n", encoding="utf-8")
            if planned.mode is not None:
                (self.clone / "vllm" / "fake_mode.txt").write_text(planned.mode + "\n", encoding="utf-8")
            self.git("add", "--all")
            self.git("commit", "--quiet", "--message", planned.subject)
            shas.append(self.git("rev-parse", "HEAD"))
        return shas

    def bisect_arguments(self, *more: str) -> tuple[str, ...]:
        """Of a search from the first commit to the last."""
        if not (self.folder / "venv").exists():
            (metadata,) = self.venv().glob("lib/*/site-packages/vllm-*.dist-info/METADATA")
            said = metadata.read_text(encoding="utf-8").replace("Version: 0.0.1", "Version: 0.0.1+fake")
            metadata.write_text(said, encoding="utf-8")
        run = ("--scenario", str(self.scenario), "--env", f"existing:{self.folder / 'venv'}", "--out", str(self.runs))
        ends = ("--repo", str(self.clone), "--good", self.shas[0], "--bad", self.shas[-1])
        return ("bisect", *run, *ends, *more)

    def bisection(self) -> Path:
        """The only one there is."""
        (journal,) = self.runs.glob("*/journal.jsonl")
        return journal.parent
