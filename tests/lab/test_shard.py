"""Slots and positions agree with a plain walk over the tokens."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sparklab.plugin import Shard as PluginShard
from sparklab.shard import PAD_SLOT, Shard


@given(
    world=st.integers(1, 4),
    interleave=st.sampled_from([1, 2, 4, 8]),
    length=st.integers(0, 200),
)
def test_every_position_has_one_owner_one_slot_and_finds_back(world, interleave, length):
    shards = [Shard(8, world, rank, interleave) for rank in range(world)]
    table = torch.arange(30).flip(0).unsqueeze(0)
    positions = torch.arange(length)
    slots = [shard.slots(positions, table.expand(length, -1)) for shard in shards]
    owners = torch.stack([slot != PAD_SLOT for slot in slots]).sum(0) if length else torch.zeros(0)
    assert (owners == 1).all()
    for shard, slot in zip(shards, slots, strict=True):
        mine = positions[slot != PAD_SLOT]
        assert int(shard.local_count(torch.tensor(length))) == len(mine)
        assert shard.global_position(torch.arange(len(mine))).tolist() == mine.tolist()
        local = torch.arange(len(mine))
        assert slot[slot != PAD_SLOT].tolist() == (table[0][local // 8] * 8 + local % 8).tolist()


def test_an_interleave_that_splits_a_block_is_refused():
    with pytest.raises(ValueError, match="multiple"):
        Shard(8, 2, 0, 3)


def test_the_plugin_uses_the_same_mapping():
    assert PluginShard is Shard
