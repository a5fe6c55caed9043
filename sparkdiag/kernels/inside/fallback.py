"""sparkdiag's own torch fallback: the incident's chunk plan and ``clean_logits``, written from its description.

Heads a pass = clamp(budget // (M·N·4), 1, min(8, H)); keys a pass = clamp(budget // (M·heads·4), 1, N). One pass is a
float32 matmul of [heads, M, D] with [D, keys], a relu, the heads' weights, and their sum.
"""

from __future__ import annotations

from typing import Any

import torch

BUDGET_BYTES = 64 << 20
MOST_HEADS = 8


def fp8_mqa_logits_fallback(
    q: Any,
    kv: tuple[Any, Any],
    weights: Any,
    cu_seqlen_ks: Any,
    cu_seqlen_ke: Any,
    clean_logits: bool,
) -> Any:
    """float32 [M, N]. ``q`` float8_e4m3fn [M, H, D], ``kv`` float8_e4m3fn [N, D] and float32 [N], ``weights`` float32
    [M, H], windows int32 [M]. ``-inf`` outside the windows where ``clean_logits``; else what stands there means
    nothing."""
    keys = (kv[0].to(torch.float32) * kv[1].to(torch.float32)[:, None]).T.contiguous()
    rows, heads, _ = q.shape
    count = keys.shape[1]
    logits = torch.zeros((rows, count), dtype=torch.float32, device=q.device)
    heads_a_pass = max(1, min(MOST_HEADS, heads, BUDGET_BYTES // (rows * count * 4)))
    for first_head in range(0, heads, heads_a_pass):
        some = slice(first_head, min(first_head + heads_a_pass, heads))
        queries = q[:, some].to(torch.float32).permute(1, 0, 2).contiguous()
        factors = weights[:, some].T[:, :, None]
        keys_a_pass = max(1, min(count, BUDGET_BYTES // (rows * queries.shape[0] * 4)))
        for first_key in range(0, count, keys_a_pass):
            part = slice(first_key, min(first_key + keys_a_pass, count))
            scores = torch.matmul(queries, keys[:, part])
            logits[:, part] += scores.relu_().mul_(factors).sum(dim=0)
    if clean_logits:
        offsets = torch.arange(count, device=q.device)
        outside = (offsets[None, :] < cu_seqlen_ks[:, None]) | (offsets[None, :] >= cu_seqlen_ke[:, None])
        logits.masked_fill_(outside, float("-inf"))
    return logits
