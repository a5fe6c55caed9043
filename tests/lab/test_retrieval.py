"""The whole retrieval in process: right on one rank and on two, wrong with each mutant."""

import prompts
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sparklab import indexer, offline, sparse_attn_indexer
from sparklab.indexer import Step
from sparklab.retrieval import Retrieval
from sparklab.shard import Shard


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("ranks", [{}, {"world_size": 2}, {"world_size": 2, "interleave": 8}, {"world_size": 3}])
def test_the_needle_is_retrieved(seed, ranks):
    prompt, expected = prompts.needle(seed, depth=0.1 + 0.25 * seed)
    assert offline.generate(prompt, max_tokens=32, seed=seed, **ranks) == (expected, "stop")


@pytest.mark.parametrize("chunk_tokens", [1, 7, 256, 5000])
def test_chunking_changes_nothing(chunk_tokens):
    prompt, expected = prompts.needle(3, lines=4)
    assert offline.generate(prompt, max_tokens=32, chunk_tokens=chunk_tokens) == (expected, "stop")


@pytest.mark.parametrize("world_size", [1, 2])
def test_reasoning_replays_the_line(world_size):
    prompt, expected = prompts.reasoning(1)
    assert offline.generate(prompt, max_tokens=300, world_size=world_size) == (expected, "stop")


def test_the_latest_of_equal_matches_wins():
    line = "The value of key K1 is {}.\n"
    words = "nothing to see here at all, only padding.\n" * 2
    prompt = line.format("old") + words + line.format("new") + words + "The value of key K1 is"
    assert offline.generate(prompt.encode(), max_tokens=32) == (b" new.", "stop")


def test_the_longest_match_wins_over_a_later_shorter_one():
    prompt = "alpha: the value of key K77 is right.\nbeta: the key K77 is wrong.\nalpha: the value of key K77 is"
    assert offline.generate(prompt.encode(), max_tokens=32) == (b" right.", "stop")


def mutate_wrong_mask(monkeypatch):
    """The causal bound is off: a row sees only the first quarter of what precedes it."""
    stock = indexer._build_chunk

    def build(*args):
        chunk = stock(*args)
        ends = chunk.cu_seqlen_ks + (chunk.cu_seqlen_ke - chunk.cu_seqlen_ks) // 4
        return indexer.IndexerChunk(chunk.rows, chunk.key_slots, chunk.cu_seqlen_ks, ends)

    monkeypatch.setattr(indexer, "_build_chunk", build)


def mutate_self_match(monkeypatch):
    """The mask lets a row see its own key, which of course matches best."""
    stock = indexer._build_chunk

    def build(*args):
        chunk = stock(*args)
        return indexer.IndexerChunk(chunk.rows, chunk.key_slots, chunk.cu_seqlen_ks, chunk.cu_seqlen_ke + 1)

    monkeypatch.setattr(indexer, "_build_chunk", build)


def mutate_wrong_index(monkeypatch):
    """Top-k indices are one off."""
    stock = sparse_attn_indexer.merge_topk

    def merge(scores, indices, *rest):
        return stock(scores, torch.where(indices > 0, indices - 1, indices), *rest)

    monkeypatch.setattr(sparse_attn_indexer, "merge_topk", merge)


def mutate_unmapped_index(monkeypatch):
    """A rank's local indices are taken for positions: harmless on one rank, wrong on two."""
    monkeypatch.setattr(Shard, "global_position", lambda self, local: local)


def mutate_dead_heads(monkeypatch):
    """No head scores anything: all of the past looks the same, and the latest byte is copied again and again."""
    stock = indexer.Indexer.keys_and_queries

    def keys_and_queries(self, hashes):
        keys, (q, weights) = stock(self, hashes)
        return keys, (q, weights * 0)

    monkeypatch.setattr(indexer.Indexer, "keys_and_queries", keys_and_queries)


@pytest.mark.parametrize("mutate", [mutate_wrong_mask, mutate_self_match, mutate_wrong_index])
@pytest.mark.parametrize("world_size", [1, 2])
def test_a_wrong_mask_or_index_gives_a_wrong_needle(monkeypatch, mutate, world_size):
    mutate(monkeypatch)
    for seed in range(3):
        prompt, expected = prompts.needle(seed, lines=12, depth=0.6)
        text, _ = offline.generate(prompt, max_tokens=24, world_size=world_size)
        assert text != expected


