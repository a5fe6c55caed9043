"""The fast kernels: one pass over the keys, compiled.

They stand in, on a CPU, for Triton kernels; numba compiles them, one thread a rank. The names keep ``triton`` so that
dispatch and stacks read as on a GPU. Both walk tiles of ``TILE`` keys that stay in the first-level cache, decode FP8
by table, and only visit tiles that a row's window ``[ks, ke)`` touches.
"""

from math import inf

import numba
import numpy as np
import torch

TILE = 128
# Everything but nnan and ninf: the kernels write -inf.
FAST_MATH = {"contract", "reassoc", "arcp", "nsz"}

FP8_VALUES = torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn).float().numpy()


@numba.njit(cache=True, nogil=True)
def _decode_tile(keys, values, first, count, tile):
    """FP8 rows ``first .. first + count`` as floats, transposed; the rest of the tile is zero."""
    dims = keys.shape[1]
    for n in range(TILE):
        for d in range(dims):
            tile[d, n] = values[keys[first + n, d]] if n < count else np.float32(0)


@numba.njit(cache=True, nogil=True, fastmath=FAST_MATH)
def _score_tile(q, weights, tile, dots, scores):
    """``scores[n] = sum_h weights[h] * relu(q[h] . tile[:, n])`` for one row; dims is a multiple of 8."""
    heads, dims = q.shape
    for n in range(TILE):
        scores[n] = np.float32(0)
    for h in range(heads):
        for n in range(TILE):
            dots[n] = np.float32(0)
        for d in range(0, dims, 8):
            q0, q1, q2, q3 = q[h, d], q[h, d + 1], q[h, d + 2], q[h, d + 3]
            q4, q5, q6, q7 = q[h, d + 4], q[h, d + 5], q[h, d + 6], q[h, d + 7]
            for n in range(TILE):
                dots[n] += (
                    q0 * tile[d, n] + q1 * tile[d + 1, n] + q2 * tile[d + 2, n] + q3 * tile[d + 3, n]
                    + q4 * tile[d + 4, n] + q5 * tile[d + 5, n] + q6 * tile[d + 6, n] + q7 * tile[d + 7, n]
                )  # fmt: skip
        weight = weights[h]
        for n in range(TILE):
            scores[n] += weight * max(dots[n], np.float32(0))


@numba.njit(cache=True, nogil=True)
def _logits(q, weights, keys, key_scales, values, starts, ends, logits):
    rows, _, dims = q.shape
    total = keys.shape[0]
    tile = np.empty((dims, TILE), np.float32)
    dots = np.empty(TILE, np.float32)
    scores = np.empty(TILE, np.float32)
    for first in range(0, total, TILE):
        count = min(TILE, total - first)
        _decode_tile(keys, values, first, count, tile)
        for m in range(rows):
            low = max(starts[m], first)
            high = min(ends[m], first + count)
            for n in range(first, first + count):
                logits[m, n] = -inf
            if low < high:
                _score_tile(q[m], weights[m], tile, dots, scores)
                for n in range(low, high):
                    logits[m, n] = scores[n - first] * key_scales[n]


@numba.njit(cache=True, nogil=True)
def _insert(best_scores, best_keys, score, key):
    """Put a candidate into one row's descending list; on equal scores the one that came first stays ahead."""
    place = best_scores.shape[0] - 1
    while place > 0 and best_scores[place - 1] < score:
        best_scores[place] = best_scores[place - 1]
        best_keys[place] = best_keys[place - 1]
        place -= 1
    best_scores[place] = score
    best_keys[place] = key


@numba.njit(cache=True, nogil=True)
def _fused_topk(q, weights, keys, key_scales, values, starts, ends, best_scores, best_keys):
    """Scores and top-k in one pass, no score matrix. Walks from the last key to the first: equal scores prefer late."""
    rows, _, dims = q.shape
    total = keys.shape[0]
    topk = best_scores.shape[1]
    tile = np.empty((dims, TILE), np.float32)
    dots = np.empty(TILE, np.float32)
    scores = np.empty(TILE, np.float32)
    best_scores[:] = -inf
    best_keys[:] = -1
    for tile_index in range((total + TILE - 1) // TILE - 1, -1, -1):
        first = tile_index * TILE
        count = min(TILE, total - first)
        _decode_tile(keys, values, first, count, tile)
        for m in range(rows):
            low = max(starts[m], first)
            high = min(ends[m], first + count)
            if low < high:
                _score_tile(q[m], weights[m], tile, dots, scores)
                for n in range(high - 1, low - 1, -1):
                    score = scores[n - first] * key_scales[n]
                    if score > best_scores[m, topk - 1]:
                        _insert(best_scores[m], best_keys[m], score, n - starts[m])


@numba.njit(cache=True, nogil=True)
def _row_topk(logits, starts, ends, best_scores, best_keys):
    topk = best_scores.shape[1]
    best_scores[:] = -inf
    best_keys[:] = -1
    for m in range(logits.shape[0]):
        for n in range(ends[m] - 1, starts[m] - 1, -1):
            if logits[m, n] > best_scores[m, topk - 1]:
                _insert(best_scores[m], best_keys[m], logits[m, n], n - starts[m])


def _arrays(q, kv, weights, cu_seqlen_ks, cu_seqlen_ke):
    keys, key_scales = kv
    return (
        q.float().numpy(),
        weights.float().contiguous().numpy(),
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
    _logits(*_arrays(q, kv, weights, cu_seqlen_ks, cu_seqlen_ke), logits.numpy())
    return logits


def fp8_mqa_topk_triton(q, kv, weights, cu_seqlen_ks, cu_seqlen_ke, topk_scores, topk_indices):
    """The fused form: fills scores (descending) and indices relative to ``ks``, -1 where a row has fewer keys."""
    _fused_topk(
        *_arrays(q, kv, weights, cu_seqlen_ks, cu_seqlen_ke), topk_scores.numpy(), topk_indices.numpy()
    )


def top_k_per_row(logits, cu_seqlen_ks, cu_seqlen_ke, topk_scores, topk_indices):
    """Top-k of each row within ``[ks, ke)``, by score, then by latest key. Reads nothing outside the bounds."""
    _row_topk(
        logits.numpy(),
        cu_seqlen_ks.to(torch.int64).numpy(),
        cu_seqlen_ke.to(torch.int64).numpy(),
        topk_scores.numpy(),
        topk_indices.numpy(),
    )
