"""Slot mapping under both shapes that vLLM's CPU stand-in has had."""

import sys
import types

import pytest
import torch
from sparklab import plugin
from sparklab.shard import Shard


def stock_newer(
    num_tokens, max_num_tokens, query_start_loc, positions, block_table, block_table_stride, slot_mapping,
    KV_CACHE_BLOCK_SIZE, TOTAL_CP_WORLD_SIZE=1, TOTAL_CP_RANK=0, CP_KV_CACHE_INTERLEAVE_SIZE=1, PAD_ID=-1,
    BLOCK_SIZE=1024,
):  # fmt: skip
    assert TOTAL_CP_WORLD_SIZE == 1
    slot_mapping.fill_(77)


def stock_older(
    num_tokens, max_num_tokens, query_start_loc, positions, block_table, block_table_stride, block_size, slot_mapping,
    KV_CACHE_BLOCK_SIZE=None, BLOCKS_PER_KV_BLOCK=1, TOTAL_CP_WORLD_SIZE=1, TOTAL_CP_RANK=0,
    CP_KV_CACHE_INTERLEAVE_SIZE=1, PAD_ID=-1, BLOCK_SIZE=1024,
):  # fmt: skip
    assert TOTAL_CP_WORLD_SIZE == 1
    slot_mapping.fill_(77)


class Wrapper:
    def __init__(self, func):
        self.func = func


@pytest.fixture(params=[stock_newer, stock_older])
def stand_ins(request, monkeypatch):
    module = types.ModuleType("vllm.utils.cpu_triton_utils")
    module._compute_slot_mapping_kernel_impl = request.param
    if request.param is stock_older:
        module.compute_slot_mapping_kernel = Wrapper(request.param)
    packages = types.ModuleType("vllm"), types.ModuleType("vllm.utils")
    packages[1].cpu_triton_utils = module
    for package in (*packages, module):
        monkeypatch.setitem(sys.modules, package.__name__, package)
    plugin._shard_slot_mapping()
    return module


def launch(impl, stock, world, rank):
    slots = torch.full((8,), 5, dtype=torch.int64)
    operands = {
        "num_tokens": 5,
        "max_num_tokens": 8,
        "query_start_loc": torch.tensor([0, 3, 5], dtype=torch.int32),
        "positions": torch.tensor([6, 7, 8, 0, 1]),
        "block_table": torch.tensor([[4, 2, 9], [7, 1, 0], [3, 3, 3]], dtype=torch.int32),
        "block_table_stride": 3,
        "slot_mapping": slots,
        "TOTAL_CP_WORLD_SIZE": world,
        "TOTAL_CP_RANK": rank,
    }
    if stock is stock_older:
        impl(**operands, block_size=4)
    else:
        impl(**operands, KV_CACHE_BLOCK_SIZE=4)
    return slots.tolist()


def test_two_ranks_share_the_positions(stand_ins):
    impl = stand_ins._compute_slot_mapping_kernel_impl
    stock = impl.__wrapped__
    # Positions 6, 7, 8 of a request on blocks 4, 2 (8 positions a block row), and 0, 1 of one on block 7.
    assert launch(impl, stock, 2, 0) == [4 * 4 + 3, -1, 2 * 4, 7 * 4, -1, -1, -1, -1]
    assert launch(impl, stock, 2, 1) == [-1, 4 * 4 + 3, -1, -1, 7 * 4, -1, -1, -1]


def test_one_rank_is_left_to_vllm(stand_ins):
    impl = stand_ins._compute_slot_mapping_kernel_impl
    assert launch(impl, impl.__wrapped__, 1, 0) == [77] * 8


def test_patching_twice_patches_once(stand_ins):
    impl = stand_ins._compute_slot_mapping_kernel_impl
    plugin._shard_slot_mapping()
    assert stand_ins._compute_slot_mapping_kernel_impl is impl
    assert plugin.Shard is Shard
    wrapper = getattr(stand_ins, "compute_slot_mapping_kernel", None)
    assert wrapper is None or wrapper.func is impl
