"""What was observed so far: written by many threads, read as one frozen ``Observation``."""

import threading
import time
from bisect import insort
from collections.abc import Callable
from typing import Literal

from sparkdiag.evidence.base import Value
from sparkdiag.evidence.client import ClientOutcome
from sparkdiag.evidence.observation import Observation
from sparkdiag.evidence.processes import ProcessInfo
from sparkdiag.evidence.stacks import SamplingStats, StackSample
from sparkdiag.evidence.timeline import CpuPoint, GpuPoint, KvCapacity, MetricPoint, NoteEvent, ProcessesEvent
from sparkdiag.observing.process_tree import key_of
from sparkdiag.observing.thinning import thinned
from sparkdiag.observing.titles import is_sampled

MOST_SAMPLES = 2000
"""Kept for the judge; the sink has had all of them."""
MOST_POINTS = 4000
"""Metric points, GPU points, and CPU points, kept for the judge."""

Sink = Callable[[Value], None]
Mode = Literal["py-spy", "in-process", "none"]


class ObservationLog:
    """Bounded in memory whatever a run's length; everything also goes to the sink, one value at a time."""

    def __init__(
        self,
        *,
        clock: Callable[[], float],
        sink: Sink,
        most_samples: int = MOST_SAMPLES,
        own_cpu_s: Callable[[], float] = time.process_time,
        stats: SamplingStats | None = None,
        from_ready: bool = False,
    ) -> None:
        self._clock = clock
        self._own_cpu_s = own_cpu_s
        self._own_cpu_before_s: float | None = None
        self._counted_from_s: float | None = None
        self._sink = sink
        self._from_ready = from_ready
        self._most_samples = most_samples
        self._lock = threading.Lock()
        self._sink_lock = threading.Lock()
        self._closed = False
        self._ready_at_s: float | None = None
        self._alive: tuple[ProcessInfo, ...] = ()
        self._processes: tuple[ProcessInfo, ...] = ()
        self._sampled: set[int] = set()
        self._samples: list[StackSample] = []
        self._metrics: list[MetricPoint] = []
        self._gpus: list[GpuPoint] = []
        self._cpu: list[CpuPoint] = []
        self._capacity: KvCapacity | None = None
        self._client = ClientOutcome()
        self._stats = stats or SamplingStats()

    @property
    def in_flight(self) -> bool:
        """Whether a request is under way, the only time in which stacks say something. Of a server that others use
        nobody knows: with ``from_ready`` some request may be under way at any time."""
        return self._from_ready or self._client.in_flight

    @property
    def processes(self) -> tuple[ProcessInfo, ...]:
        """The living ones."""
        return self._alive

    @property
    def mode(self) -> Mode:
        """How stacks are taken."""
        return self._stats.mode

    def mark_ready(self) -> None:
        """The server is ready now."""
        self._ready_at_s = self._clock()
        if self._from_ready:
            self._count_from(self._ready_at_s)

    def _count_from(self, t_s: float) -> None:
        self._own_cpu_before_s, self._counted_from_s = self._own_cpu_s(), t_s

    def set_client(self, client: ClientOutcome) -> None:
        """The request as of now. What looking costs is counted while it is under way."""
        with self._lock:
            if self.in_flight:
                self._stats = self._counted()
            elif client.sent is not None and self._own_cpu_before_s is None:
                self._count_from(client.sent.t_s)
            self._client = client

    def _counted(self) -> SamplingStats:
        if not self.in_flight or self._own_cpu_before_s is None or self._counted_from_s is None:
            return self._stats
        own_cpu_s = self._own_cpu_s() - self._own_cpu_before_s
        return self._stats.model_copy(
            update={"own_cpu_s": own_cpu_s, "observed_s": self._clock() - self._counted_from_s}
        )

    def set_mode(self, mode: Mode, *, reason: str | None, remedy: str | None = None) -> None:
        """How stacks are taken from now on, why not by py-spy, and what would let it."""
        with self._lock:
            self._stats = self._stats.model_copy(update={"mode": mode, "reason": reason, "remedy": remedy})
        if reason is not None:
            how = {"in-process": "taken by the probe inside the server", "none": "not taken", "py-spy": "by py-spy"}
            self.note("sampling", f"stacks are {how[mode]}: {reason}" + (f"; remedy: {remedy}" if remedy else ""))

    def note(self, source: str, text: str) -> None:
        """Something a reader of the run should know."""
        self._emit(NoteEvent(t_s=self._clock(), source=source, text=text))

    def set_processes(self, alive: tuple[ProcessInfo, ...]) -> None:
        """The tree as just seen. Vanished processes that were sampled stay listed, so that samples keep a name."""
        with self._lock:
            now = {key_of(process) for process in alive}
            gone = tuple(p for p in self._alive if key_of(p) not in now and is_sampled(p.role))
            self._alive = alive
            pids = {process.pid for process in alive}
            kept = tuple(p for p in self._processes if p.pid not in pids and p.pid in self._sampled)
            listed = tuple(sorted((*alive, *kept), key=lambda p: (p.started_at_s, p.pid)))
            changed = listed != self._processes
            self._processes = listed
        if changed:
            self._emit(ProcessesEvent(t_s=self._clock(), processes=listed))
        for process in gone:
            self.note("process-tree", f"{process.name} (pid {process.pid}) is gone")

    def add_sample(self, sample: StackSample, *, cause: str | None = None) -> None:
        """One look at a process; one begun before the prompt was sent is not kept, unless all are."""
        sent = self._client.sent
        if not self._from_ready and (sent is None or sample.started_s < sent.t_s):
            return
        with self._lock:
            insort(self._samples, sample, key=lambda one: one.ended_s)
            self._samples = thinned(self._samples, series=lambda one: one.pid, most=self._most_samples)
            self._sampled.add(sample.pid)
            stats, failed = self._stats, sample.error is not None
            self._stats = stats.model_copy(
                update={
                    "taken": stats.taken + 1,
                    "late": stats.late + (sample.late and not failed),
                    "failed": stats.failed + failed,
                    "longest_s": max(stats.longest_s, sample.ended_s - sample.started_s),
                }
            )
        if cause is not None:
            self.count_error(cause)
        self._emit(sample)

    def add_cost(self, cpu_s: float, *, period_s: float | None = None, planned_share: float | None = None) -> None:
        """CPU that sampling cost, and the pace it goes on with."""
        with self._lock:
            planned = {"period_s": period_s, "planned_share": planned_share}
            self._stats = self._stats.model_copy(
                update={"cpu_s": self._stats.cpu_s + cpu_s, **{k: v for k, v in planned.items() if v is not None}}
            )

    def count_error(self, cause: str) -> None:
        """One more error of this cause."""
        with self._lock:
            errors = {**self._stats.errors, cause: self._stats.errors.get(cause, 0) + 1}
            self._stats = self._stats.model_copy(update={"errors": errors})

    def add_metrics(self, point: MetricPoint, capacity: KvCapacity | None) -> None:
        """One scrape; the capacity is emitted when it is new."""
        with self._lock:
            self._metrics.append(point)
            self._metrics = thinned(self._metrics, series=lambda _point: None, most=MOST_POINTS)
            known = self._capacity
            is_new = capacity is not None and (
                known is None
                or (known.num_blocks, known.block_size_tokens) != (capacity.num_blocks, capacity.block_size_tokens)
            )
            self._capacity = capacity if is_new else known
        self._emit(point)
        if capacity is not None and is_new:
            self._emit(capacity)

    def add_gpus(self, points: tuple[GpuPoint, ...]) -> None:
        """One reading of every GPU."""
        with self._lock:
            self._gpus.extend(points)
            self._gpus = thinned(self._gpus, series=lambda point: point.index, most=MOST_POINTS)
        for point in points:
            self._emit(point)

    def add_cpu(self, point: CpuPoint) -> None:
        """Who had the CPU time."""
        with self._lock:
            self._cpu.append(point)
            self._cpu = thinned(self._cpu, series=lambda one: one.starving, most=MOST_POINTS)
        self._emit(point)

    def snapshot(self) -> Observation:
        """Everything as of now."""
        with self._lock:
            return Observation(
                now_s=self._clock(),
                ready_at_s=self._ready_at_s,
                processes=self._processes,
                samples=tuple(self._samples),
                sampling=self._counted(),
                metrics=tuple(self._metrics),
                kv_capacity=self._capacity,
                gpus=tuple(self._gpus),
                cpu=tuple(self._cpu),
                client=self._client,
            )

    def close(self) -> None:
        """Nothing reaches the sink after this."""
        with self._sink_lock:
            self._closed = True

    def _emit(self, value: Value) -> None:
        # One at a time, and apart from the other lock: a slow disk must not hold a snapshot.
        with self._sink_lock:
            if self._closed:
                return
            try:
                self._sink(value)
            except Exception as error:  # a full disk must not blind the judge
                self.count_error(f"sink: {type(error).__name__}")
