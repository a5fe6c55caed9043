"""Chunks, keys and split rows against vLLM's own steps, token by token."""

from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.kernels.prompt import prompt_chunks, split_rows

prompts = st.fixed_dictionaries(
    {
        "prompt_tokens": st.integers(1, 300),
        "chunk_tokens": st.integers(1, 320),
        "compress_ratio": st.integers(1, 9),
        "dcp": st.integers(1, 7),
    }
)


def share(keys: int, *, rank: int, dcp: int) -> int:
    """Keys of a rank, dealt one by one."""
    return sum(key % dcp == rank for key in range(keys))


@given(prompts)
def test_keys_and_windows_are_those_of_the_rank_that_holds_most(sizes: dict[str, int]) -> None:
    tokens, chunk_tokens = sizes["prompt_tokens"], sizes["chunk_tokens"]
    ratio, dcp = sizes["compress_ratio"], sizes["dcp"]
    expected = []
    for number, start in enumerate(range(0, tokens, chunk_tokens), start=1):
        end = min(tokens, start + chunk_tokens)
        all_keys = end // ratio
        ranks = [share(all_keys, rank=rank, dcp=dcp) for rank in range(dcp)]
        seen = [
            sum(share((position + 1) // ratio, rank=rank, dcp=dcp) for position in range(start, end))
            for rank in range(dcp)
        ]
        if all_keys:
            expected.append((number, end - start, all_keys, max(ranks), max(seen)))
    made = prompt_chunks(**sizes)
    assert [(one.number, one.rows, one.all_keys, one.keys, one.seen) for one in made] == expected


@given(st.integers(1, 400), st.integers(1, 400), st.integers(1, 1 << 14))
def test_rows_are_split_as_vllm_splits_them(rows: int, keys: int, limit: int) -> None:
    most = max(1, limit // 4 // keys)
    expected = [min(most, rows - start) for start in range(0, rows, most)]
    made = split_rows(rows, keys, max_logits_bytes=limit)
    assert [size for count, size in made for _ in range(count)] == expected


@given(st.integers(1, 400), st.integers(1, 400))
def test_without_a_limit_a_chunk_is_one_call(rows: int, keys: int) -> None:
    assert split_rows(rows, keys, max_logits_bytes=None) == ((1, rows),)


def test_the_incident_s_prompt() -> None:
    chunks = prompt_chunks(prompt_tokens=450_560, chunk_tokens=8192, compress_ratio=4, dcp=1)
    assert (len(chunks), chunks[-1].rows, chunks[-1].keys) == (55, 8192, 112_640)
    assert len(prompt_chunks(prompt_tokens=468_540, chunk_tokens=8192, compress_ratio=4, dcp=2)) == 58
    assert split_rows(8192, 112_640, max_logits_bytes=512 << 20) == ((6, 1191), (1, 1046))
