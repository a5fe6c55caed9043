"""The loop that joins the sources: who is there, what they do, what the server says, what the GPUs show.

Every source has a thread of its own, and so has every sampled process: on a saturated machine a dump that usually takes
0.05 s takes 30 s now and then, and must hold neither the others nor whoever asks for a snapshot.
"""

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from sparkdiag.evidence.client import ClientOutcome
from sparkdiag.evidence.observation import Observation
from sparkdiag.evidence.processes import ProcessInfo
from sparkdiag.evidence.stacks import StackSample
from sparkdiag.observing.faults import SamplingFault, no_pyspy
from sparkdiag.observing.gpu import GpuReader
from sparkdiag.observing.inprocess import InProcessReader, switch_off, switch_on
from sparkdiag.observing.log import ObservationLog, Sink
from sparkdiag.observing.metrics import MetricsReader
from sparkdiag.observing.pace import Pace
from sparkdiag.observing.process_tree import ProcessKey, ProcessTree, is_alive, key_of
from sparkdiag.observing.pyspy import PySpy, can_sample, find_pyspy
from sparkdiag.observing.ticker import Ticker
from sparkdiag.observing.titles import is_sampled
from sparkdiag.scenario.model import Scenario

TREE_PERIOD_S = 2.0
GPU_PERIOD_S = 1.0
NEVER_S = 86_400.0
LATE_AFTER_S = 2.0
"""A dump that took longer no longer says when it was true: it is kept, marked late, and does not count."""
IN_PROCESS_MIN_PERIOD_S = 1.0
"""The probe's file is bounded: half an hour of samples must fit."""
STOP_WITHIN_S = 8.0


