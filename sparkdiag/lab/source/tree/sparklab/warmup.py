"""Compile the kernels before the first request: numba's compile time must not fall into a measured prefill."""

import torch

from sparklab.sizes import HEAD_DIM, NUM_HEADS, TOPK_TOKENS
from sparklab.sm12x_mqa import fp8_mqa_logits_triton, fp8_mqa_topk_triton
from sparklab.topk import top_k_per_row


def warm_up_kernels() -> None:
    """Run each compiled kernel once on a few rows."""
    q = torch.zeros((2, NUM_HEADS, HEAD_DIM), device="cpu").to(torch.float8_e4m3fn)
    kv = (torch.zeros((3, HEAD_DIM)).to(torch.float8_e4m3fn), torch.ones(3))
    weights = torch.ones((2, NUM_HEADS), dtype=torch.float32)
    ks, ke = torch.zeros(2, dtype=torch.int32), torch.full((2,), 3, dtype=torch.int32)
    scores, indices = torch.empty((2, TOPK_TOKENS)), torch.empty((2, TOPK_TOKENS), dtype=torch.int32)
    logits = fp8_mqa_logits_triton(q, kv, weights, ks, ke)
    fp8_mqa_topk_triton(q, kv, weights, ks, ke, scores, indices)
    top_k_per_row(logits, ks, ke, scores, indices)
