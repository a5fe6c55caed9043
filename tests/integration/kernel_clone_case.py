"""A revision with the incident's two kernels and their dispatch, made of sparkdiag's own at test time."""

from pathlib import Path

from sparkdiag.kernels.inside import __file__ as inside
from tests.integration.executing_case import torch_python
from tests.integration.overlay_case import commit, git

INSIDE = Path(inside).parent
FOLDER = "vllm/v1/attention/ops/deepseek_v4_ops"
DISPATCH = """

def _fp8_mqa_logits_torch(q, kv, weights, cu_seqlen_ks, cu_seqlen_ke, clean_logits):
    return fp8_mqa_logits_fallback(q[0], kv, weights, cu_seqlen_ks, cu_seqlen_ke, clean_logits)


def _fp8_mqa_logits_sm12x(q, kv, weights, cu_seqlen_ks, cu_seqlen_ke, clean_logits):
    if GATE:
        from vllm.v1.attention.ops.deepseek_v4_ops.sm12x_mqa import fp8_mqa_logits_triton

        return fp8_mqa_logits_triton(q[0], kv, weights, cu_seqlen_ks, cu_seqlen_ke)
    return _fp8_mqa_logits_torch(q, kv, weights, cu_seqlen_ks, cu_seqlen_ke, clean_logits)
"""
TRITON = """

def fp8_mqa_logits_triton(q, kv, weights, cu_seqlen_ks, cu_seqlen_ke):
    out = fp8_mqa_logits(q, kv, weights, cu_seqlen_ks, cu_seqlen_ke)
    return out
"""


def fallbacks(gate: str = "q[1] is None") -> str:
    """The fallback and the dispatch; ``gate`` decides whether the Triton kernel is called."""
    return (INSIDE / "fallback.py").read_text() + DISPATCH.replace("GATE", gate)


def kernel(old: str = "", new: str = "") -> str:
    """The Triton kernel, with one line of its wrapper replaced."""
    assert old in TRITON
    return (INSIDE / "mqa_triton.py").read_text() + (TRITON.replace(old, new) if old else TRITON)


def make_clone(path: Path, revisions: dict[str, tuple[str, str]]) -> Path:
    """A git clone with a tag for each: fallbacks, kernel."""
    path.mkdir(parents=True)
    git(path, "init", "-q", "-b", "main")
    for tag, (torch_text, triton_text) in revisions.items():
        commit(
            path,
            {f"{FOLDER}/sm12x_deep_gemm_fallbacks.py": torch_text, f"{FOLDER}/sm12x_mqa.py": triton_text, "tag": tag},
        )
        git(path, "tag", tag)
    return path


def environment() -> str:
    """``--env`` of an environment with torch and Triton; skips where there is none."""
    return f"existing:{torch_python()}"
