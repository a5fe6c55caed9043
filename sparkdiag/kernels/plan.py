"""The chunk plan of the torch fallback: pure arithmetic, as the incident tells it."""

from dataclasses import dataclass

DEFAULT_BUDGET_BYTES = 64 << 20
"""The incident's bound on fp32 scores of one pass."""
SCORE_BYTES = 4
MOST_HEADS = 8
"""The fallback never takes more heads a pass, however small the scores."""


@dataclass(frozen=True, slots=True)
class ChunkPlan:
    """How one call of the fallback is cut into passes."""

    rows: int
    """M: query tokens of the call."""
    keys: int
    """N: indexer keys of the call."""
    heads: int
    head_chunk_size: int
    k_chunk_size: int
    matmuls: int
    """Passes of the call: ceil(heads / head_chunk_size) times ceil(keys / k_chunk_size)."""


def chunk_plan(*, rows: int, keys: int, heads: int, budget_bytes: int = DEFAULT_BUDGET_BYTES) -> ChunkPlan:
    """The plan for one call of ``[rows, keys]`` scores over ``heads`` heads.

    heads a pass = clamp(budget // (M·N·4), 1, min(8, H)); keys a pass = clamp(budget // (M·heads·4), 1, N). The last
    heads of a call may be fewer than a pass holds; the incident's code then fits more keys into their passes, which
    is counted here too. Raises ``ValueError`` for sizes below 1.
    """
    if min(rows, keys, heads, budget_bytes) < 1:
        raise ValueError(f"sizes must be positive: rows {rows}, keys {keys}, heads {heads}, budget {budget_bytes}")
    per_head = rows * keys * SCORE_BYTES
    head_chunk = max(1, min(MOST_HEADS, heads, budget_bytes // per_head))
    whole, rest = divmod(heads, head_chunk)
    matmuls = whole * -(-keys // keys_per_pass(rows=rows, heads=head_chunk, keys=keys, budget_bytes=budget_bytes))
    if rest:
        matmuls += -(-keys // keys_per_pass(rows=rows, heads=rest, keys=keys, budget_bytes=budget_bytes))
    return ChunkPlan(
        rows=rows,
        keys=keys,
        heads=heads,
        head_chunk_size=head_chunk,
        k_chunk_size=keys_per_pass(rows=rows, heads=head_chunk, keys=keys, budget_bytes=budget_bytes),
        matmuls=matmuls,
    )


def keys_per_pass(*, rows: int, heads: int, keys: int, budget_bytes: int) -> int:
    """Keys that a pass of ``heads`` heads may take."""
    return max(1, min(keys, budget_bytes // (rows * heads * SCORE_BYTES)))
