"""Time the fast kernel on the shapes of a whole prefill: ``python -m sparklab.baseline --prompt-tokens 16384 ...``.

Imports neither vLLM nor torch. Prints one line of JSON: ``seconds`` is what all layers and chunks of the prompt cost in
the fast kernel alone, one rank, without the server's own work.
"""

import argparse
import json
import time

import numpy as np

from sparklab.compiled import FP8_VALUES, mqa_logits, mqa_topk, row_topk
from sparklab.sizes import HEAD_DIM, NUM_HEADS, NUM_LAYERS, TOPK_TOKENS

MOST_TIMED_CHUNKS = 5


def chunk_times(prompt_tokens: int, chunk_tokens: int, dcp: int, most_timed: int) -> dict[int, float]:
    """Seconds of one layer's call, by the number of tokens before the chunk, for evenly spread chunks."""
    starts = list(range(0, prompt_tokens, chunk_tokens))
    wanted = sorted({round(i) for i in np.linspace(0, len(starts) - 1, min(len(starts), most_timed))})
    _time_call(1, 0, dcp)  # compiles, or loads what was compiled
    return {starts[i]: _time_call(min(chunk_tokens, prompt_tokens - starts[i]), starts[i], dcp) for i in wanted}


def _time_call(rows: int, before: int, dcp: int) -> float:
    """The better of two calls on random operands."""
    generator = np.random.default_rng(0)
    total = -(-(before + rows) // dcp)
    q = generator.standard_normal((rows, NUM_HEADS, HEAD_DIM), np.float32)
    weights = generator.random((rows, NUM_HEADS), np.float32)
    keys = generator.integers(0, 120, (total, HEAD_DIM), np.uint8)
    scales = np.ones(total, np.float32)
    starts, ends = np.zeros(rows, np.int64), (before + np.arange(rows)) // dcp
    scores, indices = np.empty((rows, TOPK_TOKENS), np.float32), np.empty((rows, TOPK_TOKENS), np.int32)
    operands = (q, weights, keys, scales, FP8_VALUES, starts, ends)
    logits = np.empty((rows, total), np.float32) if dcp > 1 else None
    times = []
    for _ in range(2):
        began = time.perf_counter()
        if logits is None:
            mqa_topk(*operands, scores, indices)
        else:
            mqa_logits(*operands, logits)
            row_topk(logits, starts, ends, scores, indices)
        times.append(time.perf_counter() - began)
    return min(times)


def whole_prefill(prompt_tokens: int, chunk_tokens: int, times: dict[int, float]) -> float:
    """All chunks of one layer: a chunk's time is linear in the tokens before it, so the rest is interpolated."""
    starts = np.arange(0, prompt_tokens, chunk_tokens)
    return float(np.interp(starts, list(times), list(times.values())).sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prompt-tokens", type=int, required=True)
    parser.add_argument("--chunk-tokens", type=int, required=True)
    parser.add_argument("--dcp", type=int, default=1)
    parser.add_argument("--layers", type=int, default=NUM_LAYERS)
    parser.add_argument("--timed-chunks", type=int, default=MOST_TIMED_CHUNKS)
    asked = parser.parse_args()
    times = chunk_times(asked.prompt_tokens, asked.chunk_tokens, asked.dcp, asked.timed_chunks)
    chunks = -(-asked.prompt_tokens // asked.chunk_tokens)
    kernel = "fused top-k" if asked.dcp == 1 else "logits, then top-k"
    how = f"{kernel}: {len(times)} of {chunks} chunks timed, better of two calls each"
    if len(times) < chunks:
        how += ", the others interpolated"
    seconds = asked.layers * whole_prefill(asked.prompt_tokens, asked.chunk_tokens, times)
    document = {
        "seconds": round(seconds, 4),
        "layers": asked.layers,
        "chunks": chunks,
        "timed_chunks": len(times),
        "how": f"{how}; one layer measured, times {asked.layers} layers; one rank at DCP {asked.dcp}",
    }
    print(json.dumps(document))


if __name__ == "__main__":
    main()
