"""The sparse-attention indexer: what a layer keeps of the past, and the codes by which it finds it again.

The key of position ``j`` encodes the text that ends at ``j``; the query of position ``i`` the text that ends at ``i``.
Head ``h`` looks at the last ``CONTEXT_LENGTHS[h]`` tokens, hashed to a code of signs; the dot product of query and key
is at its highest only where both hashes agree, and the query's constant subtracts everything below that, so that after
the relu a head contributes exactly 2 where its context matches and 0 elsewhere. Short contexts weigh more than all
longer ones together: since a true match of a long context is one of the shorter ones too, the highest score is the
longest true match, and a chance collision of one head cannot win.

Codes are small integers, exact in FP8 with a power-of-two scale, so equal matches have equal scores on every kernel
and every rank. Equal scores prefer the latest position.
"""

from dataclasses import dataclass

import torch

from sparklab.shard import Shard
from sparklab.sizes import CODE_BITS, CONTEXT_LENGTHS, HEAD_DIM, HEAD_WEIGHTS, NUM_HEADS

FP8_MAX = 448.0


@dataclass(frozen=True)
class Step:
    """One engine step as the indexer sees it: the batch's new tokens and where each request's past lies."""

    input_ids: torch.Tensor
    positions: torch.Tensor
    query_start_loc: torch.Tensor
    """[requests + 1]"""
    seq_lens: torch.Tensor
    """[requests], whole lengths, not this rank's share."""
    block_table: torch.Tensor
    """[requests, blocks]"""
    slot_mapping: torch.Tensor
    """[tokens], ``PAD_SLOT`` for tokens whose key another rank keeps."""

    @property
    def query_lens(self):
        return self.query_start_loc[1:] - self.query_start_loc[:-1]

    @property
    def request_of_token(self):
        return torch.repeat_interleave(torch.arange(len(self.query_lens)), self.query_lens)


@dataclass(frozen=True)
class IndexerChunk:
    """Rows of the step that are scored together, and this rank's keys of their requests, one after another."""

    rows: torch.Tensor
    key_slots: torch.Tensor
    cu_seqlen_ks: torch.Tensor
    """[rows]: where the row's own keys start among ``key_slots``."""
    cu_seqlen_ke: torch.Tensor
    """[rows]: where they end: only positions before the row's, whose following token is known."""

    @property
    def local_total_seq_lens(self):
        return self.key_slots.shape[0]


@dataclass(frozen=True)
class IndexerMetadata:
    """The step split as the dispatch wants it. Requests with one new token are decodes."""

    num_tokens: int
    prefill_chunks: tuple[IndexerChunk, ...]
    decode_chunks: tuple[IndexerChunk, ...]


def build_metadata(step: Step, shard: Shard) -> IndexerMetadata:
    decodes = step.query_lens == 1
    chunks = {True: (), False: ()}
    for is_decode in (False, True):
        requests = torch.nonzero(decodes == is_decode).flatten()
        if len(requests):
            chunks[is_decode] = (_build_chunk(step, shard, requests),)
    return IndexerMetadata(
        num_tokens=int(step.query_start_loc[-1]), prefill_chunks=chunks[False], decode_chunks=chunks[True]
    )


