"""What does watching cost: a vigil that waits, sixteen processes sampled, and the disk of an hour of it?"""

import heapq
import json
import random
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.asked import Asked, Benchmark, Findings, say
from benchmarks.paired import Comparison, Pair, compare
from benchmarks.sixteen import PROCESSES, Sixteen, sixteen
from sparkdiag.errors import SamplingRefused
from sparkdiag.evidence.processes import ProcessInfo
from sparkdiag.evidence.run import RunRecord
from sparkdiag.evidence.stacks import SamplingStats, StackSample
from sparkdiag.observing.metrics import MetricsReader
from sparkdiag.observing.observer import Observer
from sparkdiag.observing.pace import Pace
from sparkdiag.observing.process_tree import key_of
from sparkdiag.observing.pyspy import PySpy, find_pyspy
from sparkdiag.recording.folder import RunFolder
from sparkdiag.recording.stack_lines import StackLines
from sparkdiag.scenario.model import Sampling, Scenario
from sparkdiag.watching.captures import RunFolderCaptures
from sparkdiag.watching.live_stacks import LiveStacks
from sparkdiag.watching.looks import judge_samples
from sparkdiag.watching.patience import Limits
from sparkdiag.watching.request import WatchRequest, scenario_for, watched_scenario
from sparkdiag.watching.until_stall import MonotonicClock
from sparkdiag.watching.vigil import keep_vigil

HOUR_S = 3600.0
MB = 1e6
DISK_GOAL_MB = 200.0
WAITING_GOAL = 0.001
"""Of one core."""
ROUND_COST_S = 0.4
"""CPU of a round of sixteen dumps, as stated; the simulated hours go by it."""
SLICES = 6
CORES = (2, 16, 32)
"""Of simulated machines: the budget is a share of them all."""
MOVING_FRAMES = 4
"""Innermost frames whose locals differ in every simulated sample."""


def measure(asked: Asked) -> Findings:
    """Raises ``SamplingRefused`` where py-spy may not look."""
    seconds = 6.0 if asked.quick else 60.0
    request = WatchRequest(scenario=scenario_for(None))
    scenario = watched_scenario(request, processes=(), dcp=1)
    with sixteen() as there:
        waiting = _waiting(there, seconds / SLICES, out=asked.out)
        say(f"a vigil that waits: {sum(spent for _, spent in waiting) / seconds:.3%} of a core")
        stats, samples, written = _watched(there, scenario, seconds, out=asked.out)
        say(f"sixteen processes watched: {written / MB:.2f} MB in {seconds:.0f} s")
    hours = [hour(samples, scenario.sampling, cores=cores) for cores in (CORES[:1] if asked.quick else CORES)]
    comparisons = (
        compare(
            waiting,
            measured="a vigil that waits",
            reference=f"{WAITING_GOAL:.1%} of a core",
            unit="ms",
            goal=1.0,
        ),
        _disk(hours),
    )
    settings: dict[str, str | int | float] = {
        "processes": PROCESSES,
        "seconds": seconds,
        "written_mb": round(written / MB, 3),
        "samples": stats.taken,
    }
    return Findings(comparisons, settings, (_share_note(stats, seconds), _written_note(written, seconds)))


class _SlicedClock(MonotonicClock):
    """Notes what each slice of the vigil cost; the first, in which connections are made, counts for nothing."""

    def __init__(self, slice_s: float) -> None:
        super().__init__()
        self._slice_s = slice_s
        self._at: list[Pair] = []

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        if not self._at or self.now_s() - self._at[-1][0] >= self._slice_s:
            self._at.append((self.now_s(), time.process_time()))

    def slices(self) -> list[Pair]:
        """What each might have cost by the goal, and what it cost."""
        return [
            (WAITING_GOAL * (now_s - before_s), max(spent_s - spent_before_s, 1e-6))
            for (before_s, spent_before_s), (now_s, spent_s) in pairwise(self._at)
        ]


def _waiting(there: Sixteen, slice_s: float, *, out: Path) -> list[Pair]:
    """CPU seconds of this process while a real vigil waits: scrapes of the server, looks at the process tree."""
    clock = _SlicedClock(slice_s)
    metrics = MetricsReader(there.base_url, clock=clock.now_s)
    pyspy = PySpy(_binary(), clock=clock.now_s, timeout_s=8)
    keep_vigil(
        metrics=metrics,
        stacks=LiveStacks(there.pids, find_roots=lambda: (), pyspy=pyspy),
        clock=clock,
        judge=judge_samples,
        sink=RunFolderCaptures(out / "runs", new_record=_record, dcp=1),
        limits=Limits(end_after_s=slice_s * (SLICES + 2)),
    )
    metrics.close()
    return clock.slices()


