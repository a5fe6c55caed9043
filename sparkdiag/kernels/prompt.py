"""The indexer calls of a prefill: the chunks of a prompt, their keys, and the shorter calls of newer vLLM. Pure.

Arithmetic of vLLM's DeepseekV32IndexerMetadataBuilder for one request without speculative rows
(https://github.com/vllm-project/vllm/blob/main/vllm/v1/attention/backends/mla/indexer.py).
"""

from dataclasses import dataclass

from sparkdiag.kernels.plan import SCORE_BYTES

DEFAULT_MAX_LOGITS_MIB = 512
"""vLLM's VLLM_SPARSE_INDEXER_MAX_LOGITS_MB where nobody sets it; the incident's fork takes 256 on SM12x."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """One scheduler step of the prompt, on the DCP rank that holds most keys."""

    number: int
    """From 1."""
    rows: int
    all_keys: int
    """Of all ranks: what the logits limit is held against."""
    keys: int
    """Of this rank: what the kernel is given."""
    seen: int
    """(row, key) pairs inside the causal window, on this rank."""


def prompt_chunks(*, prompt_tokens: int, chunk_tokens: int, compress_ratio: int, dcp: int) -> tuple[Chunk, ...]:
    """The chunks of a prompt that reach the indexer's kernel: those that have a key.

    A chunk's keys are those of the prompt so far, ``tokens // compress_ratio``, interleaved over the ranks; a row at
    position p (from 0) sees ``(p + 1) // compress_ratio`` of them. Rank 0 holds most.
    """
    chunks = []
    for number, start in enumerate(range(0, prompt_tokens, chunk_tokens), start=1):
        end = min(prompt_tokens, start + chunk_tokens)
        all_keys = end // compress_ratio
        if all_keys:
            seen = _seen(end, compress_ratio, dcp) - _seen(start, compress_ratio, dcp)
            chunks.append(Chunk(number, end - start, all_keys, -(-all_keys // dcp), seen))
    return tuple(chunks)


def _seen(tokens: int, ratio: int, dcp: int) -> int:
    """Keys of rank 0 seen by the first ``tokens`` rows together: the sum of ceil((p // ratio) / dcp), p to ``tokens``.

    Each of the keys' counts g below G = tokens // ratio is seen by ``ratio`` rows, G by the rows that are left.
    """
    whole, left = divmod(tokens, ratio)
    full, rest = divmod(max(whole - 1, 0), dcp)
    below = dcp * full * (full + 1) // 2 + rest * (full + 1)
    return ratio * below + (left + 1) * -(-whole // dcp)


def split_rows(rows: int, all_keys: int, *, max_logits_bytes: int | None) -> tuple[tuple[int, int], ...]:
    """``(calls, rows each)`` into which vLLM splits a chunk so that rows x keys x 4 bytes stay within the limit.

    The limit is held against the keys of all ranks, though a rank's logits are shorter. None: not split.
    """
    most = rows if max_logits_bytes is None else max(1, max_logits_bytes // SCORE_BYTES // all_keys)
    whole, rest = divmod(rows, min(most, rows))
    return ((whole, min(most, rows)), *(((1, rest),) if rest else ()))
