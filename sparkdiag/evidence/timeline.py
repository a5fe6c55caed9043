"""What ``timeline.jsonl`` holds: phases, metrics, GPU readings, processes seen, notes."""

from typing import Annotated, Literal

from pydantic import Field

from sparkdiag.evidence.base import Value
from sparkdiag.evidence.processes import ProcessInfo

Phase = Literal[
    "preparing",
    "launching",
    "loading",
    "ready",
    "prompting",
    "observing",
    "cancelling",
    "stopping",
    "reporting",
    "done",
]


class PhaseEvent(Value):
    event: Literal["phase"] = "phase"
    t_s: float
    phase: Phase
    detail: str = ""


class MetricPoint(Value):
    """One scrape of /metrics and /health; None where the server does not export it or did not answer."""

    event: Literal["metrics"] = "metrics"
    t_s: float
    kv_cache_usage: float | None = None
    """0 to 1, the largest over engines."""
    prompt_tokens_total: float | None = None
    generation_tokens_total: float | None = None
    iterations_total: float | None = None
    requests_finished_total: float | None = None
    """Whatever the reason, but for aborted ones; None in a run from before it was read."""
    requests_running: float | None = None
    requests_waiting: float | None = None
    health_status: int | None = None
    latency_s: float | None = None
    error: str | None = None


class KvCapacity(Value):
    """From ``vllm:cache_config_info``: how many KV blocks and how many tokens one block holds on one rank."""

    event: Literal["kv_capacity"] = "kv_capacity"
    t_s: float
    num_blocks: int
    block_size_tokens: int


class GpuPoint(Value):
    """Recorded, never decisive: 100 % and full power whether fast or crawling."""

    event: Literal["gpu"] = "gpu"
    t_s: float
    index: int
    utilisation_percent: float | None = None
    power_w: float | None = None
    memory_used_mib: float | None = None


BUSY_SHARE = 0.25
"""Of the machine's CPU time, used by others: above it a server whose priority is lowered would be starved."""


class CpuPoint(Value):
    """Who had the machine's CPU time since the look before, as shares of all of it (idle time is nobody's)."""

    event: Literal["cpu"] = "cpu"
    t_s: float
    span_s: float
    others_share: float
    """Neither the server's tree nor sparkdiag."""
    server_share: float
    server_nice: int = 0
    """What the server's scheduling group had in that time, as far as sparkdiag lowered it."""

    @property
    def starving(self) -> bool:
        """Whether a server that sparkdiag had made yield stood back behind others."""
        return self.server_nice > 0 and self.others_share > BUSY_SHARE


class ProcessesEvent(Value):
    event: Literal["processes"] = "processes"
    t_s: float
    processes: tuple[ProcessInfo, ...]


class NoteEvent(Value):
    """Anything a reader of the run should know: a fallback taken, a limit hit, a cost."""

    event: Literal["note"] = "note"
    t_s: float
    source: str
    text: str


TimelineEvent = Annotated[
    PhaseEvent | MetricPoint | KvCapacity | GpuPoint | CpuPoint | ProcessesEvent | NoteEvent,
    Field(discriminator="event"),
]
