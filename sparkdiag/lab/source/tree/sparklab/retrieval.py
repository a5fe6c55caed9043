"""The lab's whole answer: find each token's context in the past, layer by layer, and copy what followed there.

Only tensors: the model runs it on vLLM's block tables, the tests and :mod:`sparklab.offline` on their own.
"""

import torch

from sparklab.indexer import Indexer, KeyCache, Step, TokenCache, build_metadata, context_hashes
from sparklab.shard import Shard
from sparklab.sizes import CONTEXT_LENGTHS, TOPK_TOKENS
from sparklab.sparse_attn_indexer import sparse_attn_indexer


class Retrieval:
    """One rank's caches and indexers."""

    def __init__(self, *, num_layers: int, num_blocks: int, shard: Shard, all_gather=None) -> None:
        self.shard = shard
        self.all_gather = all_gather
        self.tokens = TokenCache(num_blocks, shard)
        self.indexers = [Indexer(layer) for layer in range(num_layers)]
        self.key_caches = [KeyCache(num_blocks, shard) for _ in range(num_layers)]

    def begin(self, step: Step) -> "RetrievalStep":
        """Record the step's tokens; the layers then ask for their own retrievals."""
        self.tokens.write(step)
        return RetrievalStep(self, step)


class RetrievalStep:
    """What all layers share within one step."""

    def __init__(self, retrieval: Retrieval, step: Step) -> None:
        self.retrieval = retrieval
        self.step = step
        contexts = retrieval.tokens.contexts(step, max(CONTEXT_LENGTHS))
        self.hashes = context_hashes(contexts, len(retrieval.indexers))
        self.metadata = build_metadata(step, retrieval.shard)

    def layer(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        """(score, token) of this layer for each token of the step; the token is -1 where there is no past."""
        retrieval = self.retrieval
        indexer, k_cache = retrieval.indexers[index], retrieval.key_caches[index]
        (keys, key_scales), (q, weights) = indexer.keys_and_queries(self.hashes[index])
        k_cache.write(self.step.slot_mapping, keys, key_scales)
        scores, positions = sparse_attn_indexer(
            indexer.k_cache_prefix,
            q,
            weights,
            k_cache,
            self.metadata,
            TOPK_TOKENS,
            retrieval.shard,
            retrieval.all_gather,
        )
        return scores[:, 0], retrieval.tokens.following(self.step, positions[:, :1].to(torch.int64)).squeeze(1)
