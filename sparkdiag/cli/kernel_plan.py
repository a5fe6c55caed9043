"""``sparkdiag kernel plan``: how the torch fallback cuts a call up, and the least time it can take."""

from typing import Annotated

import typer


def plan(
    seq_len: Annotated[int, typer.Option("--seq-len", help="Query rows of the call.")],
    seq_len_kv: Annotated[int, typer.Option("--seq-len-kv", help="Indexer keys of the call.")],
    heads: Annotated[int, typer.Option("--heads", help="Indexer heads.")] = 64,
) -> None:
    """Count how the torch fallback cuts a prefill call into passes; arithmetic alone, nothing is run.

    Example: sparkdiag kernel plan --seq-len 8192 --seq-len-kv 112640 --heads 64
    """
    from sparkdiag.kernels.plan import chunk_plan

    cut = chunk_plan(rows=seq_len, keys=seq_len_kv, heads=heads)
    typer.echo(f"{cut.head_chunk_size} head(s) and {cut.k_chunk_size:,} keys a pass, {cut.matmuls:,} matmuls")
