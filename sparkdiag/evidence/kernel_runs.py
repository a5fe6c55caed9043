"""What ``sparkdiag kernel check`` and ``sparkdiag kernel bench`` found, as the child told it."""

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from sparkdiag.evidence.base import SCHEMA, Value

Device = Literal["cpu", "cuda"]
FALLBACK, TRITON = "_fp8_mqa_logits_torch", "fp8_mqa_logits_triton"


class KernelCase(Value):
    """One call: M query rows, N keys, H heads, and which keys a row may look at."""

    rows: int
    keys: int
    heads: int
    window: str

    @property
    def shape(self) -> str:
        return f"{self.rows} x {self.keys} x {self.heads}"


class KernelEnvironment(Value):
    """Where the kernels ran."""

    device: Device
    python: str
    """Version of the interpreter."""
    torch: str
    triton: str
    gpu: str | None = None
    """As the driver names it."""
    capability: str | None = None
    cuda: str | None = None
    free_bytes: int | None = None
    """Of the device, before the first call."""
    total_bytes: int | None = None


class RevisionUnderTest(Value):
    """Whose kernels were loaded beside sparkdiag's."""

    revision: str
    """Id of 40 digits."""
    asked: str
    repo: str
    paths: Mapping[str, str]
    """Where each function is defined."""
    notes: tuple[str, ...] = ()
    over: str | None = None
    """What the revision's modules were loaded over; None where it did not come to that."""


class CheckedCall(Value):
    """One kernel, one call, held against float64."""

    subject: str
    name: str
    judged: bool
    """False where it is told only: DeepGEMM."""
    case: KernelCase
    clean: bool
    tolerance: float
    problems: tuple[str, ...] = ()
    difference: float | None = None
    """Largest ``|got - float64| / row scale`` inside the windows, the row scale being the row's largest
    ``sum over heads of |weight| * relu(score)``; None where nothing finite could be compared."""
    worst: tuple[int, int] | None = None
    """Row and key of it."""
    skipped: str | None = None
    """Why it was not called."""


class PairDifference(Value):
    """Two kernels on the same inputs, by the same scale."""

    subjects: tuple[str, str]
    case: KernelCase
    difference: float | None = None


class DispatchContract(Value):
    """What the revision's ``_fp8_mqa_logits_sm12x`` reaches."""

    cleaning: str = Field(alias="true")
    """With ``clean_logits=True``."""
    not_cleaning: str = Field(alias="false")
    """With ``clean_logits=False``, as prefill calls it."""
    device: Device = "cpu"
    """Where the inputs lay: a dispatch may ask."""

    @property
    def holds(self) -> bool:
        return self.cleaning == self.not_cleaning == TRITON

    @property
    def unknown(self) -> str | None:
        """Why it cannot be told; None where it can."""
        for reached in (self.cleaning, self.not_cleaning):
            if reached.startswith("cannot tell: "):
                return reached.removeprefix("cannot tell: ")
        if self.device == "cpu" and self.cleaning == self.not_cleaning == FALLBACK:
            return f"on the CPU both reach {FALLBACK}; it may ask for the device: --device cuda"
        return None


class KernelCheck(Value):
    """The document of ``kernel check``."""

    schema_version: int = Field(default=SCHEMA, alias="schema")
    passed: bool
    seed: int
    environment: KernelEnvironment
    revision: RevisionUnderTest | None = None
    calls: tuple[CheckedCall, ...]
    pairs: tuple[PairDifference, ...]
    dispatch: DispatchContract | None = None
    """None without ``--repo``, or where the revision has no dispatch function."""
    ended_early: str | None = None
    """Why calls are missing, where the check had failed already: the device was lost."""


class TimedCall(Value):
    """One kernel, one call, timed."""

    subject: str
    case: KernelCase
    useful: int | None = None
    """Pairs of row and key inside the windows."""
    times_ms: tuple[float, ...] = ()
    skipped: str | None = None


class BenchFigure(Value):
    """What one kernel did on one row."""

    median_ms: float | None = None
    repeats: int = 0
    spread: float | None = None
    """(slowest - fastest) / median"""
    tflop_s: float | None = None
    """Of the whole product, 2·M·N·H·D."""
    useful_tflop_s: float | None = None
    """Of the pairs inside the windows."""
    roofline_share: float | None = None
    """The least time the useful work can take on this GPU, divided by the median."""
    skipped: str | None = None


class BenchRow(Value):
    """One call of the grid, all kernels."""

    case: KernelCase
    figures: Mapping[str, BenchFigure]
    ratio: float | None = None
    """sparkdiag's fallback to sparkdiag's Triton kernel: how many times faster."""
    revision_ratio: float | None = None
    author_ratio: float | None = None
    """What the fix's author saw on GB10 at this shape."""


class KernelBench(Value):
    """The document of ``kernel bench``."""

    schema_version: int = Field(default=SCHEMA, alias="schema")
    complete: bool
    ended_by: str | None = None
    """Why rows are missing."""
    seed: int
    environment: KernelEnvironment
    revision: RevisionUnderTest | None = None
    subjects: Mapping[str, str]
    """Names by key, in the order of columns."""
    rows: tuple[BenchRow, ...]
    roofline: str
    """The GPU whose datasheet the shares are of, or why there are none."""
