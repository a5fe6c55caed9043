"""What does it cost the server that its scheduling group is lowered so that samplers get their turn?"""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median

from benchmarks.asked import Asked, Benchmark, Findings, say
from benchmarks.autogroup import may_lift
from benchmarks.lab_server import Lab, lab_environment, lab_scenario, lab_server
from benchmarks.paired import Pair, compare, rounds
from sparkdiag.errors import EnvironmentFault
from sparkdiag.evidence.verdict import Baseline
from sparkdiag.serving.priority import NICE

KEPT = "the server keeps its priority"
LOWERED = f"its scheduling group at nice +{NICE}"
NICE_OF = {KEPT: 0, LOWERED: NICE}


@contextmanager
def burning(count: int) -> Iterator[None]:
    """So many processes in sessions of their own that do nothing but use CPU."""
    argv = [sys.executable, "-c", "while True: pass"]
    burners = [subprocess.Popen(argv, start_new_session=True) for _ in range(count)]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


def take(lab: Lab, prompt: Callable[[], float], *, count: int) -> list[Pair]:
    """Pairs of times to first token: priority kept, priority lowered."""
    rows: list[dict[str, float]] = []
    for order in rounds((KEPT, LOWERED), count=count):
        row = {}
        for name in order:
            lab.yields(NICE_OF[name])
            row[name] = prompt()
            say(f"{row[name]:.2f} s  {name}")
        rows.append(row)
    return [(row[KEPT], row[LOWERED]) for row in rows]


def measure(asked: Asked) -> Findings:
    count = asked.pairs_or(6, quick=1)
    scenario = lab_scenario(dcp=1, prompt_tokens=asked.prompt_tokens)
    with lab_server(scenario, lab_environment(scenario), out=asked.out) as lab:
        if not may_lift(lab.server.root_pid):
            raise EnvironmentFault(
                "this user cannot take back a lowered priority, so there are no pairs to measure",
                remedy="run it as root, on a kernel with autogroup (/proc/self/autogroup exists)",
            )
        warm_up_s = median(lab.first_token_s() for _ in range(2))
        baseline = Baseline(kind="given", seconds=warm_up_s, source="the warm-up")
        alone = take(lab, lambda: lab.first_token_watched_s(baseline), count=count)
        with burning(1):
            # Not judged: a lowered server beside others can be ten times slower, which is the question here.
            beside = take(lab, lab.first_token_s, count=max(1, count // 3))
    comparisons = (
        compare(alone, measured=LOWERED, reference=KEPT, note="alone on the machine, under the default sampling"),
        compare(
            beside, measured=LOWERED, reference=KEPT, note="beside one process that burns a core, with nobody looking"
        ),
    )
    return Findings(comparisons, {"prompt_tokens": scenario.prompt.tokens, "pairs": count})


BENCHMARK = Benchmark(question="what yielding to samplers costs the server, lab at DCP 1", about_s=480, measure=measure)
