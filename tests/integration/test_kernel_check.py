"""``sparkdiag kernel check`` in a real child with torch and Triton's interpreter: right kernels pass, wrong ones fail.

A child costs seconds, so each test looks at one answer from every side.
"""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from sparkdiag.cli.app import app
from tests.integration.kernel_clone_case import environment, fallbacks, kernel, make_clone

pytestmark = pytest.mark.integration

UNWRITTEN = """kept = torch.empty_like(out)
        kept[:-1], kept[-1, :-1] = out[:-1], out[-1, :-1]
        return kept"""
EARLY = "return fp8_mqa_logits(q, kv, weights, cu_seqlen_ks, cu_seqlen_ke - 1)"
SWAPPED = "return fp8_mqa_logits(q, kv, weights.flip(1), cu_seqlen_ks, cu_seqlen_ke)"
FAULTS = {
    "forgets": ("return out.masked_fill(out.isneginf(), 0.0)", "outside the window is not -inf"),
    "unwritten": (UNWRITTEN, "never written"),
    "early": (EARLY, "each is the last key of its window: it ends one early"),
    "nan": ("return out.index_fill(1, cu_seqlen_ks[:1].long(), float('nan'))", "inside the window is NaN"),
    "off": ("return out * 1.001", "max relative difference"),
    "heads": (SWAPPED, "max relative difference"),
    "doubles": ("weights.mul_(2)\n        return out", "it changes its input weights"),
    "far": ("out[:, 300:] *= 0.5\n        return out", "max relative difference"),
}
PAIRS = (("forgets", "unwritten"), ("early", "nan"), ("off", "heads"), ("doubles", "far"))
"""The first on calls of five rows, the other on all others."""


def wrong(one: str, other: str) -> str:
    return kernel("return out", f"if len(q) == 5:\n        {FAULTS[one][0]}\n    else:\n        {FAULTS[other][0]}")


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    revisions = {"right": (fallbacks(), kernel())}
    revisions["gated"] = (fallbacks("clean_logits and q[1] is None"), kernel())
    revisions["both"] = (fallbacks().replace("return fp8_mqa_logits_triton(", "fp8_mqa_logits_triton("), kernel())
    guarded = kernel("def fp8_mqa_logits_triton", "if triton:\n  def fp8_mqa_logits_triton")
    revisions["guarded"] = (fallbacks("q[0].is_cuda"), guarded)
    revisions |= {f"{one}-{other}": (fallbacks(), wrong(one, other)) for one, other in PAIRS}
    return make_clone(tmp_path_factory.mktemp("kernels") / "clone", revisions)


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["kernel", "check", "--device", "cpu", "--env", environment(), *words])


def test_the_own_pair_passes() -> None:
    done = run("--json")
    found = json.loads(done.stdout)
    assert done.exit_code == 0, done.output
    assert found["passed"]
    assert {call["subject"] for call in found["calls"]} == {"sparkdiag_fallback", "sparkdiag_triton"}
    assert all(call["difference"] is not None and call["difference"] < 1e-6 for call in found["calls"])


def test_a_right_revision_passes(clone: Path) -> None:
    done = run("--repo", str(clone), "--rev", "right")
    assert done.exit_code == 0, done.output
    assert "dispatch contract: ok" in done.stdout
    assert "fp8_mqa_logits_triton: ok" in done.stdout


def test_a_dispatch_that_asks_for_clean_logits_fails(clone: Path) -> None:
    done = run("--repo", str(clone), "--rev", "gated")
    assert done.exit_code == 1, done.output
    assert "clean_logits=False reaches _fp8_mqa_logits_torch" in done.stdout
    assert "fp8_mqa_logits_triton: ok" in done.stdout


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_wrong_kernels_fail_and_are_told_what(clone: Path, one: str, other: str) -> None:
    done = run("--repo", str(clone), "--rev", f"{one}-{other}")
    assert done.exit_code == 1, done.output
    assert "fp8_mqa_logits_triton: FAILED" in done.stdout
    lines = done.stdout.splitlines()
    assert any("[5 x 70 x 8]" in line and FAULTS[one][1] in line for line in lines)
    later = "[150 x 400 x 2]" if other == "far" else "[33 x 260 x 6]"
    assert any(later in line and FAULTS[other][1] in line for line in lines)
    assert "_fp8_mqa_logits_torch: ok" in done.stdout
    assert "failed: fp8_mqa_logits_triton" in done.stdout


def test_a_dispatch_that_throws_the_fast_answer_away_fails(clone: Path) -> None:
    done = run("--repo", str(clone), "--rev", "both")
    assert done.exit_code == 1, done.output
    assert "clean_logits=True reaches fp8_mqa_logits_triton, then _fp8_mqa_logits_torch" in done.stdout


def test_a_dispatch_that_asks_for_the_device_is_not_called_wrong_on_the_cpu(clone: Path) -> None:
    """Its kernel is defined under a condition, as some revisions do it."""
    done = run("--repo", str(clone), "--rev", "guarded")
    assert done.exit_code == 3, done.output
    assert "dispatch contract: cannot be told, on the CPU both reach _fp8_mqa_logits_torch" in done.stdout
    assert "up to 150 rows and 400 keys" in done.stdout and "not checked: the dispatch contract" in done.stdout


def test_a_tolerance_of_nothing_is_one_and_none_is_refused() -> None:
    done = run("--tolerance", "0", "--json")
    assert done.exit_code == 1, done.output
    assert {call["tolerance"] for call in json.loads(done.stdout)["calls"]} == {0}
    assert run("--tolerance", "inf").exit_code == run("--tolerance", "nan").exit_code == 2
