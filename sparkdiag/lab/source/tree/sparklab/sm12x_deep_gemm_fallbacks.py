"""Indexer logits where DeepGEMM has no kernel: the switch to the fast kernel, and the pure-torch fallback."""

import torch

from sparklab.sm12x_mqa import fp8_mqa_logits_triton

SCORE_BUDGET_BYTES = 1024
"""What one pass of the fallback may hold as fp32 scores.

The incident's bound is 64 MiB at chunks of 8,192 rows and up to 112,640 keys: there it allows one head and a small
part of the keys at a time. The lab's chunks are 256 rows, its prompts 16,384 keys; 1 KiB puts it deep in the same
regime (one head, one key a pass), so that the pass count alone makes the stall.
"""


def _fp8_mqa_logits_head_chunk_size(seq_len, num_heads, seq_len_kv):
    """Heads a pass may take: what the budget holds of ``[seq_len, seq_len_kv]`` fp32 scores, at most 8, at least 1."""
    per_head = max(1, seq_len * seq_len_kv * 4)
    return max(1, min(SCORE_BUDGET_BYTES // per_head, 8, num_heads))


def _fp8_mqa_logits_k_chunk_size(seq_len, head_chunk_size, seq_len_kv):
    """Keys a pass may take with that many heads, at least 1."""
    per_key = max(1, seq_len * head_chunk_size * 4)
    return max(1, min(SCORE_BUDGET_BYTES // per_key, seq_len_kv))


def _fp8_mqa_logits_torch(q, kv, weights, cu_seqlen_ks, cu_seqlen_ke, clean_logits):
    """``logits[m, n] = scale[n] * sum_h weights[m, h] * relu(q[m, h] . k[n])`` in bounded passes of plain torch.

    A pass decodes its own keys: a float copy of all of them would be another tensor that grows with the prompt.

    With ``clean_logits`` it writes ``-inf`` outside ``[ks, ke)``; without, what stands there means nothing.
    """
    keys, key_scales = kv
    seq_len, num_heads, _ = q.shape
    seq_len_kv = keys.shape[0]
    head_chunk_size = _fp8_mqa_logits_head_chunk_size(seq_len, num_heads, seq_len_kv)
    k_chunk_size = _fp8_mqa_logits_k_chunk_size(seq_len, head_chunk_size, seq_len_kv)
    logits = torch.zeros((seq_len, seq_len_kv), dtype=torch.float32)
    for head_start in range(0, num_heads, head_chunk_size):
        head_end = min(head_start + head_chunk_size, num_heads)
        q_heads = q[:, head_start:head_end].float().transpose(0, 1)
        w_heads = weights[:, head_start:head_end].float().t().unsqueeze(-1)
        for k_start in range(0, seq_len_kv, k_chunk_size):
            k_end = min(k_start + k_chunk_size, seq_len_kv)
            keys_f32 = keys[k_start:k_end].float() * key_scales[k_start:k_end].unsqueeze(1)
            scores = torch.matmul(q_heads, keys_f32.t())
            scores = torch.relu(scores) * w_heads
            logits[:, k_start:k_end] += scores.sum(0)
    if clean_logits:
        columns = torch.arange(seq_len_kv).unsqueeze(0)
        outside = (columns < cu_seqlen_ks.unsqueeze(1)) | (columns >= cu_seqlen_ke.unsqueeze(1))
        logits.masked_fill_(outside, float("-inf"))
    return logits


def _fp8_mqa_logits_sm12x(q, kv, weights, cu_seqlen_ks, cu_seqlen_ke, clean_logits):
    """The platform's logits: the fast kernel wherever its shapes fit.

    It writes ``-inf`` outside ``[ks, ke)`` whether asked to or not; the top-k that follows reads only inside.
    """
    q_values, q_scale = q
    if q_scale is None and q_values.dim() == 3 and kv[0].dim() == 2:
        return fp8_mqa_logits_triton(q_values, kv, weights, cu_seqlen_ks, cu_seqlen_ke)
    return _fp8_mqa_logits_torch(q_values, kv, weights, cu_seqlen_ks, cu_seqlen_ke, clean_logits)
