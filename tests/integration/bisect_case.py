"""A small history whose commits are modes of the fake vLLM tree: for whole bisections with real processes."""

import hashlib
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sparkdiag.bisecting.axes.axis import Axis
from sparkdiag.bisecting.question.request import BisectRequest
from sparkdiag.bisecting.search.history import History
from sparkdiag.environment.model import Environment
from sparkdiag.evidence.bisection import Commit
from sparkdiag.evidence.run import FileProof
from sparkdiag.recording.bisection import BisectionFolder
from sparkdiag.reproducing import session
from sparkdiag.reproducing.request import ReproRequest
from sparkdiag.scenario.model import WatchedFunction
from tests.integration.serving_case import FAKES
from tests.integration.test_reproducing_session import scenario

WATCHED = FAKES / "site" / "vllm" / "utils" / "deep_gemm.py"
UNPROVED = "unproved"
"""A mode: healthy, but the environment expects another file than the server imports."""


def environment_of(mode: str, *, sha: str, **env: str) -> Environment:
    proof = "0" * 64 if mode == UNPROVED else hashlib.sha256(WATCHED.read_bytes()).hexdigest()
    return Environment(
        spec="existing:fake",
        kind="existing",
        key="fake",
        python=sys.executable,
        serve_prefix=(sys.executable, str(FAKES / "fake_vllm.py")),
        pythonpath=(str(FAKES / "site"),),
        env={"FAKE_VLLM_MODE": "healthy" if mode == UNPROVED else mode, **env},
        vllm_version="0.0.1+fake",
        package_path=str(FAKES / "site" / "vllm"),
        model_path="fake",
        asked_revision=sha,
        revision_sha=sha,
        expected_files=(FileProof(module="vllm.utils.deep_gemm", path=str(WATCHED), sha256=proof),),
    )


def serve_modes(
    monkeypatch: pytest.MonkeyPatch, modes: Mapping[str, str], *, heard: Callable[[str], None] = lambda _sha: None
) -> None:
    """From here on the environment of a revision is the fake tree in that revision's mode."""

    def prepare(_spec: object, *, revision: str, **_more: Any) -> Environment:
        heard(revision)
        return environment_of(modes[revision], sha=revision)

    monkeypatch.setattr(session, "prepare", prepare)


def bisect_request(folder: Path, modes: Mapping[str, str], **changes: Any) -> BisectRequest:
    """A straight history of ``modes``, oldest first."""
    shas = list(modes)
    commits = [
        Commit(sha=sha, parents=tuple(shas[place - 1 : place]), subject=f"Make it {modes[sha]}")
        for place, sha in enumerate(shas)
    ]
    watch = (WatchedFunction(function="sparse_attn_indexer", modules=("vllm.utils.deep_gemm",)),)
    repro = ReproRequest(
        scenario=scenario().model_copy(update={"watch": watch}),
        env_spec=f"existing:{sys.executable}",
        runs_dir=str(folder),
        command=("sparkdiag", "bisect"),
    )
    axis = Axis(kind="commits", history=History.of(commits), old=shas[0], new=shas[-1], lab=True)
    return BisectRequest(repro=repro, axis=axis, reuse=False, **changes)


def bisection_folder(folder: Path) -> BisectionFolder:
    return BisectionFolder.create(folder, scenario_name="fake", dcp=2, now=datetime.now(UTC))
