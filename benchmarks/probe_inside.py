"""The child of ``benchmarks.probe``: runs in the lab's environment, and imports nothing of sparkdiag but its probe.

``python probe_inside.py PAIRS PROMPT_TOKENS``; one JSON list a pair on stdout: CPU seconds without and with the ledger.
"""

import importlib
import json
import random
import sys
import time
from types import CodeType, FunctionType
from typing import Any

CHUNK_TOKENS = 256
LAYERS = 3
BLOCK_SIZE = 32
WRITTEN_EVERY_S = 0.5


class Switch:
    """The watched functions with their own code, or with the stand-ins'."""

    def __init__(self, wrapped: "list[tuple[Any, int]]") -> None:
        self._functions: list[tuple[FunctionType, CodeType, CodeType]] = []
        for recorded, _line in wrapped:
            function = vars(sys.modules[recorded.module])[recorded.name]
            original = function.__globals__[f"_sparkdiag_original{recorded.index}"]
            self._functions.append((function, original.__code__, function.__code__))

    def turn(self, *, recorded: bool) -> None:
        for function, own, stand_in in self._functions:
            function.__code__ = stand_in if recorded else own


class Prefill:
    """A prompt's chunks through the layers of the lab's retrieval, one rank."""

    def __init__(self, prompt: bytes) -> None:
        torch = importlib.import_module("torch")
        self._offline = importlib.import_module("sparklab.offline")
        shard = importlib.import_module("sparklab.shard").Shard(BLOCK_SIZE)
        blocks = len(prompt) // BLOCK_SIZE + 1
        self._table = torch.randperm(blocks).unsqueeze(0)
        self._retrieval = self._offline.Retrieval(num_layers=LAYERS, num_blocks=blocks, shard=shard)
        self._prompt = prompt
        self._done = 0

    def chunk(self) -> bool:
        """Compute the next one; False after the last."""
        chunk = list(self._prompt[self._done : self._done + CHUNK_TOKENS])
        if chunk:
            self._offline.next_token(self._retrieval, self._table, chunk, self._done)
        self._done += len(chunk)
        return bool(chunk)


def pair(switch: Switch, ledger: Any, prompt: bytes) -> "list[float]":
    """CPU seconds without and with the ledger, of one prefill each.

    Woven into each other: every second chunk is recorded, in the second prefill the others, so that whatever
    disturbs for longer than a chunk disturbs both.
    """
    took, written_s = [0.0, 0.0], 0.0
    for first in (0, 1):
        prefill, number, more = Prefill(prompt), first, True
        while more:
            recorded = number % 2 == 1
            switch.turn(recorded=recorded)
            began = time.process_time()
            more = prefill.chunk()
            if recorded and began - written_s > WRITTEN_EVERY_S:
                ledger.tend()  # as often as the probe's thread does it, and counted with the calls it is of
                written_s = began
            took[recorded] += time.process_time() - began
            number += 1
    return took


def main() -> None:
    pairs, tokens = int(sys.argv[1]), int(sys.argv[2])
    importlib.import_module("sparkdiag_probe").load()
    importlib.import_module("sparklab.offline")
    ledger = importlib.import_module("sparkdiag_probe.agent")._ledger
    switch, chance = Switch(ledger.wrapper.wrapped), random.Random(0)
    for number in range(-1, pairs):
        took = pair(switch, ledger, bytes(chance.choices(range(256), k=tokens if number >= 0 else 2 * CHUNK_TOKENS)))
        if number >= 0:  # the first compiles, or loads what was compiled
            print(json.dumps(took), flush=True)


if __name__ == "__main__":
    main()
