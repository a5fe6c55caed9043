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

    heads a pass = clamp(budget // (M·N·4), 1, min(8, H)); keys a pass = clamp(budget // (M·heads·4), 1, N).

    The incident's code asks for the keys a pass in every group of heads anew, the last of which may be smaller; the
    lab's asks once a call. Both come to this plan: where two heads or more fit, all keys fit with them (their scores
    are within the budget), and where one fits, no group is smaller. Raises ``ValueError`` for sizes below 1.
    """
    if min(rows, keys, heads, budget_bytes) < 1:
        raise ValueError(f"sizes must be positive: rows {rows}, keys {keys}, heads {heads}, budget {budget_bytes}")
    head_chunk = max(1, min(MOST_HEADS, heads, budget_bytes // (rows * keys * SCORE_BYTES)))
    k_chunk = keys_per_pass(rows=rows, heads=head_chunk, keys=keys, budget_bytes=budget_bytes)
    return ChunkPlan(
        rows=rows,
        keys=keys,
        heads=heads,
        head_chunk_size=head_chunk,
        k_chunk_size=k_chunk,
        matmuls=-(-heads // head_chunk) * -(-keys // k_chunk),
    )


def keys_per_pass(*, rows: int, heads: int, keys: int, budget_bytes: int) -> int:
    """Keys that a pass of ``heads`` heads may take."""
    return max(1, min(keys, budget_bytes // (rows * heads * SCORE_BYTES)))


def most_keys_of_two_heads(*, rows: int, budget_bytes: int = DEFAULT_BUDGET_BYTES) -> int:
    """Beyond so many keys a call of ``rows`` rows takes one head a pass: two heads' scores exceed the budget.

    2·M·N·4 <= budget, so N <= budget // (8·M): 1,024 at 8,192 rows and 64 MiB. 0: at any number of keys.
    """
    return budget_bytes // (2 * rows * SCORE_BYTES)
