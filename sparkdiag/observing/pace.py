"""What each process's dumps have cost so far, and the period that follows for it."""

import threading

from sparkdiag.evidence.processes import ProcessInfo
from sparkdiag.observing.process_tree import ProcessKey, key_of
from sparkdiag.observing.schedule import (
    FIRST_COST_S,
    Periods,
    backed_off_s,
    periods,
    predicted_share,
    smoothed_cost_s,
)
from sparkdiag.scenario.model import Sampling


def focus_of(processes: tuple[ProcessInfo, ...]) -> frozenset[ProcessKey]:
    """The processes in which the model runs: workers, or the EngineCore where there is none (CUDA with TP 1)."""
    workers = frozenset(key_of(process) for process in processes if process.role == "worker")
    return workers or frozenset(key_of(process) for process in processes if process.role == "engine_core")


class Pace:
    """Thread-safe; knows no clock."""

    def __init__(self, sampling: Sampling, *, cores: int) -> None:
        self._sampling = sampling
        self._cores = cores
        self._lock = threading.Lock()
        self._focus: frozenset[ProcessKey] = frozenset()
        self._costs_s: dict[ProcessKey, float | None] = {}
        self._failures: dict[ProcessKey, int] = {}

    def follow(self, sampled: tuple[ProcessInfo, ...]) -> None:
        """These are the processes that are sampled from now on."""
        with self._lock:
            self._focus = focus_of(sampled)
            self._costs_s = {key_of(process): self._costs_s.get(key_of(process)) for process in sampled}
            self._failures = {key: count for key, count in self._failures.items() if key in self._costs_s}

    def paid(self, key: ProcessKey, cpu_s: float, *, failed: bool) -> None:
        """One dump of this process cost so much."""
        with self._lock:
            if key in self._costs_s:
                self._costs_s[key] = smoothed_cost_s(self._costs_s[key], cpu_s)
                self._failures[key] = self._failures.get(key, 0) + 1 if failed else 0

    def period_s(self, key: ProcessKey) -> float:
        """Seconds from the start of one look at this process to the next."""
        with self._lock:
            found = self._periods()
            period_s = found.focus_s if key in self._focus else found.others_s
            return backed_off_s(
                period_s, failures_in_a_row=self._failures.get(key, 0), longest_s=self._sampling.max_period_s
            )

    def is_focus(self, key: ProcessKey) -> bool:
        """Whether the model runs in this process."""
        with self._lock:
            return key in self._focus

    def focus_period_s(self) -> float:
        """The period of the processes in which the model runs."""
        with self._lock:
            return self._periods().focus_s

    def planned_share(self) -> float:
        """Share of the machine that the periods come to, at the costs measured so far; 0 with nothing to sample."""
        with self._lock:
            focus_cost_s, others_cost_s = self._sums_s()
            return predicted_share(
                self._periods(), focus_cost_s=focus_cost_s, others_cost_s=others_cost_s, cores=self._cores
            )

    def _periods(self) -> Periods:
        focus_cost_s, others_cost_s = self._sums_s()
        return periods(
            focus_cost_s=focus_cost_s, others_cost_s=others_cost_s, cores=self._cores, sampling=self._sampling
        )

    def _sums_s(self) -> tuple[float, float]:
        """CPU seconds of one look at each process in which the model runs, and at each of the others."""
        costs_s = {key: FIRST_COST_S if cost_s is None else cost_s for key, cost_s in self._costs_s.items()}
        focus_s = sum(cost_s for key, cost_s in costs_s.items() if key in self._focus)
        return focus_s, sum(costs_s.values()) - focus_s
