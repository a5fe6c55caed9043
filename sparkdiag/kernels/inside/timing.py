"""How long a call takes: median of device events, after a warm-up, with the L2 cache emptied before each call."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

FLUSH_BYTES = 256 << 20
"""More than any L2: 50 MB on an H200, 126 MB on a B200."""
LONG_S = 1.0
"""A call that takes longer needs no second warm-up."""


def time_calls(
    call: Callable[[], Any], *, device: str, repeat: int, budget_s: float, tick: Callable[[], None]
) -> list[float]:
    """Milliseconds of up to ``repeat`` calls, at least two where the first two do not use the budget up, else one.

    On CUDA by events, which see the device's own time with all its gaps; on the CPU by the wall clock.
    """
    began = time.monotonic()
    call()
    _wait(device)
    if time.monotonic() - began < LONG_S:
        call()
        _wait(device)
    flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device=device) if device != "cpu" else None
    taken: list[float] = []
    began = time.monotonic()
    while len(taken) < repeat:
        taken.append(_once(call, device=device, flush=flush))
        tick()
        spent = time.monotonic() - began
        if len(taken) >= 2 and spent + spent / len(taken) > budget_s:
            break
        if spent > budget_s:
            break
    return taken


def _once(call: Callable[[], Any], *, device: str, flush: Any) -> float:
    if device == "cpu":
        began = time.perf_counter()
        call()
        return (time.perf_counter() - began) * 1e3
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    flush.zero_()
    start.record()
    got = call()
    end.record()
    torch.cuda.synchronize()
    del got
    return float(start.elapsed_time(end))


def _wait(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize()
