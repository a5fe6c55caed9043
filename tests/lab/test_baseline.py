"""The baseline timer: what it says, and that it stays light."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from sparklab import baseline

TREE = Path(baseline.__file__).parents[1]


@pytest.mark.parametrize("dcp", [1, 2])
def test_one_line_of_json(dcp):
    asked = ["--prompt-tokens", "2000", "--chunk-tokens", "256", "--dcp", str(dcp), "--timed-chunks", "3"]
    answer = subprocess.run(
        [sys.executable, "-m", "sparklab.baseline", *asked], cwd=TREE, capture_output=True, text=True, check=True
    )
    document = json.loads(answer.stdout)
    assert answer.stdout.count("\n") == 1
    assert document["seconds"] > 0
    assert (document["layers"], document["chunks"], document["timed_chunks"]) == (3, 8, 3)
    assert f"DCP {dcp}" in document["how"]
    assert "interpolated" in document["how"]


def test_it_imports_neither_vllm_nor_torch():
    program = "import sys, sparklab.baseline; print(sorted({'torch', 'vllm'} & set(sys.modules)))"
    answer = subprocess.run([sys.executable, "-c", program], cwd=TREE, capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


def test_the_rest_is_interpolated():
    assert baseline.whole_prefill(1024, 256, {0: 1.0, 768: 4.0}) == pytest.approx(1 + 2 + 3 + 4)
    assert baseline.whole_prefill(100, 256, {0: 1.5}) == pytest.approx(1.5)
