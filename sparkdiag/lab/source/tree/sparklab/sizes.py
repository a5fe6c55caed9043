"""The lab's sizes, in one place that needs no torch."""

NUM_LAYERS = 3
"""As in ``model/config.json``."""
CONTEXT_LENGTHS = (4, 8, 16, 32)
"""How many of the last tokens each indexer head looks at."""
CODE_BITS = (8, 12, 13, 14)
"""How many signs each head's hash has."""
HEAD_WEIGHTS = (8.0, 4.0, 2.0, 1.0)
"""A shorter context outweighs all longer ones together."""
NUM_HEADS = len(CONTEXT_LENGTHS)
HEAD_DIM = sum(CODE_BITS) + 1
"""The last dimension is constant: it carries the threshold. A multiple of 4, as the compiled kernels want."""
TOPK_TOKENS = 8
