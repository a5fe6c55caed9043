"""The indexer's entry: prefill and decode dispatch, and the merge of top-k over decode-context-parallel ranks."""

import torch

from sparklab.deep_gemm import fp8_fp4_mqa_logits, fp8_fp4_paged_mqa_logits
from sparklab.shard import Shard
from sparklab.topk import top_k_per_row


def sparse_attn_indexer(k_cache_prefix, q, weights, k_cache, metadata, topk_tokens, shard: Shard, all_gather):
    """Top-k past positions of every token of the step: (scores, positions), [tokens, topk], best first, -1 for none.

    ``k_cache_prefix`` names the layer; ``all_gather(tensor, dim)`` joins the ranks and is used with DCP only.
    """
    num_tokens = metadata.num_tokens
    has_prefill = bool(metadata.prefill_chunks)
    has_decode = bool(metadata.decode_chunks)
    topk_scores = torch.full((num_tokens, topk_tokens), float("-inf"))
    topk_indices = torch.full((num_tokens, topk_tokens), -1, dtype=torch.int32)
    if has_prefill:
        for chunk in metadata.prefill_chunks:
            kv = k_cache.gather(chunk.key_slots)
            ks, ke = chunk.cu_seqlen_ks, chunk.cu_seqlen_ke
            q_chunk = (q[chunk.rows], None)
            scores = torch.full((len(chunk.rows), topk_tokens), float("-inf"))
            indices = torch.full((len(chunk.rows), topk_tokens), -1, dtype=torch.int32)
            logits = fp8_fp4_mqa_logits(q_chunk, kv, weights[chunk.rows], ks, ke, clean_logits=False)
            top_k_per_row(logits, ks, ke, scores, indices)
            topk_scores[chunk.rows], topk_indices[chunk.rows] = scores, indices
    if has_decode:
        for chunk in metadata.decode_chunks:
            kv = k_cache.gather(chunk.key_slots)
            ks, ke = chunk.cu_seqlen_ks, chunk.cu_seqlen_ke
            scores = torch.full((len(chunk.rows), topk_tokens), float("-inf"))
            indices = torch.full((len(chunk.rows), topk_tokens), -1, dtype=torch.int32)
            logits = fp8_fp4_paged_mqa_logits((q[chunk.rows], None), kv, weights[chunk.rows], ks, ke)
            top_k_per_row(logits, ks, ke, scores, indices)
            topk_scores[chunk.rows], topk_indices[chunk.rows] = scores, indices
    return merge_topk(topk_scores, topk_indices, shard, all_gather)


def merge_topk(topk_scores, topk_indices, shard: Shard, all_gather):
    """Local key indices to positions, then the best ``topk`` of all ranks: by score, then by latest position."""
    positions = torch.where(topk_indices < 0, -1, shard.global_position(topk_indices))
    if shard.world_size <= 1:
        return topk_scores, positions
    topk_tokens = topk_scores.shape[1]
    # Positions stay exact in float32 up to 2**24.
    packed = torch.stack([topk_scores, positions.float()], dim=-1)
    gathered = all_gather(packed, 1)
    order = torch.argsort(gathered[..., 1], dim=1, descending=True, stable=True)
    gathered = gathered.gather(1, order.unsqueeze(-1).expand_as(gathered))
    order = torch.argsort(gathered[..., 0], dim=1, descending=True, stable=True)[:, :topk_tokens]
    best = gathered.gather(1, order.unsqueeze(-1).expand(-1, -1, 2))
    return best[..., 0].contiguous(), best[..., 1].to(torch.int32)
