"""Tests of the lab's source, run by a Python that has torch and numba (README, "Tests"); not collected by default."""

import sys
from pathlib import Path

import pytest

TREE = Path(__file__).parents[2] / "sparkdiag" / "lab" / "source" / "tree"
sys.path.insert(0, str(TREE))


@pytest.fixture(autouse=True)
def _poisoned_outputs(monkeypatch):
    """Memory handed out uninitialised is NaN: an output that a kernel forgets to write can never pass."""
    import torch

    stock = torch.empty

    def poisoned(*args, **kwargs):
        made = stock(*args, **kwargs)
        return made.fill_(float("nan")) if made.is_floating_point() else made.fill_(-(2**31) + 1)

    monkeypatch.setattr(torch, "empty", poisoned)
