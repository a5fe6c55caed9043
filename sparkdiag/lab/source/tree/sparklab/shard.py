"""Where a token of a request lives when decode context parallelism shards the key cache over ranks.

vLLM's mapping: a block holds ``block_size`` tokens a rank, so a row of the block table covers ``block_size * world``
positions, dealt to the ranks in runs of ``interleave``.
"""

from dataclasses import dataclass

import torch

PAD_SLOT = -1


@dataclass(frozen=True)
class Shard:
    """One rank's part of the keys."""

    block_size: int
    world_size: int = 1
    rank: int = 0
    interleave: int = 1

    def __post_init__(self):
        if self.block_size % self.interleave:
            raise ValueError(f"block size {self.block_size} is no multiple of the interleave size {self.interleave}")

    def slots(self, positions, block_rows):
        """KV slots of global positions; ``PAD_SLOT`` where another rank owns the position."""
        span = self.block_size * self.world_size
        offsets = positions % span
        run = self.interleave
        local = offsets // (run * self.world_size) * run + offsets % run
        blocks = block_rows.gather(-1, (positions // span).unsqueeze(-1)).squeeze(-1).to(torch.int64)
        mine = offsets // run % self.world_size == self.rank
        return torch.where(mine, blocks * self.block_size + local, PAD_SLOT)

    def local_count(self, length):
        """How many of a request's first ``length`` positions this rank owns."""
        run = self.interleave
        base = length // (run * self.world_size) * run
        return base + (length - base * self.world_size - self.rank * run).clamp(0, run)

    def global_position(self, local):
        """The position of this rank's ``local``-th key of a request."""
        run = self.interleave
        return local // run * (run * self.world_size) + self.rank * run + local % run
