"""The dispatch and the loop of the incident, with its names, over plain integers. Nothing here is vLLM's code."""

import os

BUDGET_BYTES = 1 << 20
MASK = (1 << 61) - 1
PASS_ITERATIONS = int(os.environ.get("FAKE_VLLM_PASS", "200000"))


def _score(head_end: int, k_end: int, iterations: int) -> int:
    value = head_end * 31 + k_end
    for step in range(iterations):
        value = (value * 6364136223846793005 + step) & MASK
    return value


def _head_chunk_size(rows: int, keys: int, heads: int) -> int:
    return max(1, min(BUDGET_BYTES // (rows * keys * 4), 8, heads))


def _k_chunk_size(rows: int, heads: int, keys: int) -> int:
    return max(1, min(BUDGET_BYTES // (rows * heads * 4), keys))


def _fp8_mqa_logits_torch(seq_len: int, seq_len_kv: int, num_heads: int, clean_logits: bool) -> int:
    head_chunk_size = _head_chunk_size(seq_len, seq_len_kv, num_heads)
    logits = 0
    for head_start in range(0, num_heads, head_chunk_size):
        head_end = min(head_start + head_chunk_size, num_heads)
        k_chunk_size = _k_chunk_size(seq_len, head_end - head_start, seq_len_kv)
        for k_start in range(0, seq_len_kv, k_chunk_size):
            k_end = min(k_start + k_chunk_size, seq_len_kv)
            logits ^= _score(head_end, k_end, PASS_ITERATIONS)
            if hold_pass is not None and (head_start, k_start) != (0, 0):
                _never_returns()
    return logits


hold_pass: "int | None" = None
"""A file descriptor that never becomes readable: the fallback waits on it in its second pass (mode ``stuck``)."""


def _never_returns() -> None:
    assert hold_pass is not None
    os.read(hold_pass, 1)


def fp8_mqa_logits_triton(seq_len: int, seq_len_kv: int, num_heads: int) -> int:
    return _score(num_heads, seq_len + seq_len_kv, 1000)


def _fp8_mqa_logits_sm12x(seq_len: int, seq_len_kv: int, num_heads: int, clean_logits: bool) -> int:
    if clean_logits:
        return fp8_mqa_logits_triton(seq_len, seq_len_kv, num_heads)
    return _fp8_mqa_logits_torch(seq_len, seq_len_kv, num_heads, clean_logits)


def fp8_fp4_mqa_logits(seq_len: int, seq_len_kv: int, num_heads: int, clean_logits: bool) -> int:
    return _fp8_mqa_logits_sm12x(seq_len, seq_len_kv, num_heads, clean_logits)


def sparse_attn_indexer(k_cache_prefix: str, seq_len: int, seq_len_kv: int, fast: bool) -> int:
    """One layer's indexer. ``k_cache_prefix`` names the layer, as in vLLM's indexer."""
    num_heads = 8
    if fast:
        return fp8_mqa_logits_triton(seq_len, seq_len_kv, num_heads)
    return fp8_fp4_mqa_logits(seq_len, seq_len_kv, num_heads, clean_logits=False)
