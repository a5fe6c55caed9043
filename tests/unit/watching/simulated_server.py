"""A server, a clock and a judge for vigils of simulated hours: nothing sleeps, nothing is started."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from sparkdiag.errors import RunFolderError
from sparkdiag.evidence.base import Value
from sparkdiag.evidence.diagnosis import Diagnosis, Traffic
from sparkdiag.evidence.processes import ProcessInfo, Ranks
from sparkdiag.evidence.stacks import Frame, StackSample, ThreadStack
from sparkdiag.evidence.timeline import KvCapacity, MetricPoint
from sparkdiag.watching.patience import Limits, Patience
from sparkdiag.watching.vigil import keep_vigil
from sparkdiag.watching.vigil_seams import Evidence, Judge, OpenCapture, Round, VigilEvent, VigilSummary

PhaseKind = Literal[
    "idle", "decode", "prefill", "cached", "stall", "queue-stall", "restart", "silent", "slow-answers", "crawl"
]
LOADING_S = 90.0
CHUNK_S = 20.0
COST_OF_A_DUMP_S = 0.028
SCRAPE_TIMEOUT_S = 5.0


@dataclass(frozen=True)
class Phase:
    """What the server does for some time. ``prefill``: the cache's use moves once a chunk; ``crawl``: the same in a
    fallback that everybody knows; ``cached``: nothing but the stacks moves; ``silent``: it works and answers nobody;
    ``slow-answers``: it answers after six seconds."""

    kind: PhaseKind
    seconds: float


class SimulatedClock:
    """Time goes by only when somebody waits. Ends the vigil as Ctrl-C does."""

    def __init__(self, *, end_s: float, suspends: Sequence[tuple[float, float]] = ()) -> None:
        self._now_s = 0.0
        self._end_s = end_s
        self._suspends = sorted(suspends)
        self.suspended_s = 0.0

    def now_s(self) -> float:
        return self._now_s

    def sleep(self, seconds: float) -> None:
        assert seconds >= 0
        self.advance(seconds)
        if self._now_s >= self._end_s:
            raise KeyboardInterrupt

    def advance(self, seconds: float) -> None:
        self._now_s += seconds
        while self._suspends and self._suspends[0][0] <= self._now_s:
            _, slept_s = self._suspends.pop(0)
            self._now_s += slept_s
            self._end_s += slept_s
            self.suspended_s += slept_s


class SimulatedServer:
    """Metrics and stacks of a server that goes through its phases; while the machine is suspended so is the server."""

    def __init__(self, phases: Sequence[Phase], clock: SimulatedClock, *, workers: int = 2) -> None:
        self._phases = phases
        self._clock = clock
        self._workers = workers
        self.scrapes = 0
        self.rounds = 0

    def _place(self) -> tuple[int, Phase, float]:
        """Number of the phase, the phase, seconds since it began."""
        left_s = self._clock.now_s() - self._clock.suspended_s
        for number, phase in enumerate(self._phases):
            if left_s < phase.seconds:
                return number, phase, left_s
            left_s -= phase.seconds
        return len(self._phases), Phase("idle", float("inf")), left_s

    def read(self) -> tuple[MetricPoint, KvCapacity | None]:
        self.scrapes += 1
        number, phase, into_s = self._place()
        if phase.kind == "restart" or phase.kind == "silent":
            self._clock.advance(SCRAPE_TIMEOUT_S if phase.kind == "silent" or into_s > LOADING_S / 3 else 0.001)
            return MetricPoint(t_s=self._clock.now_s(), error="/metrics: refused", latency_s=SCRAPE_TIMEOUT_S), None
        latency_s = 6.0 if phase.kind == "slow-answers" else 0.002
        self._clock.advance(latency_s)
        running, waiting = {"idle": (0, 0), "queue-stall": (0, 3)}.get(phase.kind, (1, 1))
        point = MetricPoint(
            t_s=self._clock.now_s(),
            requests_running=running,
            requests_waiting=waiting,
            latency_s=latency_s,
            **self._counters(number, phase, into_s),
        )
        return point, KvCapacity(t_s=point.t_s, num_blocks=1000, block_size_tokens=16)

    def _counters(self, number: int, phase: Phase, into_s: float) -> dict[str, float]:
        began = max((place for place, one in enumerate(self._phases[:number]) if one.kind == "restart"), default=-1) + 1
        done = self._phases[began:number]
        decoded_s = sum(one.seconds for one in done if one.kind in ("decode", "slow-answers", "silent"))
        decoded_s += into_s if phase.kind in ("decode", "slow-answers") else 0.0
        chunks = into_s // CHUNK_S if phase.kind in ("prefill", "crawl") else 0
        prefills = sum(one.kind in ("prefill", "cached", "crawl") for one in done)
        return {
            "generation_tokens_total": float(int(decoded_s * 20)),
            "iterations_total": float(int(decoded_s * 20) + prefills),
            "prompt_tokens_total": 5000.0 * prefills,
            "requests_finished_total": float(int(decoded_s / 7)),
            "kv_cache_usage": min(1.0, 0.01 * chunks),
        }

    def processes(self) -> tuple[ProcessInfo, ...]:
        number, phase, into_s = self._place()
        restarts = sum(one.kind == "restart" for one in self._phases[: number + 1])
        if phase.kind == "restart" and into_s < LOADING_S / 3:
            return ()
        base = 1000 * (restarts + 1)
        engine = ProcessInfo(pid=base, started_at_s=base, role="engine_core", title="VLLM::EngineCore")
        return (
            engine,
            *(
                ProcessInfo(pid=base + 1 + rank, started_at_s=base, role="worker", ranks=Ranks(tp=rank), title="W")
                for rank in range(self._workers)
            ),
        )

    def look(self) -> Round:
        self.rounds += 1
        _, phase, into_s = self._place()
        processes = self.processes()
        waits = {"idle": "wait_for_input", "stall": "all_gather", "queue-stall": "schedule", "restart": "load"}
        samples = []
        for process in processes:
            began_s = self._clock.now_s()
            self._clock.advance(0.03)
            name = "fallback" if phase.kind == "crawl" else "kernel"
            function = waits.get(phase.kind, f"{name}_{int(into_s * 10) % 7}")
            samples.append(sample_of(process.pid, function, began_s=began_s, ended_s=self._clock.now_s()))
        return Round(samples=tuple(samples), cpu_s=COST_OF_A_DUMP_S * len(samples))


def sample_of(pid: int, function: str, *, began_s: float, ended_s: float) -> StackSample:
    frame = Frame(function=function, filename="model.py", line=7)
    return StackSample(pid=pid, started_s=began_s, ended_s=ended_s, threads=(ThreadStack(frames=(frame,)),))


def simple_judge(
    samples: Sequence[StackSample], *, processes: Sequence[ProcessInfo], traffic: Traffic | None
) -> Diagnosis:
    """As the real one: moving where a stack changes, stalled from 30 s of the same or of a known fallback on; idle and
    loading apart."""
    places: dict[int, set[str]] = {}
    for sample in samples:
        places.setdefault(sample.pid, set()).add(sample.threads[0].frames[0].function)
    span_s = max(sample.at_s for sample in samples) - min(sample.at_s for sample in samples)
    seen = set().union(*places.values())
    silent_s = traffic.silent_s if traffic is not None else None
    if all(place.startswith("fallback") for place in seen) and max(span_s, silent_s or 0) >= 30:
        return Diagnosis(kind="torch-fallback", finding="stalled", function="fallback")
    if any(len(one) > 1 for one in places.values()):
        return Diagnosis(kind="forward", finding="moving", function="kernel")
    if seen == {"wait_for_input"}:
        return Diagnosis(kind="idle", finding="healthy")
    if seen == {"load"}:
        return Diagnosis(kind="weight-load", finding="unknown")
    return Diagnosis(kind="collective-wait", finding="stalled" if span_s >= 30 else "unknown", function=seen.pop())


@dataclass
class KeptCapture:
    """One capture in memory."""

    evidence: Evidence
    path: Path
    added: list[Value] = field(default_factory=list)
    ending: str | None = None
    interrupted: bool = False

    @property
    def size_bytes(self) -> int:
        return 1000 * (len(self.added) + len(self.evidence.samples))

    def add(self, value: Value) -> None:
        assert self.ending is None
        self.added.append(value)

    def close(self, *, ending: str, interrupted: bool) -> tuple[str, ...]:
        assert self.ending is None
        self.ending, self.interrupted = ending, interrupted
        return ()


class KeptCaptures:
    """The sink. ``full`` disks refuse as long as they are full."""

    def __init__(self, *, full: bool = False) -> None:
        self.all: list[KeptCapture] = []
        self.full = full
        self.refused = 0

    def open(self, evidence: Evidence) -> OpenCapture:
        if self.full:
            self.refused += 1
            raise RunFolderError("cannot make a run folder: no space left on device", remedy="make room")
        assert all(one.ending is not None for one in self.all), "one capture is open at a time"
        self.all.append(KeptCapture(evidence, Path(f"/runs/{len(self.all)}")))
        return self.all[-1]

    def called(self, label: str) -> list[Evidence]:
        return [one.evidence for one in self.all if one.evidence.label == label]


@dataclass
class Simulated:
    """A vigil that is over."""

    summary: VigilSummary
    captures: KeptCaptures
    events: list[VigilEvent]
    server: SimulatedServer
    clock: SimulatedClock


def simulate(
    phases: Sequence[Phase],
    *,
    suspends: Sequence[tuple[float, float]] = (),
    metrics: bool = True,
    stacks: bool = True,
    captures: KeptCaptures | None = None,
    limits: Limits | None = None,
    patience: Patience | None = None,
    judge: Judge | None = None,
    workers: int = 2,
) -> Simulated:
    clock = SimulatedClock(end_s=sum(phase.seconds for phase in phases), suspends=suspends)
    server = SimulatedServer(phases, clock, workers=workers)
    kept, events = captures or KeptCaptures(), list[VigilEvent]()
    summary = keep_vigil(
        metrics=server if metrics else None,
        stacks=server if stacks else None,
        clock=clock,
        judge=judge or simple_judge,
        sink=kept,
        patience=patience,
        limits=limits,
        tell=events.append,
    )
    return Simulated(summary, kept, events, server, clock)


def began_at_s(phases: Sequence[Phase], number: int) -> float:
    """When a phase begins."""
    return sum(phase.seconds for phase in phases[:number])
