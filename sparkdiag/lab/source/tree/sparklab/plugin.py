"""What vLLM needs to be told: the model, and that its CPU backend may run with decode context parallelism.

Entry point ``vllm.general_plugins``: called in the API server, the engine and every worker, in some more than once.
"""

from sparklab.shard import Shard


def register() -> None:
    """Register the model by name and let slot mapping know about context parallelism."""
    from vllm import ModelRegistry

    if "SparkLabForCausalLM" not in ModelRegistry.get_supported_archs():
        ModelRegistry.register_model("SparkLabForCausalLM", "sparklab.model:SparkLabForCausalLM")
    _shard_slot_mapping()


def _shard_slot_mapping() -> None:
    """vLLM's CPU stand-in for the slot-mapping kernel asserts context parallelism away; compute it instead.

    Workers load plugins before the platform picks up its stand-ins, so replacing the module's attribute is enough.
    """
    from vllm.utils import cpu_triton_utils

    stock = cpu_triton_utils._compute_slot_mapping_kernel_impl
    if getattr(stock, "sparklab", False):
        return

    # The parameter names are the kernel's: vLLM passes by name where they agree.
    def _compute_slot_mapping_kernel_impl(
        num_tokens,
        max_num_tokens,
        query_start_loc,
        positions,
        block_table,
        block_table_stride,
        slot_mapping,
        KV_CACHE_BLOCK_SIZE,
        TOTAL_CP_WORLD_SIZE=1,
        TOTAL_CP_RANK=0,
        CP_KV_CACHE_INTERLEAVE_SIZE=1,
        PAD_ID=-1,
        BLOCK_SIZE=1024,
    ):
        if TOTAL_CP_WORLD_SIZE == 1:
            return stock(
                num_tokens, max_num_tokens, query_start_loc, positions, block_table, block_table_stride,
                slot_mapping, KV_CACHE_BLOCK_SIZE, TOTAL_CP_WORLD_SIZE, TOTAL_CP_RANK, CP_KV_CACHE_INTERLEAVE_SIZE,
                PAD_ID, BLOCK_SIZE,
            )  # fmt: skip
        import torch

        shard = Shard(KV_CACHE_BLOCK_SIZE, TOTAL_CP_WORLD_SIZE, TOTAL_CP_RANK, CP_KV_CACHE_INTERLEAVE_SIZE)
        lengths = (query_start_loc[1:] - query_start_loc[:-1]).to(torch.int64)
        requests = torch.repeat_interleave(torch.arange(len(lengths)), lengths)
        slot_mapping[num_tokens:] = PAD_ID
        slot_mapping[:num_tokens] = shard.slots(positions[:num_tokens].to(torch.int64), block_table[requests])
        return None

    _compute_slot_mapping_kernel_impl.sparklab = True
    cpu_triton_utils._compute_slot_mapping_kernel_impl = _compute_slot_mapping_kernel_impl


def allow_context_parallel_attention() -> None:
    """Mark vLLM's CPU attention as fit for DCP. Only its KV cache is used: the lab's attention is the indexer's.

    Called where the model is imported, since importing the backend any earlier would decide the platform too early.
    """
    from vllm.v1.attention.backends.cpu_attn import CPUAttentionBackendImpl

    CPUAttentionBackendImpl.can_return_lse_for_decode = True
    CPUAttentionBackendImpl.supports_dcp = True
