"""A small Llama whose attention is the sparse indexer's.

vLLM's own Llama layers run as they are, with dummy weights, except for attention: its KV cache is allocated, filled by
blocks and freed by vLLM as for any model, but dense attention is not computed (vLLM's CPU kernel is not right with
decode context parallelism). Each layer asks its indexer instead, and the answer comes from the indexer alone: the head
takes the token that followed the best match and outvotes what dummy weights say.
"""

import torch
from vllm.config import VllmConfig
from vllm.distributed import get_dcp_group
from vllm.forward_context import get_forward_context
from vllm.model_executor.models.llama import LlamaAttention, LlamaDecoderLayer, LlamaForCausalLM

from sparklab.indexer import Step
from sparklab.plugin import allow_context_parallel_attention
from sparklab.retrieval import Retrieval
from sparklab.shard import Shard
from sparklab.warmup import warm_up_kernels

allow_context_parallel_attention()

NEWLINE = 10


class SparkLabAttention(LlamaAttention):
    """Owns a KV cache like any attention layer, and leaves the looking back to the indexer."""

    def forward(self, positions, hidden_states):
        return torch.zeros_like(hidden_states)


class SparkLabDecoderLayer(LlamaDecoderLayer):
    def __init__(self, vllm_config: VllmConfig, prefix: str = "", config=None) -> None:
        super().__init__(vllm_config, prefix, config, attn_layer_type=SparkLabAttention)


class SparkLabForCausalLM(LlamaForCausalLM):
    """The model. Its hidden state is the sum of the layers' copies, each written as that token's code."""

    def __init__(self, *, vllm_config: VllmConfig, prefix: str = "") -> None:
        super().__init__(vllm_config=vllm_config, prefix=prefix, layer_type=SparkLabDecoderLayer)
        config = vllm_config.model_config.hf_config
        parallel = vllm_config.parallel_config
        self.num_layers = config.num_hidden_layers
        self.end_token = config.eos_token_id
        self.block_size = vllm_config.cache_config.block_size
        self.interleave = getattr(parallel, "cp_kv_cache_interleave_size", 1)
        self.retrieval: Retrieval | None = None
        generator = torch.Generator(device="cpu").manual_seed(0)
        signs = torch.randint(0, 2, (config.vocab_size, config.hidden_size), generator=generator, device="cpu")
        self.token_codes = signs.float() * 2 - 1
        warm_up_kernels()

    def forward(self, input_ids, positions, intermediate_tensors=None, inputs_embeds=None):
        hidden_states = self.model(input_ids, positions, intermediate_tensors, inputs_embeds)
        step = self._step(input_ids, positions)
        if step is None:
            return hidden_states
        retrieved = self._retrieve(step)
        hidden_states = hidden_states.float()
        hidden_states[: len(retrieved)] = hidden_states[: len(retrieved)].tanh() * 0.01 + retrieved
        return hidden_states

    def compute_logits(self, hidden_states):
        return hidden_states.float() @ self.token_codes.t()

    def _step(self, input_ids, positions) -> Step | None:
        """The step's batch as vLLM laid it out; None for a run without one (profiling, warm-up)."""
        metadata = get_forward_context().attn_metadata
        if not metadata:
            return None
        attention = next(iter(metadata.values()))
        num_tokens = int(attention.query_start_loc[-1])
        return Step(
            input_ids=input_ids[:num_tokens].to(torch.int64),
            positions=positions[:num_tokens].to(torch.int64),
            query_start_loc=attention.query_start_loc.to(torch.int64),
            seq_lens=attention.seq_lens.to(torch.int64),
            block_table=attention.block_table,
            slot_mapping=attention.slot_mapping[:num_tokens],
        )

    def _retrieve(self, step: Step) -> torch.Tensor:
        if self.retrieval is None:
            self.retrieval = self._make_retrieval()
        current = self.retrieval.begin(step)
        retrieved = torch.zeros((len(step.input_ids), self.token_codes.shape[1]))
        for layer in range(self.num_layers):
            scores, tokens = current.layer(layer)
            # The question's answer ends with its line.
            tokens = torch.where(tokens == NEWLINE, self.end_token, tokens)
            strength = torch.where(tokens < 0, 0.0, 1.0 + scores.clamp(min=0))
            retrieved += strength.unsqueeze(1) * self.token_codes[tokens.clamp(min=0)]
        return retrieved

    def _make_retrieval(self) -> Retrieval:
        group = get_dcp_group()
        attention = self.model.layers[0].self_attn.attn
        cache = attention.kv_cache
        cache = cache[0] if isinstance(cache, list) else cache
        num_blocks = cache.numel() // (2 * self.block_size * attention.num_kv_heads * attention.head_size)
        shard = Shard(self.block_size, group.world_size, group.rank_in_group, self.interleave)
        return Retrieval(
            num_layers=self.num_layers,
            num_blocks=num_blocks,
            shard=shard,
            all_gather=lambda tensor, dim: group.all_gather(tensor, dim=dim),
        )
