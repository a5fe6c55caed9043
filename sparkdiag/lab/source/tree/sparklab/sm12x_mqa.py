"""The fast kernels of the platform.

On a GPU these would be Triton kernels; here numba compiles their stand-ins (:mod:`sparklab.compiled`). The names keep
``triton`` so that dispatch and stacks read as they do there.
"""

import torch
from torch.nn.functional import pad

from sparklab.compiled import FP8_VALUES, mqa_logits, mqa_topk


def _arrays(q, kv, weights, cu_seqlen_ks, cu_seqlen_ke):
    keys, key_scales = kv
    # The compiled loops take four heads at a time: heads of weight zero fill the last four.
    missing = -q.shape[1] % 4
    return (
        pad(q.float(), (0, 0, 0, missing)).contiguous().numpy(),
        pad(weights.float(), (0, missing)).contiguous().numpy(),
        keys.contiguous().view(torch.uint8).numpy(),
        key_scales.float().contiguous().numpy(),
        FP8_VALUES,
        cu_seqlen_ks.to(torch.int64).numpy(),
        cu_seqlen_ke.to(torch.int64).numpy(),
    )


def fp8_mqa_logits_triton(q, kv, weights, cu_seqlen_ks, cu_seqlen_ke):
    """``logits[m, n] = scale[n] * sum_h weights[m, h] * relu(q[m, h] . k[n])``; a numba stand-in for a Triton kernel.

    Writes ``-inf`` outside ``[ks, ke)`` always, whatever the caller asks for.
    """
    logits = torch.empty((q.shape[0], kv[0].shape[0]), dtype=torch.float32)
    mqa_logits(*_arrays(q, kv, weights, cu_seqlen_ks, cu_seqlen_ke), logits.numpy())
    return logits


def fp8_mqa_topk_triton(q, kv, weights, cu_seqlen_ks, cu_seqlen_ke, topk_scores, topk_indices):
    """The fused form, likewise a numba stand-in: fills scores (descending) and indices relative to ``ks``.

    Where a row has fewer keys than top-k the rest is ``-inf`` and -1. Equal scores prefer the latest key.
    """
    mqa_topk(*_arrays(q, kv, weights, cu_seqlen_ks, cu_seqlen_ke), topk_scores.numpy(), topk_indices.numpy())
