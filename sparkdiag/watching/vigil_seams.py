"""What a vigil rests on: its sources, its clock, its judge, where captures go. A test brings its own of each."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from sparkdiag.evidence.base import Value
from sparkdiag.evidence.diagnosis import Diagnosis, Traffic
from sparkdiag.evidence.processes import ProcessInfo
from sparkdiag.evidence.stacks import StackSample
from sparkdiag.evidence.timeline import KvCapacity, MetricPoint
from sparkdiag.watching.patience import Label


class MetricsSource(Protocol):
    """``observing.metrics.MetricsReader`` is one."""

    def read(self) -> tuple[MetricPoint, KvCapacity | None]:
        """One scrape, bounded in time; never raises for what the server does. ``t_s`` is on the vigil's clock."""


@dataclass(frozen=True, slots=True)
class Round:
    """One look at every process that matters."""

    samples: tuple[StackSample, ...]
    """Failed ones too; stamps are on the vigil's clock."""
    cpu_s: float
    """CPU seconds that it cost."""


class StackSource(Protocol):
    """The process tree and its stacks. A server that was started anew has another tree: the source finds it again."""

    def processes(self) -> tuple[ProcessInfo, ...]:
        """The tree as of now; empty when nothing is there. Cheap enough for every half minute."""

    def look(self) -> Round:
        """Stacks of every process that matters, now; bounded in time. Never raises for what a process does."""


class Clock(Protocol):
    """Seconds on one monotonic clock, the one that all stamps are on."""

    def now_s(self) -> float:
        """Seconds since the vigil's start."""

    def sleep(self, seconds: float) -> None:
        """Ends early only by what a signal raises: ``KeyboardInterrupt``, ``Terminated``."""


class Judge(Protocol):
    """``diagnosing.diagnose.diagnose`` over live samples. Pure."""

    def __call__(
        self, samples: Sequence[StackSample], *, processes: Sequence[ProcessInfo], traffic: Traffic | None
    ) -> Diagnosis:
        """What the looks mean; ``traffic`` is None where the server tells nothing of its requests."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is kept of a stall, as of the moment it was found."""

    label: Label
    because: str
    """The sign, and what the closer look said; one line."""
    began_s: float
    """Since when nothing moved, as far as was seen."""
    found_s: float
    history: tuple[MetricPoint, ...]
    """What the server said of itself before and since, oldest first."""
    kv_capacity: KvCapacity | None
    processes: tuple[ProcessInfo, ...]
    samples: tuple[StackSample, ...]
    diagnosis: Diagnosis | None
    traffic: Traffic | None


class OpenCapture(Protocol):
    """A run folder that is still added to: how the stall went on, and how it ended."""

    @property
    def path(self) -> Path:
        """The folder."""

    @property
    def size_bytes(self) -> int:
        """What lies in it."""

    def add(self, value: Value) -> None:
        """One more metric point, sample, process list or note. A full disk is remembered, never raised."""

    def close(self, *, ending: str, interrupted: bool) -> tuple[str, ...]:
        """Write the end; returns what could not be written."""


class CaptureSink(Protocol):
    """Makes run folders."""

    def open(self, evidence: Evidence) -> OpenCapture:
        """Everything of ``evidence`` is on the disk when this returns. Raises ``SparkdiagError`` where there is no
        room for it, or no right to write."""


@dataclass(frozen=True, slots=True)
class VigilEvent:
    """Something a person who looks at the terminal wants to know."""

    t_s: float
    kind: Literal["watching", "sign", "look", "captured", "not-captured", "over", "server"]
    text: str
    run_dir: Path | None = None


@dataclass(frozen=True, slots=True)
class Captured:
    """One capture, as the summary tells it."""

    path: Path
    label: Label
    began_s: float
    found_s: float
    because: str


@dataclass(frozen=True, slots=True)
class VigilSummary:
    """What a vigil saw, at any moment and at its end."""

    watched_s: float
    ended: Literal["goes-on", "interrupted", "terminated", "time-is-up", "captured-enough"]
    captures: tuple[Captured, ...] = ()
    looks: int = 0
    """Closer looks."""
    looks_cpu_s: float = 0.0
    """What their stacks cost."""
    not_kept: int = 0
    """Stalls that were found and could not be kept, or were one too many."""
    restarts: int = 0
