"""The lab's own tests (kernels against float64, retrieval against mutants), run where torch and numba are."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from uv import find_uv_bin

from sparkdiag.environment.progress import SilentProgress
from sparkdiag.environment.published import build_base
from sparkdiag.environment.spec import LabSpec

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1500)]

TESTS = Path(__file__).resolve().parents[1] / "lab"


def test_the_labs_own_tests_pass_in_its_environment(tmp_path: Path) -> None:
    built = build_base(LabSpec(), progress=SilentProgress())
    assert built is not None
    runner = tmp_path / "runner"
    install = [find_uv_bin(), "pip", "install", "-q", "--target", str(runner), "--python", built.python]
    subprocess.run([*install, "pytest", "hypothesis", "pytest-timeout"], check=True, timeout=300)
    done = subprocess.run(
        [
            built.python,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "--rootdir",
            str(TESTS),
            "-c",
            os.devnull,
            str(TESTS),
        ],
        env={
            **os.environ,
            "PYTHONPATH": str(runner),
            "NUMBA_CACHE_DIR": str(tmp_path / "numba"),
            "OMP_NUM_THREADS": "1",
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    sys.stdout.write(done.stdout[-4000:])
    assert done.returncode == 0, done.stderr[-3000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None and int(passed[1]) >= 10
