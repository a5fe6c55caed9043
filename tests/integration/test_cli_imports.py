"""What a plain command needs of the machine: no git for help or an existing interpreter, no torch or vllm ever."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.integration

PREPARE = "import sparkdiag.environment.prepare, sparkdiag.lab.history, sparkdiag.reproducing.session"


def run(code: str, **env: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=120, check=False
    )


def test_nothing_of_a_run_needs_git_to_be_imported() -> None:
    done = run(PREPARE, PATH="/nonexistent")
    assert done.returncode == 0, done.stderr


def test_the_clis_own_process_never_imports_torch_vllm_or_numba() -> None:
    done = run(f"{PREPARE}, sparkdiag.cli.app; import sys; print({{'torch', 'vllm', 'numba'}} & set(sys.modules))")
    assert done.stdout.strip() == "set()", done.stderr


def test_help_imports_nothing_heavy() -> None:
    done = run(
        "import sparkdiag.cli.app, sys; print({'httpx', 'git', 'pydantic', 'psutil', 'rich.live'} & set(sys.modules))"
    )
    assert done.stdout.strip() == "set()", done.stdout + done.stderr


def test_a_folder_that_is_no_clone_is_refused(tmp_path: object) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sparkdiag", "repro", "--repo", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 2
    assert "no git clone" in done.stderr
