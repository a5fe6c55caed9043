"""Top-k of rows of scores."""

import torch

from sparklab.compiled import row_topk


def top_k_per_row(logits, cu_seqlen_ks, cu_seqlen_ke, topk_scores, topk_indices):
    """Top-k of each row within ``[ks, ke)``, by score, then by latest key. Reads nothing outside the bounds.

    Fills scores (descending) and indices relative to ``ks``; ``-inf`` and -1 where a row has fewer keys.
    """
    row_topk(
        logits.numpy(),
        cu_seqlen_ks.to(torch.int64).numpy(),
        cu_seqlen_ke.to(torch.int64).numpy(),
        topk_scores.numpy(),
        topk_indices.numpy(),
    )
