"""How long does one stack sample take, on an idle machine and on one that the server saturates?"""

import itertools
import time
from collections import Counter
from collections.abc import Sequence

from benchmarks.asked import Asked, Benchmark, Findings, say
from benchmarks.autogroup import may_lift
from benchmarks.lab_server import Lab, lab_environment, lab_scenario, lab_server
from benchmarks.paired import Comparison, compare, quantile_ratio, rounds
from sparkdiag.errors import EnvironmentFault, SamplingRefused, ServerError
from sparkdiag.observing.pyspy import PySpy, find_pyspy
from sparkdiag.serving.priority import NICE

IDLE = "idle machine"
SATURATED = "saturated, priority kept"
YIELDING = f"saturated, server at nice +{NICE}"
NICE_OF = {SATURATED: 0, YIELDING: NICE}
BATCH = 10
BATCH_S = 45.0
"""A batch that takes longer is cut short."""
GAP_S = 0.1
SETTLE_S = 2.0


class Dumps:
    """Dumps of some processes in turn, and what they took."""

    def __init__(self, pyspy: PySpy, pids: Sequence[int]) -> None:
        self._pyspy = pyspy
        self._pids = itertools.cycle(pids)
        self.faults: Counter[str] = Counter()

    def take(self, count: int) -> list[float]:
        """Seconds of each of ``count`` dumps, failed ones included; fewer where they take very long."""
        until_s = time.monotonic() + BATCH_S
        figures: list[float] = []
        for pid in itertools.islice(self._pids, count):
            dump = self._pyspy.dump(pid)
            if dump.fault is not None:
                if dump.fault.cause == "permission":
                    raise SamplingRefused(dump.fault.line, remedy="sparkdiag doctor")
                self.faults[dump.fault.cause] += 1
            figures.append(dump.sample.ended_s - dump.sample.started_s)
            if time.monotonic() > until_s:
                break
            time.sleep(GAP_S)
        return figures


def measure(asked: Asked) -> Findings:
    count = asked.pairs_or(8, quick=1)
    scenario = lab_scenario(dcp=2, prompt_tokens=asked.prompt_tokens)
    binary = find_pyspy()
    if binary is None:
        raise EnvironmentFault("py-spy is not installed beside this interpreter", remedy="pip install py-spy")
    pyspy = PySpy(binary, clock=time.monotonic, timeout_s=scenario.sampling.dump_timeout_s)
    with lab_server(scenario, lab_environment(scenario), out=asked.out) as lab:
        _refuse_without_the_right(lab)
        dumps = Dumps(pyspy, lab.workers())
        found = {IDLE: dumps.take(BATCH * count), **_saturated(lab, dumps, count=count)}
    failed = ", ".join(f"{number} x {cause}" for cause, number in sorted(dumps.faults.items())) or "none"
    notes = (f"failed dumps: {failed}; one is killed after {scenario.sampling.dump_timeout_s:g} s and counts as that",)
    return Findings(_comparisons(found), {name: len(figures) for name, figures in found.items()}, notes)


def _saturated(lab: Lab, dumps: Dumps, *, count: int) -> dict[str, list[float]]:
    """Dumps while a stalled prefill keeps all cores busy, as long as it lasts."""
    found: dict[str, list[float]] = {SATURATED: [], YIELDING: []}
    with lab.prefill_in_flight() as in_flight:
        for order in rounds((SATURATED, YIELDING), count=count):
            taken = {}
            for name in order:
                lab.yields(NICE_OF[name])
                time.sleep(SETTLE_S)
                taken[name] = dumps.take(BATCH)
                say(f"{max(taken[name]) * 1000:.0f} ms at most  {name}")
            if not in_flight():
                say("the prompt was answered: no further rounds")
                break
            for name, figures in taken.items():
                found[name] += figures
    if not found[SATURATED]:
        raise ServerError("the prompt was answered before one round was over", remedy="leave --prompt-tokens out")
    return found


def _refuse_without_the_right(lab: Lab) -> None:
    if not may_lift(lab.server.root_pid):
        raise EnvironmentFault(
            "this user cannot take back a lowered priority, so there are no pairs to measure",
            remedy="run it as root, on a kernel with autogroup (/proc/self/autogroup exists)",
        )


def _comparisons(found: dict[str, list[float]]) -> tuple[Comparison, ...]:
    """Medians and 95th percentiles; the largest stands in each line anyway."""
    return tuple(
        compare(
            list(zip(found[reference], found[measured], strict=False)),
            measured=measured,
            reference=reference,
            unit="ms",
            statistic=quantile_ratio(quantile),
            note=f"ratio of the {told}",
        )
        for reference, measured in ((IDLE, SATURATED), (IDLE, YIELDING), (SATURATED, YIELDING))
        for quantile, told in ((0.5, "medians"), (0.95, "95th percentiles"))
    )


BENCHMARK = Benchmark(question="seconds a stack sample takes, lab at DCP 2", about_s=240, measure=measure)
