"""Platform dispatch of the indexer's kernels."""

import torch

from sparklab.sm12x_deep_gemm_fallbacks import _fp8_mqa_logits_sm12x
from sparklab.sm12x_mqa import fp8_mqa_topk_triton


def fp8_fp4_mqa_logits(q, kv, weights, cu_seqlen_ks, cu_seqlen_ke, clean_logits):
    """Scores ``[rows, keys]`` of one prefill chunk. ``q`` is (values, scale); the scale is None for FP8 queries."""
    return _fp8_mqa_logits_sm12x(q, kv, weights, cu_seqlen_ks, cu_seqlen_ke, clean_logits=clean_logits)


def fp8_fp4_mqa_topk_indices(q, kv, weights, cu_seqlen_ks, cu_seqlen_ke, topk_scores, topk_indices):
    """The fused fast path: fills the chunk's top-k without a score matrix. False means it does not apply."""
    q_values, q_scale = q
    if q_scale is not None or kv[0].dtype != torch.float8_e4m3fn:
        return False
    fp8_mqa_topk_triton(q_values, kv, weights, cu_seqlen_ks, cu_seqlen_ke, topk_scores, topk_indices)
    return True


def fp8_fp4_paged_mqa_logits(q, kv, weights, context_starts, context_ends):
    """Scores of decode rows. Decode has always asked for clean logits."""
    return _fp8_mqa_logits_sm12x(q, kv, weights, context_starts, context_ends, clean_logits=True)
