"""Stacks: one thread a sampled process, py-spy where it may look, the probe's own sampler where it may not."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

from sparkdiag.evidence.processes import ProcessInfo
from sparkdiag.evidence.stacks import StackSample
from sparkdiag.observing.faults import SamplingFault, no_pyspy
from sparkdiag.observing.inprocess import InProcessReader, switch_off, switch_on
from sparkdiag.observing.log import ObservationLog
from sparkdiag.observing.pace import Pace
from sparkdiag.observing.permission import ptrace_facts, ptrace_remedy
from sparkdiag.observing.process_tree import ProcessKey, is_alive, key_of
from sparkdiag.observing.pyspy import PySpy, can_sample
from sparkdiag.observing.ticker import Ticker
from sparkdiag.observing.titles import is_sampled

LATE_AFTER_S = 2.0
"""A dump that took longer no longer says when it was true: it is kept, marked late, and does not count."""
IN_PROCESS_MIN_PERIOD_S = 1.0
"""The probe's file is bounded: half an hour of samples must fit."""
HOPELESS_AFTER = 6
"""So many failed looks, and none that succeeded: this py-spy (broken, too old, hanging) will not do."""
PASSING_CAUSES = frozenset({"torn", "no-such-process", "cancelled"})
"""Failures that lie with the moment, not with py-spy."""


