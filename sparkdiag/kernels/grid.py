"""Shapes: what is checked, what is timed, and how long that takes. Pure."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sparkdiag.errors import UsageError

HEAD_DIM = 128
"""Of DeepSeek V4's indexer; mirrored in ``inside/inputs.py``."""
WINDOWS = ("full", "half", "causal", "ragged", "empty")
LARGEST = (1 << 20, 1 << 24, 1024)
DEFAULT_HEADS = 64
_SHAPE = re.compile(r"([0-9]{1,9})\s*[x×*]\s*([0-9]{1,9})(?:\s*[x×*]\s*([0-9]{1,9}))?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Shape:
    """M query rows, N keys, H heads."""

    rows: int
    keys: int
    heads: int

    def __str__(self) -> str:
        return f"{self.rows} x {self.keys} x {self.heads}"


@dataclass(frozen=True, slots=True)
class Call:
    """One shape under one window."""

    shape: Shape
    window: str

    def as_json(self) -> dict[str, Any]:
        """As the child is told."""
        return {**asdict(self.shape), "window": self.window}


AUTHORS_ROW = Shape(1024, 131_072, 64)
"""Where the fix's author saw 28 times on GB10."""
AUTHORS_RATIO = 28.0

BENCH_SHAPES = (
    Shape(1024, 8192, 64),
    AUTHORS_ROW,
    Shape(8192, 8192, 64),
    Shape(8192, 32_768, 64),
    Shape(8192, 112_640, 64),
    Shape(8192, 450_000, 64),
)
"""Up to the issue's largest: a chunk of 8,192 rows, against the keys of a 450K prompt compressed by 4 and not."""
CPU_BENCH_SHAPES = (Shape(64, 256, 8), Shape(64, 1024, 8))
BENCH_WINDOWS = ("full", "half")

_CPU_SHAPES = (Shape(5, 70, 8), Shape(33, 260, 6))
_CPU_TILES = (Call(Shape(150, 400, 2), "ragged"), Call(Shape(150, 400, 2), "full"))
"""More than two tiles of the usual 64 rows, and three of 128 keys."""
_CUDA_SHAPES = (Shape(1, 300, 64), Shape(257, 4099, 64), Shape(64, 32_768, 32), Shape(1024, 8192, 64))
_COLLAPSED = Call(Shape(8192, 1100, 64), "causal")
"""The fallback's plan is down to one head a pass here."""


def check_calls(device: str) -> tuple[Call, ...]:
    """What ``kernel check`` calls: on the CPU so small that Triton's interpreter takes seconds."""
    shapes = _CPU_SHAPES if device == "cpu" else _CUDA_SHAPES
    calls = tuple(Call(shape, window) for shape in shapes for window in WINDOWS)
    return (*calls, *_CPU_TILES) if device == "cpu" else (*calls, _COLLAPSED)


def bench_calls(shapes: Sequence[Shape]) -> tuple[Call, ...]:
    """Every shape under the two windows."""
    return tuple(Call(shape, window) for shape in shapes for window in BENCH_WINDOWS)


def parse_shapes(texts: Iterable[str]) -> tuple[Shape, ...]:
    """Read ``1024x131072x64``, the heads left out for 64. Raises ``UsageError``."""
    return tuple(_shape(text) for text in texts)


def _shape(text: str) -> Shape:
    found = _SHAPE.fullmatch(text.strip().strip("[]"))
    sizes = [int(part) for part in found.groups(str(DEFAULT_HEADS))] if found else []
    if not sizes or any(not 1 <= size <= most for size, most in zip(sizes, LARGEST, strict=True)):
        raise UsageError(f"--shape {text!r} is no shape", remedy="rows x keys x heads, such as --shape 1024x131072x64")
    return Shape(*sizes)


def work_flop(shape: Shape, *, pairs: int | None = None) -> float:
    """2·M·N·H·D, or of the ``pairs`` of row and key within the windows: 2·pairs·H·D."""
    count = shape.rows * shape.keys if pairs is None else pairs
    return 2.0 * count * shape.heads * HEAD_DIM


FALLBACK_TFLOP_S = 15.0
KERNEL_TFLOP_S = 100.0
"""Of an H200, for the estimate: its fallback was seen at 15.8, a tf32 kernel at 160."""
COMPILE_S = 4.0
START_S = 15.0
CPU_CALL_S = 3.0


def estimate_s(
    calls: Sequence[Call], *, fallbacks: int, kernels: int, repeat: int, budget_s: float, device: str
) -> float:
    """About how long a bench takes on an H200; on a smaller GPU longer, by its float32 rate."""
    if device == "cpu":
        return START_S + CPU_CALL_S * len(calls) * (fallbacks + kernels)
    total = START_S
    for call in calls:
        for count, rate in ((fallbacks, FALLBACK_TFLOP_S), (kernels, KERNEL_TFLOP_S)):
            one = work_flop(call.shape) / rate / 1e12
            total += count * (one * 2 + min(max(2 * one, one * repeat), max(budget_s, 2 * one)))
        total += kernels * COMPILE_S / len(BENCH_WINDOWS)
    return total
