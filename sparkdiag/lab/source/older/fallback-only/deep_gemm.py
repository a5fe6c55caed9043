"""Platform dispatch of the indexer's kernels."""

from sparklab.sm12x_deep_gemm_fallbacks import _fp8_mqa_logits_torch


def fp8_fp4_mqa_logits(q, kv, weights, cu_seqlen_ks, cu_seqlen_ke, clean_logits):
    """Scores ``[rows, keys]`` of one prefill chunk. ``q`` is (values, scale); the scale is None for FP8 queries."""
    return _fp8_mqa_logits_torch(q[0], kv, weights, cu_seqlen_ks, cu_seqlen_ke, clean_logits)


def fp8_fp4_paged_mqa_logits(q, kv, weights, context_starts, context_ends):
    """Scores of decode rows. Decode has always asked for clean logits."""
    return _fp8_mqa_logits_torch(q[0], kv, weights, context_starts, context_ends, True)
