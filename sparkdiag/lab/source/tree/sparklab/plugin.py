"""What vLLM needs to be told: the model, and that its CPU backend may run with decode context parallelism.

Entry point ``vllm.general_plugins``: called in the API server, the engine and every worker, in some more than once.
"""

import functools
import inspect

from sparklab.shard import Shard


def register() -> None:
    """Register the model by name and let slot mapping know about context parallelism."""
    from vllm import ModelRegistry

    if "SparkLabForCausalLM" not in ModelRegistry.get_supported_archs():
        ModelRegistry.register_model("SparkLabForCausalLM", "sparklab.model:SparkLabForCausalLM")
    _shard_slot_mapping()


def _shard_slot_mapping() -> None:
    """vLLM's CPU stand-in for the slot-mapping kernel asserts context parallelism away; compute it instead.

    Workers load plugins before the platform picks up its stand-ins, so replacing them in their module is enough.
    Its parameters changed between releases: they are read from its signature, which the replacement keeps.
    """
    from vllm.utils import cpu_triton_utils

    stock = cpu_triton_utils._compute_slot_mapping_kernel_impl
    if getattr(stock, "sparklab", False):
        return
    signature = inspect.signature(stock)

    @functools.wraps(stock)
    def sharded(*args, **kwargs):
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        if given.arguments["TOTAL_CP_WORLD_SIZE"] == 1:
            return stock(*args, **kwargs)
        return _write_slots(**given.arguments)

    sharded.sparklab = True
    cpu_triton_utils._compute_slot_mapping_kernel_impl = sharded
    wrapper = getattr(cpu_triton_utils, "compute_slot_mapping_kernel", None)
    if wrapper is not None:  # before 0.32 a wrapper object had bound the function already
        wrapper.func = sharded


def _write_slots(
    *, num_tokens, query_start_loc, positions, block_table, slot_mapping, KV_CACHE_BLOCK_SIZE,
    TOTAL_CP_WORLD_SIZE, TOTAL_CP_RANK, CP_KV_CACHE_INTERLEAVE_SIZE, PAD_ID, **rest,
):  # fmt: skip
    """The kernel's work; the parameter names are its own."""
    import torch

    if rest.get("BLOCKS_PER_KV_BLOCK", 1) != 1:
        raise NotImplementedError("the lab needs one block size for the KV cache and its kernels")
    block_size = KV_CACHE_BLOCK_SIZE or rest["block_size"]
    shard = Shard(block_size, TOTAL_CP_WORLD_SIZE, TOTAL_CP_RANK, CP_KV_CACHE_INTERLEAVE_SIZE)
    lengths = (query_start_loc[1:] - query_start_loc[:-1]).to(torch.int64)
    requests = torch.repeat_interleave(torch.arange(len(lengths)), lengths)
    slot_mapping[num_tokens:] = PAD_ID
    slot_mapping[:num_tokens] = shard.slots(positions[:num_tokens].to(torch.int64), block_table[requests])


def allow_context_parallel_attention() -> None:
    """Mark vLLM's CPU attention as fit for DCP. Only its KV cache is used: the lab's attention is the indexer's.

    Called where the model is imported, since importing the backend any earlier would decide the platform too early.
    """
    from vllm.v1.attention.backends.cpu_attn import CPUAttentionBackendImpl

    CPUAttentionBackendImpl.can_return_lse_for_decode = True
    CPUAttentionBackendImpl.supports_dcp = True
