"""The stall laboratory: a tiny model that real vLLM serves and that retrieves by a sparse-attention indexer."""

__version__ = "0.1"