class StackSampling:
    """Takes the stacks of the processes it is told to ``follow``, while a request is in flight.

    Where py-spy is not permitted or good for nothing, the probe is asked through ``in_process_dir``; with None there
    is nothing left to take stacks with, and the log's mode says so.
    """

    def __init__(
        self,
        *,
        log: ObservationLog,
        pace: Pace,
        pyspy: PySpy | None,
        in_process_dir: Path | None,
        new_reader: Callable[[Path], InProcessReader],
        late_after_s: float,
        on_error: Callable[[Exception], None],
    ) -> None:
        self._log = log
        self._pace = pace
        self._pyspy = pyspy
        self._in_process_dir = in_process_dir
        self._new_reader = new_reader
        self._late_after_s = late_after_s
        self._on_error = on_error
        self._lock = threading.Lock()
        self._samplers: dict[ProcessKey, Ticker] = {}
        self._retired: list[Ticker] = []
        self._stopping = False
        self._permitted: bool | None = None
        self._failures = 0
        self._in_process: InProcessReader | None = None
        self._in_process_ticker: Ticker | None = None
        self._files_full: frozenset[int] = frozenset()

    def follow(self, processes: tuple[ProcessInfo, ...]) -> None:
        """These are the living processes: each that matters gets a sampler, the others lose theirs."""
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

    def decide(self) -> None:
        """Find out whether py-spy may look, if that is not known yet: before the prompt is sent, a refusal costs no
        time of the observation. One look, bounded like every other."""
        if self._pyspy is None:
            self._leave_pyspy(no_pyspy())
        elif self._permitted is None and self._log.mode == "py-spy":
            self._ask(self._pyspy)

    def wake(self) -> None:
        """A look at every process, now."""
        with self._lock:
            tickers = [self._in_process_ticker] if self._in_process_ticker else list(self._samplers.values())
        for ticker in tickers:
            ticker.wake()

    def stop(self, *, within_s: float) -> None:
        """End every thread and py-spy, within bounds, and the probe's sampler."""
        with self._lock:
            self._stopping = True
            tickers = [*self._samplers.values(), *self._retired]
            tickers += [self._in_process_ticker] if self._in_process_ticker else []
        if self._pyspy is not None:
            self._pyspy.cancel()
        for ticker in tickers:
            ticker.stop()
        until_s = time.monotonic() + within_s
        for ticker in tickers:
            ticker.join(until_s - time.monotonic())
        if self._in_process is not None and self._in_process_dir is not None:
            switch_off(self._in_process_dir)

    def _sampler(self, process: ProcessInfo) -> Ticker:
        key = key_of(process)
        return Ticker(
            f"sampler-{process.pid}",
            lambda: self._sample(key),
            period_s=lambda: self._pace.period_s(key),
            on_error=self._on_error,
        )

    def _sample(self, key: ProcessKey) -> None:
        if self._pyspy is None or self._log.mode != "py-spy" or not self._log.in_flight:
            return
        before_s = time.thread_time()
        dump = self._pyspy.dump(key[0])
        # What starting it and reading what it printed cost in this thread is part of the price of a look, but counted
        # with sparkdiag's own process.
        price_s = dump.cpu_s + time.thread_time() - before_s
        self._log.add_cost(dump.cpu_s, period_s=self._pace.focus_period_s(), planned_share=self._pace.planned_share())
        if not is_alive(key):
            # It ended meanwhile, and its pid may already be somebody else's.
            return
        fault = dump.fault
        if fault is not None and fault.cause == "cancelled":
            return
        # A torn read is the busy process's nature, and it is the busy one that must be seen: no backing off.
        self._pace.paid(key, price_s, failed=fault is not None and fault.cause != "torn")
        self._note_outcome(fault)
        self._log.add_sample(self._marked(dump.sample), cause=None if fault is None else fault.cause)

    def _ask(self, pyspy: PySpy) -> None:
        """The processes in which the model runs first: they are the ones that must be seen."""
        processes = [process for process in self._log.processes if is_sampled(process.role)]
        for process in sorted(processes, key=lambda process: not self._pace.is_focus(key_of(process))):
            finding = can_sample(pyspy, process.pid)
            if is_alive(key_of(process)):
                self._note_outcome(finding.fault)
                if finding.fault is None or finding.fault.cause not in PASSING_CAUSES:
                    return

    def _note_outcome(self, fault: SamplingFault | None) -> None:
        if fault is None:
            self._permitted = True
        if fault is None or self._permitted is True or fault.cause in PASSING_CAUSES:
            return
        self._failures += 1
        if fault.cause in ("permission", "no-py-spy"):
            self._permitted = False
        if self._permitted is False or self._failures >= HOPELESS_AFTER:
            self._leave_pyspy(fault)

    def _leave_pyspy(self, fault: SamplingFault) -> None:
        """Take the probe's stacks instead, or none."""
        with self._lock:
            if self._log.mode != "py-spy" or self._stopping:
                return
            remedy = fault.remedy
            if fault.cause == "permission" and self._pyspy is not None:
                remedy = ptrace_remedy(ptrace_facts(), pyspy=self._pyspy.binary)
            folder, reason = self._in_process_dir, fault.line
            if folder is None:
                self._log.set_mode("none", reason=reason, remedy=remedy)
                return
            period_s = max(IN_PROCESS_MIN_PERIOD_S, self._pace.focus_period_s())
            try:
                switch_on(folder, period_s=period_s)
            except OSError as error:
                reason += f"; the probe cannot be reached: {error.strerror}"
                self._log.set_mode("none", reason=reason, remedy=remedy)
                return
            self._in_process = self._new_reader(folder)
            self._log.set_mode("in-process", reason=reason, remedy=remedy)
            self._in_process_ticker = Ticker(
                "in-process", self._read_in_process, period_s=lambda: period_s, on_error=self._on_error
            )
            self._in_process_ticker.start()

    def _read_in_process(self) -> None:
        if self._in_process is None:
            return
        pids = frozenset(process.pid for process in self._log.processes if is_sampled(process.role))
        for sample in self._in_process.read(pids):
            self._log.add_sample(self._marked(sample))
        cpu_s = self._in_process.take_cpu_s()
        if self._log.in_flight:
            self._log.add_cost(cpu_s)
        for pid in self._in_process.full - self._files_full:
            self._log.note("sampling", f"the probe's stacks file of process {pid} is full: no more samples of it")
        self._files_full = self._in_process.full

    def _marked(self, sample: StackSample) -> StackSample:
        late = sample.ended_s - sample.started_s > self._late_after_s
        return sample.model_copy(update={"late": True}) if late else sample
