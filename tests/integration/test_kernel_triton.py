"""sparkdiag's Triton kernel in Triton's interpreter, over random shapes and windows."""

import json
import secrets
import subprocess
from pathlib import Path

import pytest

from sparkdiag.kernels.inside import __file__ as inside
from tests.integration.executing_case import torch_python

pytestmark = pytest.mark.integration


def test_every_random_call_matches_float64() -> None:
    seed = secrets.randbelow(2**31)
    child, main = Path(__file__).with_name("kernel_triton_child.py"), Path(inside).with_name("main.py")
    done = subprocess.run(
        [torch_python(), "-E", "-s", child, main, str(seed)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    calls = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(calls) == 12
    assert [call for call in calls if call["problems"]] == [], f"seed {seed}"
    assert any(call["difference"] for call in calls)
