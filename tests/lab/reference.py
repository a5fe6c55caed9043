"""What the kernels must compute, in float64 and without cleverness."""

import numpy as np
import torch


def logits(q, kv, weights, starts, ends):
    """``-inf`` outside ``[start, end)``; operands are FP8 with fp32 scales."""
    keys, scales = kv
    dots = np.einsum("mhd,nd->mhn", q.float().numpy().astype(np.float64), keys.float().numpy().astype(np.float64))
    scored = (np.maximum(dots, 0) * weights.double().numpy()[:, :, None]).sum(1) * scales.double().numpy()
    columns = np.arange(keys.shape[0])
    inside = (columns >= starts.numpy()[:, None]) & (columns < ends.numpy()[:, None])
    return np.where(inside, scored, -np.inf)


def topk(scores, starts, count):
    """(scores, indices relative to ``start``) by score, then by latest key."""
    rows = scores.shape[0]
    best, indices = np.full((rows, count), -np.inf), np.full((rows, count), -1)
    for row in range(rows):
        found = sorted(((s, n) for n, s in enumerate(scores[row]) if s > -np.inf), reverse=True)[:count]
        for place, (score, key) in enumerate(found):
            best[row, place], indices[row, place] = score, key - int(starts[row])
    return best, indices


def operands(seed, *, rows, heads, dims, keys, windowed, integers=False):
    """Random FP8 operands, with windows of every kind: empty, inner, whole."""
    generator = torch.Generator().manual_seed(seed)

    def values(*shape):
        if integers:
            return torch.randint(-2, 3, shape, generator=generator).float()
        return torch.randn(shape, generator=generator)

    q, k = values(rows, heads, dims).to(torch.float8_e4m3fn), values(keys, dims).to(torch.float8_e4m3fn)
    scales = torch.ones(keys) if integers else torch.rand(keys, generator=generator) + 0.5
    weights = torch.randint(-2, 4, (rows, heads), generator=generator).float()
    if not integers:
        weights = weights + torch.rand((rows, heads), generator=generator)
    starts, ends = torch.zeros(rows, dtype=torch.int32), torch.full((rows,), keys, dtype=torch.int32)
    if windowed:
        bounds = torch.randint(0, keys + 1, (rows, 2), generator=generator, dtype=torch.int32).sort(1).values
        starts, ends = bounds[:, 0].contiguous(), bounds[:, 1].contiguous()
    return q, (k, scales), weights, starts, ends