def _watched(
    there: Sixteen, scenario: Scenario, seconds: float, *, out: Path
) -> tuple[SamplingStats, tuple[StackSample, ...], int]:
    """What ``watch`` does: stacks at the default budget, metrics, all of it recorded."""
    clock = MonotonicClock()
    folder = RunFolder.create(out / "runs", scenario_name="watch", short_sha=None, dcp=1, now=datetime.now(UTC))
    observer = Observer(
        there.pids[0],
        also_pids=there.pids[1:],
        scenario=scenario,
        base_url=there.base_url,
        clock=clock.now_s,
        sink=folder.append,
        server_is_ours=False,
        from_ready=True,
    )
    observer.start()
    time.sleep(seconds)
    observation = observer.snapshot()
    observer.stop()
    folder.close()
    observer.require_stacks()
    usable = tuple(sample for sample in observation.samples if sample.usable)
    if not usable:
        raise SamplingRefused("no stack could be taken of the benchmark's own children", remedy="sparkdiag doctor")
    return observation.sampling, usable, sum(path.stat().st_size for path in folder.path.iterdir())


def hour(samples: tuple[StackSample, ...], sampling: Sampling, *, cores: int) -> Pair:
    """Bytes of a simulated hour's stacks: each sample whole, and as they are written."""
    lines, whole, written = StackLines(), 0, 0
    templates = [sample.model_dump(mode="json") for sample in samples[:PROCESSES]]
    chance = random.Random(1)
    for number, (at_s, pid) in enumerate(looks(sampling, cores=cores)):
        sample = _moved(templates[number % len(templates)], chance) | {"pid": pid, "started_s": at_s, "ended_s": at_s}
        whole += len(json.dumps(sample, separators=(",", ":")))
        written += len(json.dumps(lines.line(sample), separators=(",", ":")))
    say(f"an hour on {cores} cores: {written / MB:.1f} MB, {whole / MB:.1f} MB if each sample were written whole")
    return float(whole), float(written)


def looks(sampling: Sampling, *, cores: int) -> Iterator[tuple[float, int]]:
    """When each of sixteen processes is looked at in an hour, by the real pace on a simulated clock."""
    processes = [ProcessInfo(pid=pid, started_at_s=0, role="worker", title="w") for pid in range(1, PROCESSES + 1)]
    pace = Pace(sampling, cores=cores)
    pace.follow(tuple(processes))
    due = [(0.0, process.pid) for process in processes]
    while due[0][0] < HOUR_S:
        at_s, pid = heapq.heappop(due)
        yield at_s, pid
        key = key_of(processes[pid - 1])
        pace.paid(key, ROUND_COST_S / PROCESSES, failed=False)
        heapq.heappush(due, (at_s + pace.period_s(key), pid))


def _moved(sample: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """The sample with other loop variables in its innermost frames."""
    first, *others = sample["threads"]
    moved = [
        frame | {"line": frame["line"] + chance.randrange(3), "locals": frame["locals"] | {"at": chance.random()}}
        for frame in first["frames"][:MOVING_FRAMES]
    ]
    return sample | {"threads": [first | {"frames": [*moved, *first["frames"][MOVING_FRAMES:]]}, *others]}


def _disk(hours: list[Pair]) -> Comparison:
    most = max(written for _, written in hours) / MB
    answer = "met" if most <= DISK_GOAL_MB else "missed"
    return compare(
        hours,
        measured="stacks of an hour",
        reference="each sample whole",
        unit="MB",
        note=f"goal: {DISK_GOAL_MB:.0f} MB an hour or less; the most here is {most:.0f} MB: {answer}",
    )


def _share_note(stats: SamplingStats, seconds: float) -> str:
    """The first round is taken at once: over a minute it weighs more than over an hour."""
    stated, planned = (stats.budget_share or 0.0) * stats.cores, (stats.planned_share or 0.0) * stats.cores
    word = "kept to" if planned <= stated * 1.0001 else "exceeded"
    return (
        f"sixteen processes: stated {stated:.3f} of a core ({stats.cores} cores), planned {planned:.3f}: {word}; "
        f"py-spy cost {stats.cpu_s:.2f} s of CPU in {seconds:.0f} s ({stats.cpu_s / seconds:.3f} of a core), "
        f"{stats.taken} samples"
    )


def _written_note(written: int, seconds: float) -> str:
    return (
        f"the run folder of the real children: {written / MB * HOUR_S / seconds:.0f} MB an hour, at this machine's pace"
    )


def _binary() -> Path:
    binary = find_pyspy()
    if binary is None:
        raise SamplingRefused("py-spy is not installed beside this interpreter", remedy="pip install py-spy")
    return binary


def _record() -> RunRecord:
    return RunRecord(sparkdiag_version="benchmark", started_at="", status="running", scenario={}, command=())


BENCHMARK = Benchmark(question="what watching costs: CPU of waiting, disk of an hour", about_s=200, measure=measure)
