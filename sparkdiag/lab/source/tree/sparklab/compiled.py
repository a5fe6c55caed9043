"""The compiled loops behind the fast kernels: numba, one thread, no torch.

All walk tiles of ``TILE`` keys that stay in the first-level cache, decode FP8 by table, and visit only the tiles that a
row's window ``[start, end)`` touches. Compiled code is cached beside this file, or under ``NUMBA_CACHE_DIR``.
"""

from math import inf

import numba
import numpy as np

TILE = 128
# Everything but nnan and ninf: the kernels write -inf, and a NaN must stay one.
FAST_MATH = {"contract", "reassoc", "arcp", "nsz"}


def _fp8_e4m3fn_values() -> np.ndarray:
    """The value of each of the 256 bit patterns of float8_e4m3fn: sign, 4 bits of exponent, 3 of mantissa."""
    bits = np.arange(256)
    exponent, mantissa = bits >> 3 & 15, bits & 7
    magnitude = np.where(exponent == 0, mantissa * 2.0**-9, (8 + mantissa) * 2.0 ** (exponent - 10.0))
    magnitude[bits & 127 == 127] = np.nan
    return np.where(bits & 128, -magnitude, magnitude).astype(np.float32)


FP8_VALUES = _fp8_e4m3fn_values()


@numba.njit(cache=True, nogil=True)
def _decode_tile(keys, values, first, count, tile):
    """FP8 rows ``first .. first + count`` as floats, transposed; the rest of the tile is zero."""
    dims = keys.shape[1]
    for n in range(TILE):
        for d in range(dims):
            tile[d, n] = values[keys[first + n, d]] if n < count else np.float32(0)


@numba.njit(cache=True, nogil=True, fastmath=FAST_MATH)
def _score_tile(q, weights, tile, dots, scores):
    """``scores[n] = sum_h weights[h] * relu(q[h] . tile[:, n])`` for one row; heads and dims are multiples of 4.

    Four heads by four dimensions at a time, so that what is loaded of the tile is used four times.
    """
    heads, dims = q.shape
    zero = np.float32(0)
    for n in range(TILE):
        scores[n] = zero
    for h in range(0, heads, 4):
        dots[:] = zero
        for d in range(0, dims, 4):
            a0, a1, a2, a3 = q[h, d], q[h, d + 1], q[h, d + 2], q[h, d + 3]
            b0, b1, b2, b3 = q[h + 1, d], q[h + 1, d + 1], q[h + 1, d + 2], q[h + 1, d + 3]
            c0, c1, c2, c3 = q[h + 2, d], q[h + 2, d + 1], q[h + 2, d + 2], q[h + 2, d + 3]
            e0, e1, e2, e3 = q[h + 3, d], q[h + 3, d + 1], q[h + 3, d + 2], q[h + 3, d + 3]
            for n in range(TILE):
                k0, k1, k2, k3 = tile[d, n], tile[d + 1, n], tile[d + 2, n], tile[d + 3, n]
                dots[0, n] += a0 * k0 + a1 * k1 + a2 * k2 + a3 * k3
                dots[1, n] += b0 * k0 + b1 * k1 + b2 * k2 + b3 * k3
                dots[2, n] += c0 * k0 + c1 * k1 + c2 * k2 + c3 * k3
                dots[3, n] += e0 * k0 + e1 * k1 + e2 * k2 + e3 * k3
        for i in range(4):
            weight = weights[h + i]
            for n in range(TILE):
                scores[n] += weight * (zero if dots[i, n] < zero else dots[i, n])


@numba.njit(cache=True, nogil=True)
def mqa_logits(q, weights, keys, key_scales, values, starts, ends, logits):
    """Scores of every row against every key; ``-inf`` outside the row's window."""
    rows, _, dims = q.shape
    total = keys.shape[0]
    tile = np.empty((dims, TILE), np.float32)
    dots = np.empty((4, TILE), np.float32)
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
def mqa_topk(q, weights, keys, key_scales, values, starts, ends, best_scores, best_keys):
    """Scores and top-k in one pass, no score matrix. Walks from the last key to the first: equal scores prefer late."""
    rows, _, dims = q.shape
    total = keys.shape[0]
    last = best_scores.shape[1] - 1
    tile = np.empty((dims, TILE), np.float32)
    dots = np.empty((4, TILE), np.float32)
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
                    if score > best_scores[m, last]:
                        _insert(best_scores[m], best_keys[m], score, n - starts[m])


@numba.njit(cache=True, nogil=True)
def row_topk(logits, starts, ends, best_scores, best_keys):
    """Top-k of each row of scores within its window, in the same order as ``mqa_topk``."""
    last = best_scores.shape[1] - 1
    best_scores[:] = -inf
    best_keys[:] = -1
    for m in range(logits.shape[0]):
        for n in range(ends[m] - 1, starts[m] - 1, -1):
            if logits[m, n] > best_scores[m, last]:
                _insert(best_scores[m], best_keys[m], logits[m, n], n - starts[m])
