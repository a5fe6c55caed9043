"""The chunk plan against the fallback's loops, written out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.kernels.plan import ChunkPlan, chunk_plan, most_keys_of_two_heads

MIB = 1 << 20


def passes(
    *, rows: int, keys: int, heads: int, budget_bytes: int, anew: bool
) -> tuple[list[tuple[int, int]], tuple[int, int]]:
    """The passes of a call one by one, ``(heads, keys)`` each, and the two chunk sizes that its locals first hold.

    ``anew``: keys a pass are asked for in every group of heads (the incident's code), not once a call (the lab's).
    """
    head_chunk = max(1, min(8, heads, budget_bytes // (rows * keys * 4)))
    made = []
    once = first = max(1, min(keys, budget_bytes // (rows * head_chunk * 4)))
    for head in range(0, heads, head_chunk):
        group = min(head + head_chunk, heads) - head
        k_chunk = max(1, min(keys, budget_bytes // (rows * group * 4))) if anew else once
        for key in range(0, keys, k_chunk):
            made.append((group, min(key + k_chunk, keys) - key))
    return made, (head_chunk, first)


calls = st.fixed_dictionaries(
    {
        "rows": st.integers(1, 300),
        "keys": st.integers(1, 300),
        "heads": st.integers(1, 40),
        "budget_bytes": st.integers(1, 1 << 20),
    }
)


@given(calls, st.booleans())
def test_the_plan_is_what_both_loops_do(sizes: dict[str, int], anew: bool) -> None:
    made, chunks = passes(**sizes, anew=anew)
    plan = chunk_plan(**sizes)
    assert (plan.head_chunk_size, plan.k_chunk_size) == chunks
    assert plan.matmuls == len(made)


@given(calls)
def test_the_incident_s_loop_and_the_lab_s_make_the_same_passes(sizes: dict[str, int]) -> None:
    assert passes(**sizes, anew=True) == passes(**sizes, anew=False)


@given(calls)
def test_a_pass_stays_within_the_budget_unless_one_score_a_row_is_too_much(sizes: dict[str, int]) -> None:
    plan = chunk_plan(**sizes)
    scores = plan.head_chunk_size * plan.rows * plan.k_chunk_size * 4
    assert scores <= sizes["budget_bytes"] or (plan.head_chunk_size, plan.k_chunk_size) == (1, 1)


@given(st.integers(1, 300), st.integers(2, 40), st.integers(1, 1 << 20))
def test_it_collapses_to_one_head_just_beyond_the_bound(rows: int, heads: int, budget_bytes: int) -> None:
    bound = most_keys_of_two_heads(rows=rows, budget_bytes=budget_bytes)
    for keys in {max(bound - 1, 1), max(bound, 1), bound + 1, bound + 7}:
        made, _ = passes(rows=rows, keys=keys, heads=heads, budget_bytes=budget_bytes, anew=True)
        assert (made[0][0] == 1) == (keys > bound)


def test_the_incident() -> None:
    assert chunk_plan(rows=8192, keys=112_640, heads=64) == ChunkPlan(
        rows=8192, keys=112_640, heads=64, head_chunk_size=1, k_chunk_size=2048, matmuls=3520
    )
    assert chunk_plan(rows=1024, keys=131_072, heads=64).matmuls == 512
    assert most_keys_of_two_heads(rows=8192) == 1024
    assert chunk_plan(rows=8192, keys=1024, heads=64).head_chunk_size == 2
    assert chunk_plan(rows=8192, keys=1025, heads=64).head_chunk_size == 1


@pytest.mark.parametrize("name", ["rows", "keys", "heads", "budget_bytes"])
def test_sizes_below_one_are_refused(name: str) -> None:
    sizes = {"rows": 1, "keys": 1, "heads": 1, "budget_bytes": MIB} | {name: 0}
    with pytest.raises(ValueError, match="sizes must be positive"):
        chunk_plan(**sizes)
