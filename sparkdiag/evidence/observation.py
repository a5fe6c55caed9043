"""Everything the judge may look at, at one moment of a run."""

from sparkdiag.evidence.base import Value
from sparkdiag.evidence.client import ClientOutcome
from sparkdiag.evidence.ledger import DispatchLine
from sparkdiag.evidence.processes import ProcessInfo, ServerExit
from sparkdiag.evidence.stacks import SamplingStats, StackSample
from sparkdiag.evidence.timeline import CpuPoint, GpuPoint, KvCapacity, MetricPoint


class InPart(Value):
    """Of a run too long to be read whole: how many of each kind its folder holds. An even part of them was read, of
    each process's samples the same part; None where all were."""

    samples: int | None = None
    metrics: int | None = None
    gpus: int | None = None
    cpu: int | None = None

    @property
    def keeps_from_judging(self) -> bool:
        """A judge who sees less might judge otherwise; readings of GPUs are never decisive."""
        return (self.samples, self.metrics, self.cpu) != (None, None, None)


class Observation(Value):
    """Built by the observer while a run goes on, and from the run folder afterwards: the judge cannot tell which."""

    now_s: float
    ready_at_s: float | None = None
    processes: tuple[ProcessInfo, ...] = ()
    samples: tuple[StackSample, ...] = ()
    """In order of ``ended_s``; only from after the server was ready."""
    sampling: SamplingStats = SamplingStats()
    metrics: tuple[MetricPoint, ...] = ()
    kv_capacity: KvCapacity | None = None
    gpus: tuple[GpuPoint, ...] = ()
    cpu: tuple[CpuPoint, ...] = ()
    client: ClientOutcome = ClientOutcome()
    server_exit: ServerExit | None = None
    dispatch: tuple[DispatchLine, ...] = ()
    """The probe's ledger, only in what is read back from a run folder: no verdict rests on it. In order of writing;
    lines of after ``now_s`` too, since a call is written when it has returned."""
    in_part: InPart | None = None
    """Not None: some of this is only an even part of what the run's folder holds, and counts are no counts of the
    run."""

    def samples_of(self, pid: int) -> tuple[StackSample, ...]:
        return tuple(sample for sample in self.samples if sample.pid == pid)

    @property
    def workers(self) -> tuple[ProcessInfo, ...]:
        """The processes in which the model runs: workers, or EngineCore where there is none (CUDA with TP 1)."""
        workers = tuple(process for process in self.processes if process.role == "worker")
        return workers or tuple(process for process in self.processes if process.role == "engine_core")
