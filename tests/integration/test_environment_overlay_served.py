"""A whole reproduction over an overlay of the fake tree: what the server told of itself proves the revision."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.fake_environment import FAKES, fake_variables, make_fake_environment, repro_arguments
from tests.integration.overlay_case import commit, git

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

FALLBACK = "vllm/utils/deep_gemm.py"
VERSION = "0.0.1+fake"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The fake's own tree as the base, and a commit that changes the fallback."""
    repo = tmp_path / "clone"
    shutil.copytree(FAKES / "site" / "vllm", repo / "vllm", ignore=shutil.ignore_patterns("__pycache__"))
    git(repo, "init", "-q", "-b", "main")
    commit(repo, {".gitignore": "__pycache__\n", "vllm/py.typed": ""})
    git(repo, "add", "--all")
    git(repo, "commit", "-q", "--amend", "-m", "base")
    git(repo, "tag", "v0.0.1")
    commit(repo, {FALLBACK: (repo / FALLBACK).read_text() + "\nREVISION = 'changed'\n"})
    return repo


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """The fake installed under vLLM's name, with a file that only a build makes."""
    environment = make_fake_environment(tmp_path)
    (packages,) = environment.glob("lib/python*/site-packages")
    (packages / "beside.pth").write_text(f"{tmp_path / 'fakes'}\n")
    info = packages / f"vllm-{VERSION}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {VERSION}\n")
    (info / "top_level.txt").write_text("vllm\n")
    (tmp_path / "fakes" / "site" / "vllm" / "_C.abi3.so").write_bytes(b"\x7fELF")
    return environment


def test_the_server_imports_the_overlay_and_that_is_proved(tmp_path: Path, clone: Path, base: Path) -> None:
    _repro, *words = repro_arguments(base)
    words[words.index("--env") + 1] = f"overlay:main@existing:{base}"
    words += ["--repo", str(clone), "--out", str(tmp_path / "runs"), "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "sparkdiag", "repro", *words],
        check=False,
        capture_output=True,
        text=True,
        timeout=200,
        env=fake_variables(tmp_path, ""),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    sha = git(clone, "rev-parse", "main")
    assert document["verdict"]["outcome"] == "completed" and document["needle"] == "retrieved"
    assert document["revision"]["sha"] == sha and document["revision"]["proved"]
    run = Path(document["run_dir"])
    record = json.loads((run / "run.json").read_text())
    assert f"overlay-{sha[:10]}-" in record["revision"]["import_path"]
    assert "vllm.utils.deep_gemm" in record["revision"]["because"]
    assert record["environment"]["kind"] == "overlay" and sha[:10] in run.name
    (package,) = (tmp_path / "cache").glob("sparkdiag/envs/overlay-*/overlay-*/tree/vllm")
    assert (package / "_C.abi3.so").resolve() == tmp_path / "fakes" / "site" / "vllm" / "_C.abi3.so"