def test_an_unmapped_index_gives_a_wrong_needle_on_two_ranks(monkeypatch):
    mutate_unmapped_index(monkeypatch)
    prompt, expected = prompts.needle(0, lines=12)
    assert offline.generate(prompt, max_tokens=24)[0] == expected
    assert offline.generate(prompt, max_tokens=24, world_size=2)[0] != expected


def test_dead_heads_degenerate_on_reasoning(monkeypatch):
    mutate_dead_heads(monkeypatch)
    prompt, _ = prompts.reasoning(1)
    assert offline.generate(prompt, max_tokens=120) == (b":" * 120, "length")


def _step(shard, table, requests):
    """A batch: ``(tokens, done, table row)`` of each request."""
    ids = torch.tensor([token for tokens, _, _ in requests for token in tokens])
    positions = torch.cat([torch.arange(done, done + len(tokens)) for tokens, done, _ in requests])
    lengths = [len(tokens) for tokens, _, _ in requests]
    rows = table[[row for _, _, row in requests]]
    token_rows = torch.repeat_interleave(rows, torch.tensor(lengths), dim=0)
    return Step(
        input_ids=ids,
        positions=positions,
        query_start_loc=torch.tensor([0, *torch.tensor(lengths).cumsum(0).tolist()]),
        seq_lens=torch.tensor([done + len(tokens) for tokens, done, _ in requests]),
        block_table=rows,
        slot_mapping=shard.slots(positions, token_rows),
    )


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    interleave=st.sampled_from([1, 2, 8]),
    lengths=st.lists(st.integers(1, 90), min_size=1, max_size=4),
)
def test_topk_of_two_ranks_merged_is_topk_of_one(seed, interleave, lengths):
    """Whole batches: several requests at once, prefills and decodes, compared layer by layer."""
    from concurrent.futures import ThreadPoolExecutor

    generator = torch.Generator().manual_seed(seed)
    texts = [torch.randint(97, 100, (length,), generator=generator).tolist() for length in lengths]
    table = torch.randperm(len(texts) * 6, generator=generator).view(len(texts), 6)

    def run(shard, all_gather=None):
        made = Retrieval(num_layers=2, num_blocks=table.numel(), shard=shard, all_gather=all_gather)
        found = []
        first = [(text[: len(text) // 2 + 1], 0, row) for row, text in enumerate(texts)]
        second = [
            (text[len(done) :], len(done), row)
            for row, (text, (done, _, _)) in enumerate(zip(texts, first, strict=True))
        ]
        for batch in (first, [request for request in second if request[0]]):
            if batch:
                current = made.begin(_step(shard, table, batch))
                found += [current.layer(0), current.layer(1)]
        return found

    group = offline.ThreadGroup(2)
    alone = run(Shard(16))
    with ThreadPoolExecutor(2) as pool:
        ranks = list(pool.map(lambda rank: run(Shard(16, 2, rank, interleave), group.member(rank)), range(2)))
    for rank in ranks:
        for (scores, tokens), (wanted_scores, wanted_tokens) in zip(rank, alone, strict=True):
            assert torch.equal(scores, wanted_scores)
            assert torch.equal(tokens, wanted_tokens)


def test_a_prefix_cache_hit_finds_the_other_requests_blocks():
    """A second request whose table begins with the first one's blocks only brings its own tokens."""
    prompt, expected = prompts.needle(2, lines=6)
    cached = len(prompt) // 32 * 16
    shared = torch.arange(cached // 16)
    rest = -(-(len(prompt) + 40) // 16) - len(shared)
    first = torch.cat([shared, 40 + torch.arange(rest)]).unsqueeze(0)
    second = torch.cat([shared, 80 + torch.arange(rest)]).unsqueeze(0)
    made = Retrieval(num_layers=2, num_blocks=120, shard=Shard(16))
    assert offline._complete(made, first, prompt, 32, 64) == (expected, "stop")
    token, done, text, new = -1, cached, bytearray(), list(prompt[cached:])
    while len(text) < 32:
        token = offline.next_token(made, second, new, done)
        done += len(new)
        if token == offline.NEWLINE:
            break
        text.append(token)
        new = [token]
    assert bytes(text) == expected
