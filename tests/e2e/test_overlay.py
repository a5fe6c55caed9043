"""A real server over an overlay of its own vLLM: the changed function is seen in the stacks, a broken one is told."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.overlay_history import MARK, OverlayHistory, make_history
from sparkdiag.environment.progress import SilentProgress
from sparkdiag.environment.published import build_base
from sparkdiag.environment.spec import LAB_RELEASE, LabSpec

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

LIMIT_S = 420


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> OverlayHistory:
    built = build_base(LabSpec(), progress=SilentProgress())
    assert built is not None
    clone = tmp_path_factory.mktemp("overlay") / "vllm"
    return make_history(Path(built.package_path), clone, version=LAB_RELEASE)


def repro(history: OverlayHistory, revision: str, *, runs: Path) -> "subprocess.CompletedProcess[str]":
    words = ["--env", f"overlay:{revision}@release:{LAB_RELEASE}", "--repo", str(history.repo), "--scenario", "lab"]
    words += ["--dcp", "1", "--out", str(runs), "--json"]
    return subprocess.run(
        [sys.executable, "-m", "sparkdiag", "repro", *words],
        check=False,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        env={**os.environ, "NO_COLOR": "1"},
    )


def test_the_server_runs_the_revision_and_finds_the_needle(history: OverlayHistory, tmp_path: Path) -> None:
    done = repro(history, "frame", runs=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    document = json.loads(done.stdout)
    assert document["needle"] == "retrieved" and document["revision"]["proved"]
    run = Path(document["run_dir"])
    proof = json.loads((run / "run.json").read_text())["revision"]
    assert f"overlay-{history.frame[:10]}-" in proof["import_path"] and history.frame in proof["because"]
    assert "vllm.v1.worker.gpu_model_runner" in proof["because"]
    assert MARK in (run / "stacks.jsonl").read_text()


def test_a_revision_that_cannot_be_imported_is_a_server_that_never_came_up(
    history: OverlayHistory, tmp_path: Path
) -> None:
    done = repro(history, "broken", runs=tmp_path)
    assert done.returncode == 5, done.stderr[-3000:]
    assert "there_is_no_such_module" in done.stderr + done.stdout
