"""The real ``sparkdiag doctor`` in a child, in folders of its own; what it said, and who it left behind."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

SOURCE = Path(__file__).parents[2]
LIMIT_S = 120
WITHOUT_CAPABILITIES = ("setpriv", "--inh-caps=-all", "--bounding-set=-all")
"""Root without them is a user like any other that owns root's files."""
NOBODY = (*WITHOUT_CAPABILITIES, "--reuid=65534", "--regid=65534", "--clear-groups")


class Told(NamedTuple):
    """What one run said."""

    code: int
    document: dict[str, Any]
    stderr: str

    def named(self, name: str) -> list[dict[str, Any]]:
        return [finding for finding in self.document["findings"] if finding["name"] == name]

    def one(self, name: str) -> dict[str, Any]:
        (found,) = self.named(name)
        return found

    @property
    def bad(self) -> dict[str, str]:
        """What is not well, less what this machine's kernel or other programs on it may be the cause of."""
        others = ("autogroup", "cores", "machine-lock", "leftovers")
        return {
            finding["name"]: finding["status"]
            for finding in self.document["findings"]
            if finding["status"] != "ok" and finding["name"] not in others
        }


class Doctor:
    """Runs it below ``folder``, which anybody may write to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for part in (*folder.parents[:3], folder):
            if os.access(part, os.W_OK) and part.stat().st_uid == os.getuid():
                part.chmod(part.stat().st_mode | 0o055)
        self.cache, self.runs, self.temporary = folder / "cache", folder / "runs", folder / "t"
        for made in (self.cache, self.temporary):
            made.mkdir()
            made.chmod(0o777)
        folder.chmod(0o777)
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "XDG_CACHE_HOME": str(self.cache),
            "SPARKDIAG_CACHE": str(self.cache / "sparkdiag"),
            "SPARKDIAG_CONFIG": str(folder / "no-config.toml"),
            "TMPDIR": str(self.temporary),
            "PYTHONPATH": str(SOURCE),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONWARNINGS": "error",
            "COLUMNS": "80",
        }

    def argv(self, *arguments: str, before: Sequence[str] = (), patch: str = "") -> list[str]:
        """``patch``: Python run in the child before the command, to break something there."""
        code = f"{patch}\nfrom sparkdiag.cli.app import main\nmain()"
        return [*before, sys.executable, "-c", code, "doctor", "--out", str(self.runs), *arguments]

    def run(self, *arguments: str, before: Sequence[str] = (), patch: str = "", **env: str) -> Told:
        done = self.text("--json", *arguments, before=before, patch=patch, **env)
        assert "Traceback" not in done.stderr, done.stderr
        return Told(done.returncode, json.loads(done.stdout), done.stderr)

    def text(
        self, *arguments: str, before: Sequence[str] = (), patch: str = "", **env: str
    ) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            self.argv(*arguments, before=before, patch=patch),
            cwd=self.folder, env=self.env | env, capture_output=True, text=True, timeout=LIMIT_S, check=False,
        )  # fmt: skip


def unprivileged(*, nobody: bool = False) -> tuple[str, ...]:
    """argv that drops all capabilities (and the user too); nothing where there are none; skips where it cannot be."""
    if os.getuid() != 0 and not nobody:
        return ()
    if os.getuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("needs root and setpriv to drop privileges")
    before = NOBODY if nobody else WITHOUT_CAPABILITIES
    start = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import pydantic'], check=True)"
    probe = subprocess.run(
        [*before, sys.executable, "-c", start], capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    if probe.returncode != 0:
        pytest.skip(f"that user cannot run this interpreter: {probe.stderr.strip()[-200:]}")
    return before


def fake_environment(folder: Path, *, source: str = "def _fp8_mqa_logits_torch(q):\n    pass\n") -> Path:
    """A virtual environment whose metadata say vLLM 0.26.0 and torch 2.11.0 for CUDA."""
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", "--symlinks", str(folder)], check=True, timeout=LIMIT_S
    )
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "vllm" / "utils").mkdir(parents=True)
    (site / "vllm" / "__init__.py").write_text("raise RuntimeError('must not be imported')")
    (site / "vllm" / "utils" / "deep_gemm.py").write_text(source)
    for name, version in (("vllm", "0.26.0"), ("torch", "2.11.0")):
        info = site / f"{name}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (info / "RECORD").write_text(f"{name}/__init__.py,,\n")
    return folder
