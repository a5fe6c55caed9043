"""Random inputs of the indexer's logits, and the windows of keys that its rows may look at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

HEAD_DIM = 128
"""DeepSeek V4's indexer: D of every call."""
WINDOWS = ("full", "half", "causal", "ragged", "empty")
"""``half``: the second half of every row lies outside. ``causal``: a triangle that ends at the last key. ``ragged``:
any start, any end. ``empty``: the same, and every third row has no key at all."""


@dataclass(frozen=True)
class Case:
    """One call: M rows, N keys, H heads, and a window."""

    rows: int
    keys: int
    heads: int
    window: str
    head_dim: int = HEAD_DIM

    @property
    def label(self) -> str:
        return f"[{self.rows} x {self.keys} x {self.heads}] {self.window}"


@dataclass(frozen=True)
class Inputs:
    """What both kernels are given. ``Any`` stands for ``torch.Tensor``."""

    q: Any
    """float8_e4m3fn [M, H, D]"""
    keys: Any
    """float8_e4m3fn [N, D]"""
    scales: Any
    """float32 [N], one a key"""
    weights: Any
    """float32 [M, H], of both signs"""
    starts: Any
    """int32 [M]: ks, the first key of a row's window"""
    ends: Any
    """int32 [M]: ke, one past the last"""

    @property
    def kv(self) -> tuple[Any, Any]:
        return self.keys, self.scales

    def copied(self) -> Inputs:
        """The same values in memory of their own."""
        return Inputs(**{name: getattr(self, name).clone() for name in _NAMES})

    def restore(self, kept: Inputs) -> list[str]:
        """Make every tensor what ``kept`` holds; the names of those that were not, bit by bit."""
        changed = []
        for name in _NAMES:
            own, was = getattr(self, name), getattr(kept, name)
            if not torch.equal(own.view(torch.uint8), was.view(torch.uint8)):
                changed.append(name)
                own.copy_(was)
        return changed

    def inside(self) -> Any:
        """bool [M, N]: whether a key lies in its row's window."""
        offsets = torch.arange(self.keys.shape[0], device=self.keys.device)
        return (offsets[None, :] >= self.starts[:, None]) & (offsets[None, :] < self.ends[:, None])


_NAMES = ("q", "keys", "scales", "weights", "starts", "ends")


def make_inputs(case: Case, *, seed: int, device: str) -> Inputs:
    """Fresh inputs; the same on a device for the same seed."""
    random = torch.Generator(device=device).manual_seed(seed)

    def normal(*shape: int) -> Any:
        return torch.randn(shape, generator=random, device=device, dtype=torch.float32)

    starts, ends = make_window(case, seed=seed)
    return Inputs(
        q=_fp8(case.rows, case.heads, case.head_dim, random=random, device=device),
        keys=_fp8(case.keys, case.head_dim, random=random, device=device),
        scales=torch.rand(case.keys, generator=random, device=device, dtype=torch.float32) * 1.5 + 0.5,
        weights=normal(case.rows, case.heads),
        starts=starts.to(device=device, dtype=torch.int32),
        ends=ends.to(device=device, dtype=torch.int32),
    )


def _fp8(*shape: int, random: Any, device: str) -> Any:
    """Normal numbers, made a few at a time: the largest are 67 million."""
    made = torch.empty(shape, device=device, dtype=torch.float8_e4m3fn)
    for first in range(0, shape[0], 65536):
        part = made[first : first + 65536]
        part.copy_(torch.randn(part.shape, generator=random, device=device, dtype=torch.float32))
    return made


def make_window(case: Case, *, seed: int) -> tuple[Any, Any]:
    """``ks`` and ``ke`` of every row, int64 [M] on the CPU, 0 <= ks <= ke <= N."""
    rows, keys = case.rows, case.keys
    zeros = torch.zeros(rows, dtype=torch.int64)
    if case.window == "full":
        return zeros, zeros + keys
    if case.window == "half":
        return zeros, zeros + keys // 2
    if case.window == "causal":
        return zeros, (torch.arange(rows) + 1 + keys - rows).clamp(0, keys)
    random = torch.Generator().manual_seed(seed ^ 0x5EED)
    both = torch.randint(0, keys + 1, (2, rows), generator=random)
    starts, ends = both.min(dim=0).values, both.max(dim=0).values
    if case.window == "empty":
        ends[::3] = starts[::3]
    elif case.window == "ragged":
        # The borders, which a random window rarely meets: the last key alone, the first alone, all of them.
        for row, (start, end) in enumerate(((keys - 1, keys), (0, 1), (0, keys))[: rows - 1]):
            starts[row], ends[row] = start, end
    else:
        raise ValueError(f"no window is called {case.window}")
    return starts, ends
