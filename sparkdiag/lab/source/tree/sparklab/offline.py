"""The retrieval without a server: a decode loop over made-up block tables, with any number of ranks as threads."""

import threading
from concurrent.futures import ThreadPoolExecutor

import torch

from sparklab.indexer import Step
from sparklab.retrieval import Retrieval
from sparklab.shard import Shard

NEWLINE = 10


class ThreadGroup:
    """All-gather between threads, in rank order."""

    def __init__(self, world_size: int) -> None:
        self.parts = [None] * world_size
        self.barrier = threading.Barrier(world_size, timeout=120)

    def member(self, rank: int):
        def all_gather(tensor, dim):
            self.parts[rank] = tensor
            self.barrier.wait()
            joined = torch.cat(self.parts, dim=dim)
            self.barrier.wait()
            return joined

        return all_gather


def generate(
    prompt: bytes, *, max_tokens: int, chunk_tokens: int = 256, num_layers: int = 2, block_size: int = 32,
    world_size: int = 1, interleave: int = 1, seed: int = 0,
) -> tuple[bytes, str]:  # fmt: skip
    """(text, finish reason) of a greedy completion, as every rank computed it; raises if ranks disagree."""
    group = ThreadGroup(world_size)
    blocks = (len(prompt) + max_tokens) // (block_size * world_size) + 1
    table = torch.randperm(blocks, generator=torch.Generator().manual_seed(seed)).unsqueeze(0)

    def one_rank(rank: int) -> tuple[bytes, str]:
        shard = Shard(block_size, world_size, rank, interleave)
        retrieval = Retrieval(num_layers=num_layers, num_blocks=blocks, shard=shard, all_gather=group.member(rank))
        try:
            return _complete(retrieval, table, prompt, max_tokens, chunk_tokens)
        except BaseException:
            group.barrier.abort()
            raise

    with ThreadPoolExecutor(world_size) as pool:
        results = list(pool.map(one_rank, range(world_size)))
    if any(result != results[0] for result in results):
        raise AssertionError(f"ranks disagree: {results}")
    return results[0]


def _complete(retrieval: Retrieval, table, prompt: bytes, max_tokens: int, chunk_tokens: int) -> tuple[bytes, str]:
    done, new, text = 0, list(prompt), bytearray()
    while True:
        for first in range(0, len(new), chunk_tokens):
            chunk = new[first : first + chunk_tokens]
            token = next_token(retrieval, table, chunk, done)
            done += len(chunk)
        if token in (NEWLINE, -1):
            return bytes(text), "stop"
        text.append(token)
        if len(text) == max_tokens:
            return bytes(text), "length"
        new = [token]


def next_token(retrieval: Retrieval, table, chunk: list[int], done: int) -> int:
    """One step of one request: its new tokens in, the layers' strongest vote for the next one out."""
    positions = torch.arange(done, done + len(chunk))
    step = Step(
        input_ids=torch.tensor(chunk),
        positions=positions,
        query_start_loc=torch.tensor([0, len(chunk)]),
        seq_lens=torch.tensor([done + len(chunk)]),
        block_table=table,
        slot_mapping=retrieval.shard.slots(positions, table.expand(len(chunk), -1)),
    )
    current = retrieval.begin(step)
    votes: dict[int, float] = {}
    for layer in range(len(retrieval.indexers)):
        scores, tokens = current.layer(layer)
        votes[int(tokens[-1])] = votes.get(int(tokens[-1]), 0.0) + 1 + max(float(scores[-1]), 0.0)
    return max(votes, key=votes.__getitem__)
