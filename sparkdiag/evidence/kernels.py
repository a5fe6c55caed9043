"""What ``sparkdiag kernel plan`` answers: the fallback's passes, their work, and the least time of both paths."""

from typing import Literal

from pydantic import Field

from sparkdiag.evidence.base import SCHEMA, Value


class Figure(Value):
    """A number of a GPU and where it stands."""

    value: float = Field(gt=0)
    source: str = Field(pattern=r"^https://\S+$")
    """The maker's page, or where the number was read."""
    unconfirmed: str | None = None
    """Why the number is not sure; None where a page that shows it was read."""


class Gpu(Value):
    """Peaks of one GPU: dense, not sparse, at the highest clock that its maker states."""

    name: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")
    """``h200``: what ``--gpu`` takes."""
    title: str
    devices: tuple[str, ...] = ()
    """Names that the driver gives this device."""
    fp32_tflops: Figure
    """Of the CUDA cores."""
    tf32_tflops: Figure
    fp8_tflops: Figure
    memory_gb_s: Figure
    """10^9 bytes a second."""
    cache_mib: Figure
    """All that lies between the multiprocessors and the memory together."""

    @property
    def unconfirmed(self) -> tuple[str, ...]:
        """Names of the figures that are not sure."""
        return tuple(name for name in FIGURES if getattr(self, name).unconfirmed is not None)


FIGURES = ("fp32_tflops", "tf32_tflops", "fp8_tflops", "memory_gb_s", "cache_mib")


class TorchFloor(Value):
    """The least time of the torch fallback on one GPU, in milliseconds."""

    matmuls_ms: float
    others_ms: float
    """The passes over the scores, and what prepares keys and queries."""
    floor_ms: float
    """Both together: one stream runs them one after the other."""
    uncached_ms: float
    """If every byte passed the memory. No floor; an H200 was measured at 1.7 times this."""


class Floor(Value):
    """Both paths on one GPU."""

    gpu: str
    torch: TorchFloor
    fast_ms: float
    """FP8 tensor cores on the products inside the windows, operands read and logits written once."""
    fast_bound: Literal["compute", "memory"]


class PlannedChunk(Value):
    """One chunk of the prompt, one layer of it."""

    chunk: int
    """From 1."""
    rows: int
    keys: int
    """Of the rank that holds most."""
    calls: int
    head_chunk_size: int
    """Of its largest call, as ``k_chunk_size``."""
    k_chunk_size: int
    matmuls: int
    """Of all its calls."""


class Cut(Value):
    """The calls and passes that everything asked about comes to, and their work."""

    max_logits_mib: int | None
    """The limit by which vLLM splits a chunk's rows; None: not split."""
    calls: int
    rows: int
    """Most of a call."""
    head_chunk_size: int
    """Of the largest call of the chunk with most scores, as ``k_chunk_size``."""
    k_chunk_size: int
    matmuls: int
    launches: int
    """Kernels, the matmuls among them."""
    matmul_flops: int
    bytes_moved: int
    """Read and written by all kernels, in memory or in a cache."""
    chunks: tuple[PlannedChunk, ...] = ()
    floors: tuple[Floor, ...] = ()


class Asked(Value):
    """What was asked about."""

    rows: int
    """Of the call, or of a whole chunk."""
    keys: int
    """Of the call, or of the whole prompt on the rank that holds most."""
    heads: int
    head_dim: int
    budget_bytes: int
    matmul: Literal["fp32", "tf32"]
    window_keys: int | None = None
    """Keys inside a row's window, where a call alone is asked about; None: all."""
    prompt_tokens: int | None = None
    chunk_tokens: int | None = None
    compress_ratio: int | None = None
    dcp: int | None = None
    layers: int = 1
    scenario: str | None = None


class Collapse(Value):
    """Where a call of so many rows begins to take one head a pass."""

    rows: int
    beyond_keys: int
    """0: at any number of keys."""
    chunks: int = 0
    """Chunks of the prompt whose largest call takes one head a pass, in the first cut."""
    first_chunk: int | None = None
    tokens: int | None = None
    """Where the first of them ends in the prompt."""


class KernelPlan(Value):
    """The answer. Its first three numbers are those of the first cut; of a prompt they are those of the chunk with most
    scores, one layer of it."""

    schema_version: int = Field(default=SCHEMA, alias="schema")
    head_chunk_size: int
    k_chunk_size: int
    matmuls: int
    asked: Asked
    collapse: Collapse
    fast_flops: int
    """Inside the windows."""
    fast_bytes: int
    cuts: tuple[Cut, ...]
    gpus: tuple[Gpu, ...] = ()
