"""The loop that joins the sources: who is there, what they do, what the server says, what the GPUs show.

Every source has a thread of its own, and so has every sampled process: on a saturated machine a dump that usually takes
0.05 s takes 30 s now and then, and must hold neither the others nor whoever asks for a snapshot.
"""

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from sparkdiag.errors import SamplingRefused
from sparkdiag.evidence.client import ClientOutcome
from sparkdiag.evidence.observation import Observation
from sparkdiag.evidence.processes import ProcessInfo
from sparkdiag.evidence.stacks import NOT_SAMPLED, SamplingStats
from sparkdiag.evidence.timeline import CpuPoint
from sparkdiag.observing.gpu import GpuReader
from sparkdiag.observing.inprocess import InProcessReader
from sparkdiag.observing.log import ObservationLog, Sink
from sparkdiag.observing.metrics import MetricsReader
from sparkdiag.observing.pace import Pace
from sparkdiag.observing.process_tree import ProcessTree
from sparkdiag.observing.pyspy import PySpy, find_pyspy
from sparkdiag.observing.sampling import LATE_AFTER_S, StackSampling
from sparkdiag.observing.ticker import Ticker
from sparkdiag.scenario.model import Scenario

TREE_PERIOD_S = 2.0
GPU_PERIOD_S = 1.0
CPU_PERIOD_S = 1.5
NEVER_S = 86_400.0
STOP_WITHIN_S = 8.0