def _build_chunk(step: Step, shard: Shard, requests: torch.Tensor) -> IndexerChunk:
    rows, key_slots, starts, ends = [], [], [], []
    base = 0
    for request in requests.tolist():
        row = torch.arange(int(step.query_start_loc[request]), int(step.query_start_loc[request + 1]))
        local = torch.arange(int(shard.local_count(step.seq_lens[request])))
        blocks = step.block_table[request].to(torch.int64)[local // shard.block_size]
        rows.append(row)
        key_slots.append(blocks * shard.block_size + local % shard.block_size)
        starts.append(torch.full((len(row),), base, dtype=torch.int32))
        ends.append((base + shard.local_count(step.positions[row])).to(torch.int32))
        base += len(local)
    return IndexerChunk(torch.cat(rows), torch.cat(key_slots), torch.cat(starts), torch.cat(ends))


class TokenCache:
    """The token at every position of every cached block, the same on all ranks.

    Kept by block, not by request: a block that the prefix cache hands to another request brings its tokens along.
    """

    def __init__(self, num_blocks: int, shard: Shard) -> None:
        self.span = shard.block_size * shard.world_size
        self.tokens = torch.zeros(num_blocks * self.span, dtype=torch.int64)

    def _places(self, positions, block_rows):
        blocks = block_rows.gather(-1, positions // self.span).to(torch.int64)
        return blocks * self.span + positions % self.span

    def write(self, step: Step) -> None:
        rows = step.block_table[step.request_of_token]
        self.tokens[self._places(step.positions.unsqueeze(-1), rows).squeeze(-1)] = step.input_ids

    def contexts(self, step: Step, length: int) -> torch.Tensor:
        """[tokens, length]: the tokens that end at each new token, the newest first, -1 before the request's start."""
        wanted = step.positions.unsqueeze(-1) - torch.arange(length)
        found = self.tokens[self._places(wanted.clamp(min=0), step.block_table[step.request_of_token])]
        return torch.where(wanted < 0, -1, found)

    def following(self, step: Step, positions: torch.Tensor) -> torch.Tensor:
        """The tokens that followed ``positions`` [tokens, k] of each token's own request; -1 where there is none."""
        wanted = (positions + 1).clamp(min=0)
        found = self.tokens[self._places(wanted, step.block_table[step.request_of_token])]
        return torch.where(positions < 0, -1, found)


class KeyCache:
    """One layer's FP8 keys with their scales, by KV slot: this rank's shard only."""

    def __init__(self, num_blocks: int, shard: Shard) -> None:
        slots = num_blocks * shard.block_size
        self.values = torch.zeros((slots, HEAD_DIM), dtype=torch.float8_e4m3fn)
        self.scales = torch.zeros(slots, dtype=torch.float32)

    def write(self, slot_mapping: torch.Tensor, values: torch.Tensor, scales: torch.Tensor) -> None:
        mine = slot_mapping >= 0
        # Indexed stores are not implemented for FP8 on CPU: move the bytes.
        self.values.view(torch.uint8)[slot_mapping[mine]] = values.view(torch.uint8)[mine]
        self.scales[slot_mapping[mine]] = scales[mine]

    def gather(self, slots: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.values.view(torch.uint8)[slots].view(torch.float8_e4m3fn), self.scales[slots]


def quantize_fp8(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """FP8 with one power-of-two scale for each row of the last dimension (exact for small integers)."""
    amax = values.abs().amax(-1).clamp(min=1e-4)
    scales = torch.exp2(torch.ceil(torch.log2(amax / FP8_MAX)))
    return (values / scales.unsqueeze(-1)).to(torch.float8_e4m3fn), scales


def context_hashes(contexts: torch.Tensor, num_layers: int) -> torch.Tensor:
    """[layers, heads, tokens]: a hash of the last ``CONTEXT_LENGTHS[head]`` tokens, seeded by the layer."""
    seeds = torch.arange(num_layers, dtype=torch.int64).unsqueeze(1) + 0x51ED270B
    hashed = seeds.expand(num_layers, len(contexts)).contiguous()
    found = []
    for length, column in enumerate((contexts + 2).unbind(1), start=1):
        hashed = (hashed ^ column) * 0x5851F42D4C957F2D
        hashed = hashed ^ (hashed >> 31)
        if length in CONTEXT_LENGTHS:
            found.append(hashed)
    return torch.stack(found, dim=1)


class Indexer:
    """One layer's indexer: keys and queries from the hashes of that layer."""

    def __init__(self, layer: int) -> None:
        self.k_cache_prefix = f"model.layers.{layer}.self_attn.indexer.k_cache"

    def keys_and_queries(self, hashes: torch.Tensor) -> tuple[tuple, tuple]:
        """FP8 keys [tokens, HEAD_DIM] with scales, and FP8 queries [tokens, heads, HEAD_DIM] with the heads' weights.

        ``hashes`` is [heads, tokens]. A head's code is +1 and -1 by the bits of its hash; the query's threshold lets
        only full agreement through the relu. The query's scale is folded into the weights.
        """
        tokens = hashes.shape[1]
        keys = torch.ones((tokens, HEAD_DIM), dtype=torch.float32)
        queries = torch.zeros((tokens, NUM_HEADS, HEAD_DIM), dtype=torch.float32)
        first = 0
        for head, bits in enumerate(CODE_BITS):
            code = (hashes[head].unsqueeze(1) >> torch.arange(7, 7 + bits) & 1).float() * 2 - 1
            keys[:, first : first + bits] = code
            queries[:, head, first : first + bits] = code
            queries[:, head, -1] = 2 - bits
            first += bits
        q_values, q_scales = quantize_fp8(queries)
        return quantize_fp8(keys), (q_values, q_scales * torch.tensor(HEAD_WEIGHTS, dtype=torch.float32))