class Observer:
    """Watches one server from ``start`` (when it is ready) to ``stop``.

    Stacks are kept from ``set_client`` with a sent prompt on, and taken while the request is in flight. Where py-spy is
    not permitted, the probe's own sampler takes its place if ``in_process_dir`` is given and the server is ours;
    nothing is written to, and nothing signalled in, a server that is not.
    """

    def __init__(
        self,
        root_pid: int,
        *,
        scenario: Scenario,
        base_url: str,
        clock: Callable[[], float],
        sink: Sink,
        in_process_dir: Path | None = None,
        server_is_ours: bool,
        pyspy_binary: Path | None = None,
        late_after_s: float = LATE_AFTER_S,
    ) -> None:
        self._scenario = scenario
        self._clock = clock
        self._in_process_dir = in_process_dir if server_is_ours else None
        self._late_after_s = late_after_s
        self._log = ObservationLog(clock=clock, sink=sink)
        self._tree = ProcessTree(root_pid)
        self._pace = Pace(scenario.sampling, cores=os.cpu_count() or 1)
        self._metrics = MetricsReader(base_url, clock=clock)
        self._gpu: GpuReader | None = None
        binary = pyspy_binary or find_pyspy()
        self._pyspy: PySpy | None = None
        if binary is not None:
            self._pyspy = PySpy(
                binary, clock=clock, timeout_s=scenario.sampling.dump_timeout_s, kept_names=scenario.kept_locals
            )
        self._lock = threading.Lock()
        self._samplers: dict[ProcessKey, Ticker] = {}
        self._others: list[Ticker] = []
        self._retired: list[Ticker] = []
        self._stopping = False
        self._permitted: bool | None = None
        self._in_process: InProcessReader | None = None
        self._in_process_ticker: Ticker | None = None
        self._files_full: frozenset[int] = frozenset()

    def start(self) -> None:
        """The server is ready; the process tree is known when this returns."""
        self._log.mark_ready()
        if self._pyspy is None:
            self._leave_pyspy(no_pyspy())
        self._look_at_tree()
        self._begin("tree", self._tend_tree, period_s=lambda: TREE_PERIOD_S)
        self._begin("metrics", self._read_metrics, period_s=lambda: self._scenario.sampling.metrics_period_s)
        self._begin("gpu", self._read_gpus, period_s=self._gpu_period_s)

    def set_client(self, client: ClientOutcome) -> None:
        """The request as of now; from a sent prompt on, stacks are taken and kept."""
        was_in_flight = self._log.in_flight
        self._log.set_client(client)
        if client.in_flight and not was_in_flight:
            for ticker in self._stack_tickers():
                ticker.wake()

    def snapshot(self) -> Observation:
        """Everything seen so far; cheap enough for every second."""
        return self._log.snapshot()

    def take_round(self, *, timeout_s: float | None = None) -> bool:
        """One more look at every process, now, also after the request ended; whether all were done in time."""
        until_s = time.monotonic() + (self._scenario.sampling.dump_timeout_s if timeout_s is None else timeout_s)
        asked = [(ticker, ticker.ask()) for ticker in self._stack_tickers()]
        done = [ticker.wait_for(ticket, timeout_s=until_s - time.monotonic()) for ticker, ticket in asked]
        return all(done)

    def stop(self) -> None:
        """End every thread and py-spy, within bounds. The observation can still be read; the sink gets no more."""
        with self._lock:
            self._stopping = True
            tickers = [*self._samplers.values(), *self._others, *self._retired]
        if self._pyspy is not None:
            self._pyspy.cancel()
        for ticker in tickers:
            ticker.stop()
        until_s = time.monotonic() + STOP_WITHIN_S
        for ticker in tickers:
            ticker.join(until_s - time.monotonic())
        self._log.close()
        self._metrics.close()
        if self._gpu is not None:
            self._gpu.close()
        if self._in_process is not None and self._in_process_dir is not None:
            switch_off(self._in_process_dir)

    def _begin(self, name: str, action: Callable[[bool], None], *, period_s: Callable[[], float]) -> Ticker | None:
        ticker = Ticker(name, action, period_s=period_s, on_error=self._went_wrong)
        with self._lock:
            if self._stopping:
                return None
            self._others.append(ticker)
            ticker.start()
        return ticker

    def _went_wrong(self, error: Exception) -> None:
        self._log.count_error(f"internal: {type(error).__name__}")

    def _stack_tickers(self) -> list[Ticker]:
        with self._lock:
            if self._in_process_ticker is not None:
                return [self._in_process_ticker]
            return list(self._samplers.values()) if self._log.mode == "py-spy" else []

    def _read_metrics(self, _asked: bool) -> None:
        point, capacity = self._metrics.read()
        self._log.add_metrics(point, capacity)

    def _read_gpus(self, _asked: bool) -> None:
        if self._gpu is None:
            # In this thread: opening NVML can hang where the driver is wedged.
            self._gpu = GpuReader(clock=self._clock)
        self._log.add_gpus(self._gpu.read())

    def _gpu_period_s(self) -> float:
        return GPU_PERIOD_S if self._gpu is not None and self._gpu.present else NEVER_S

    def _tend_tree(self, _asked: bool) -> None:
        self._look_at_tree()
        if self._permitted is None and self._pyspy is not None:
            self._check_permission(self._pyspy)

    def _look_at_tree(self) -> None:
        processes = self._tree.look()
        self._log.set_processes(processes)
        sampled = tuple(process for process in processes if is_sampled(process.role))
        self._pace.follow(sampled)
        with self._lock:
            if self._stopping:
                return
            keys = {key_of(process) for process in sampled}
            for key in [key for key in self._samplers if key not in keys]:
                retired = self._samplers.pop(key)
                retired.stop()
                self._retired.append(retired)
            self._retired = [ticker for ticker in self._retired if not ticker.join(0)]
            for process in sampled:
                if key_of(process) not in self._samplers:
                    self._samplers[key_of(process)] = self._sampler(process)
                    self._samplers[key_of(process)].start()

    def _sampler(self, process: ProcessInfo) -> Ticker:
        key = key_of(process)
        return Ticker(
            f"sampler-{process.pid}",
            lambda asked: self._sample(key, asked=asked),
            period_s=lambda: self._pace.period_s(key),
            on_error=self._went_wrong,
        )

    def _sample(self, key: ProcessKey, *, asked: bool) -> None:
        if self._pyspy is None or self._log.mode != "py-spy" or not (asked or self._log.in_flight):
            return
        dump = self._pyspy.dump(key[0])
        self._log.add_cost(dump.cpu_s)
        if not is_alive(key):
            # It ended meanwhile, and its pid may already be somebody else's.
            return
        fault = dump.fault
        if fault is not None and fault.cause == "cancelled":
            return
        # A torn read is the busy process's nature, and it is the busy one that must be seen: no backing off.
        self._pace.paid(key, dump.cpu_s, failed=fault is not None and fault.cause != "torn")
        if fault is None:
            self._permitted = True
        elif fault.cause in ("permission", "no-py-spy") and self._permitted is not True:
            self._leave_pyspy(fault)
        self._log.add_sample(self._marked(dump.sample), cause=None if fault is None else fault.cause)

    def _check_permission(self, pyspy: PySpy) -> None:
        """Before the prompt is sent, so that a refusal costs no time of the observation."""
        for process in self._log.processes:
            if not is_sampled(process.role):
                continue
            finding = can_sample(pyspy, process.pid)
            if finding.allowed is not None and is_alive(key_of(process)):
                self._permitted = finding.allowed
                if finding.fault is not None:
                    self._leave_pyspy(finding.fault)
                return

    def _leave_pyspy(self, fault: SamplingFault) -> None:
        """Take the probe's stacks instead, or none."""
        with self._lock:
            if self._log.mode != "py-spy" or self._stopping:
                return
            folder = self._in_process_dir
            if folder is None:
                self._log.set_mode("none", reason=fault.line)
                return
            period_s = max(IN_PROCESS_MIN_PERIOD_S, self._pace.focus_period_s())
            try:
                switch_on(folder, period_s=period_s)
            except OSError as error:
                self._log.set_mode("none", reason=f"{fault.line}; the probe cannot be reached: {error.strerror}")
                return
            self._in_process = InProcessReader(
                folder, clock=self._clock, monotonic=time.monotonic, kept_names=self._scenario.kept_locals
            )
            self._log.set_mode("in-process", reason=fault.line)
        self._in_process_ticker = self._begin("in-process", self._read_in_process, period_s=lambda: period_s)

    def _read_in_process(self, _asked: bool) -> None:
        if self._in_process is None:
            return
        pids = frozenset(process.pid for process in self._log.processes if is_sampled(process.role))
        for sample in self._in_process.read(pids):
            self._log.add_sample(self._marked(sample))
        for pid in self._in_process.full - self._files_full:
            self._log.note("sampling", f"the probe's stacks file of process {pid} is full: no more samples of it")
        self._files_full = self._in_process.full

    def _marked(self, sample: StackSample) -> StackSample:
        late = sample.ended_s - sample.started_s > self._late_after_s
        return sample.model_copy(update={"late": True}) if late else sample