class Observer:
    """Watches one server from ``start`` (when it is ready) to ``stop``.

    Stacks are kept from ``set_client`` with a sent prompt on, and taken while the request is in flight. Where py-spy is
    not permitted, the probe's own sampler takes its place if ``in_process_dir`` is given and the server is ours;
    nothing is written to, and nothing signalled in, a server that is not.

    ``look_at_cpu`` is told the living processes every ``CPU_PERIOD_S`` and says who had the CPU time meanwhile.

    ``take_stacks=False`` is for a control that must not be disturbed: everything else is observed, no process is
    sampled.

    ``from_ready`` is for a server that others use: stacks are taken and kept from ``start`` on, whoever's request is
    under way. ``root_pid`` may be None where none of its processes is on this machine, and ``also_pids`` are those that
    a dead root has left; ``base_url`` is None where it has no address that is known.
    """

    def __init__(
        self,
        root_pid: int | None,
        *,
        scenario: Scenario,
        base_url: str | None,
        also_pids: tuple[int, ...] = (),
        from_ready: bool = False,
        clock: Callable[[], float],
        sink: Sink,
        in_process_dir: Path | None = None,
        server_is_ours: bool,
        take_stacks: bool = True,
        why_no_stacks: str = NOT_SAMPLED,
        pyspy_binary: Path | None = None,
        late_after_s: float = LATE_AFTER_S,
        look_at_cpu: Callable[[tuple[ProcessInfo, ...]], CpuPoint | None] | None = None,
    ) -> None:
        self._scenario = scenario
        self._clock = clock
        cores = len(os.sched_getaffinity(0))
        stats = SamplingStats(cores=cores, budget_share=scenario.sampling.cpu_share)
        if not take_stacks:
            stats = SamplingStats(cores=cores, budget_share=0.0, mode="none", wanted=False, reason=why_no_stacks)
        self._log = ObservationLog(clock=clock, sink=sink, stats=stats, from_ready=from_ready)
        self._tree = ProcessTree(*(() if root_pid is None else (root_pid,)), *also_pids)
        self._metrics = MetricsReader(base_url, clock=clock) if base_url is not None else None
        self._gpu: GpuReader | None = None
        self._look_at_cpu = look_at_cpu
        self._stacks = (
            self._sampling(
                pyspy_binary or find_pyspy(),
                pace=Pace(scenario.sampling, cores=cores),
                in_process_dir=in_process_dir if server_is_ours else None,
                late_after_s=late_after_s,
            )
            if take_stacks
            else None
        )
        self._lock = threading.Lock()
        self._tickers: list[Ticker] = []
        self._stopping = False

    def start(self) -> None:
        """The server is ready; the process tree, and whether py-spy may look, are known when this returns."""
        self._log.mark_ready()
        self._tend_tree()
        self._begin("tree", self._tend_tree, period_s=lambda: TREE_PERIOD_S)
        if self._metrics is not None:
            self._begin("metrics", self._read_metrics, period_s=lambda: self._scenario.sampling.metrics_period_s)
        self._begin("gpu", self._read_gpus, period_s=self._gpu_period_s)
        if self._look_at_cpu is not None:
            self._begin("cpu", self._read_cpu, period_s=lambda: CPU_PERIOD_S)

    def set_client(self, client: ClientOutcome) -> None:
        """The request as of now; from a sent prompt on, stacks are taken and kept."""
        was_in_flight = self._log.in_flight
        self._log.set_client(client)
        if self._stacks is not None and client.in_flight and not was_in_flight:
            self._stacks.wake()

    def look_now(self) -> None:
        """A look at every process, the seldom sampled ones included."""
        if self._stacks is not None:
            self._stacks.wake()

    def snapshot(self) -> Observation:
        """Everything seen so far; cheap enough for every second."""
        return self._log.snapshot()

    def require_stacks(self) -> None:
        """Raises ``SamplingRefused`` when stacks are wanted and there is no way left to take any."""
        stats = self._log.snapshot().sampling
        if self._stacks is not None and stats.mode == "none":
            raise SamplingRefused(f"no stack can be taken: {stats.reason}", remedy=stats.remedy)

    def stop(self) -> None:
        """End every thread and py-spy, within bounds. The observation can still be read; the sink gets no more."""
        with self._lock:
            self._stopping = True
            tickers = list(self._tickers)
        for ticker in tickers:
            ticker.stop()
        until_s = time.monotonic() + STOP_WITHIN_S
        if self._stacks is not None:
            self._stacks.stop(within_s=STOP_WITHIN_S)
        for ticker in tickers:
            ticker.join(until_s - time.monotonic())
        self._log.close()
        if self._metrics is not None:
            self._metrics.close()
        if self._gpu is not None:
            self._gpu.close()

    def _sampling(
        self, binary: Path | None, *, pace: Pace, in_process_dir: Path | None, late_after_s: float
    ) -> StackSampling:
        kept = self._scenario.kept_locals
        timeout_s = self._scenario.sampling.dump_timeout_s
        return StackSampling(
            log=self._log,
            pace=pace,
            pyspy=PySpy(binary, clock=self._clock, timeout_s=timeout_s, kept_names=kept) if binary else None,
            in_process_dir=in_process_dir,
            new_reader=lambda folder: InProcessReader(
                folder, clock=self._clock, monotonic=time.monotonic, kept_names=kept
            ),
            late_after_s=late_after_s,
            on_error=self._went_wrong,
        )

    def _begin(self, name: str, action: Callable[[], None], *, period_s: Callable[[], float]) -> None:
        ticker = Ticker(name, action, period_s=period_s, on_error=self._went_wrong)
        with self._lock:
            if not self._stopping:
                self._tickers.append(ticker)
                ticker.start()

    def _went_wrong(self, error: Exception) -> None:
        self._log.count_error(f"internal: {type(error).__name__}")

    def _read_metrics(self) -> None:
        if self._metrics is not None:
            self._log.add_metrics(*self._metrics.read())

    def _read_gpus(self) -> None:
        if self._gpu is None:
            # In this thread: opening NVML can hang where the driver is wedged.
            self._gpu = GpuReader(clock=self._clock)
        self._log.add_gpus(self._gpu.read())

    def _read_cpu(self) -> None:
        point = self._look_at_cpu(self._log.processes) if self._look_at_cpu is not None else None
        if point is not None:
            self._log.add_cpu(point)

    def _gpu_period_s(self) -> float:
        return GPU_PERIOD_S if self._gpu is not None and self._gpu.present else NEVER_S

    def _tend_tree(self) -> None:
        processes = self._tree.look()
        self._log.set_processes(processes)
        if self._stacks is not None:
            self._stacks.follow(processes)
            self._stacks.decide()
