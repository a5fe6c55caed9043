"""A small clone with the incident's dispatch, written for these tests: each commit another shape of it."""

from pathlib import Path

from tests.integration.overlay_case import commit, git

ENTRY = "vllm/model_executor/layers/sparse_attn_indexer.py"
DISPATCH = "vllm/utils/deep_gemm.py"
BEFORE = """
import torch
from vllm.utils.deep_gemm import fp8_fp4_mqa_logits


def sparse_attn_indexer(q_quant, weights, topk_tokens):
    q = (q_quant, None)
    return fp8_fp4_mqa_logits(q, weights, clean_logits=False)
"""
FUSED = """
import torch
from vllm.utils.deep_gemm import fp8_fp4_mqa_logits, fp8_fp4_mqa_topk_indices


def sparse_attn_indexer(q_quant, weights, topk_tokens, dcp_world_size):
    q = (q_quant, None)
    if dcp_world_size <= 1 and fp8_fp4_mqa_topk_indices(q, weights):
        return None
    return fp8_fp4_mqa_logits(q, weights, clean_logits=False)
"""
GATED = """
import torch
from vllm.platforms import current_platform


def fp8_fp4_mqa_topk_indices(q, weights):
    if not current_platform.is_device_capability_family(120):
        return False
    _fp8_mqa_logits_topk_triton(q, weights)
    return True


def fp8_fp4_mqa_logits(q, weights, clean_logits):
    if current_platform.is_device_capability_family(120):
        return _fp8_mqa_logits_sm12x(q, weights, clean_logits)
    return fp8_mqa_logits_triton(q, weights)


def _fp8_mqa_logits_sm12x(q, weights, clean_logits):
    if GATE:
        return fp8_mqa_logits_triton(q, weights)
    return _fp8_mqa_logits_torch(q, weights)


def _fp8_mqa_logits_topk_triton(q, weights):
    return torch.matmul(q[0], weights)


def fp8_mqa_logits_triton(q, weights):
    return torch.matmul(q[0], weights)


def _fp8_mqa_logits_torch(q, weights):
    return torch.matmul(q[0], weights)
"""


class RouteClone:
    """Commits in order: ``start``, ``gated``, ``fused``, ``broken``, ``fixed``; each is a tag."""

    def __init__(self, folder: Path) -> None:
        self.path = folder
        folder.mkdir()
        git(folder, "init", "-q", "-b", "main")
        self.shas = {
            "start": self._commit({"README": "vllm\n"}, "Begin"),
            "gated": self._commit(
                {
                    ENTRY: BEFORE,
                    DISPATCH: GATED.replace("GATE", "clean_logits"),
                    "vllm/__init__.py": "",
                    "vllm/platforms/__init__.py": "current_platform = None\n",
                },
                "Bring the indexer",
            ),
            "fused": self._commit({ENTRY: FUSED}, "\x1b[2JRoute it to a fused path @octocat (#4711)"),
            "broken": self._commit({ENTRY: FUSED + "def (:\n"}, "Break it"),
            "fixed": self._commit({ENTRY: FUSED, DISPATCH: GATED.replace("GATE", "q[1] is None")}, "Drop the gate"),
        }
        for name, sha in self.shas.items():
            git(folder, "tag", name, sha)

    def _commit(self, files: dict[str, str | None], message: str) -> str:
        return commit(self.path, files, message=message)

    def git(self, *words: str) -> str:
        return git(self.path, *words)
