"""What does the probe's dispatch ledger cost a prefill of the lab, against its goal of a hundredth?

Both sides run in one process of the lab's environment, without a server and its own work: the same prompt through the
same layers, with the watched functions' own code and with the stand-ins', chunk by chunk in turn. CPU time of the
process counts, writing included, so that a busy machine disturbs less. Every call has its line.
"""

import json
import os
import subprocess
from pathlib import Path

from benchmarks.asked import Asked, Benchmark, Findings, say
from benchmarks.lab_server import lab_environment, lab_scenario
from benchmarks.paired import Pair, compare
from sparkdiag.environment.cache import hold
from sparkdiag.environment.model import Environment
from sparkdiag.errors import EnvironmentFault
from sparkdiag.evidence.ledger import DispatchTotals
from sparkdiag.probe.locate import package_folder, probe_environment
from sparkdiag.scenario.model import Scenario

GOAL = 1.01
WITHOUT = "the functions' own code"
WITH = "the dispatch ledger"
INSIDE = Path(__file__).with_name("probe_inside.py")
TIMEOUT_S = 600.0


def measure(asked: Asked) -> Findings:
    """Raises ``EnvironmentFault`` where the child fails."""
    count = asked.pairs_or(20, quick=1)
    scenario = lab_scenario(dcp=1, prompt_tokens=asked.prompt_tokens)
    tokens = scenario.prompt.tokens
    environment = lab_environment(scenario)
    with hold(environment):
        folder = asked.out / "probe"
        folder.mkdir(parents=True, exist_ok=True)
        pairs = _pairs(environment, scenario, folder=folder, count=count, tokens=tokens)
    written, dropped = _lines(folder)
    comparison = compare(pairs, measured=WITH, reference=WITHOUT, goal=GOAL)
    settings: dict[str, str | int | float] = {"prompt_tokens": tokens, "pairs": count, "lines": written}
    return Findings((comparison,), settings, (f"{written:,} calls with a line, {dropped:,} without",))


def _pairs(environment: Environment, scenario: Scenario, *, folder: Path, count: int, tokens: int) -> list[Pair]:
    path = os.pathsep.join([str(package_folder()), *environment.pythonpath])
    env = {name: value for name, value in os.environ.items() if name not in environment.drop_env}
    env |= {**scenario.server.env, **environment.env, "PYTHONPATH": path}
    env |= probe_environment(scenario, folder=folder)
    pairs: list[Pair] = []
    with subprocess.Popen(
        [environment.python, str(INSIDE), str(count), str(tokens)], env=env, stdout=subprocess.PIPE, text=True
    ) as child:
        try:
            assert child.stdout is not None
            for line in child.stdout:
                without_s, with_s = json.loads(line)
                pairs.append((without_s, with_s))
                say(f"{without_s:.3f} s  {WITHOUT}   {with_s:.3f} s  {WITH}")
            code = child.wait(TIMEOUT_S)
        finally:
            child.kill()
    if code or len(pairs) != count:
        raise EnvironmentFault(
            f"the prefill's process ended with exit status {code} after {len(pairs)} of {count} pairs",
            remedy="sparkdiag env build lab",
        )
    return pairs


def _lines(folder: Path) -> tuple[int, int]:
    """Calls with a line and without, by the process' last totals."""
    for path in folder.glob("dispatch-*.jsonl"):
        for line in reversed(path.read_text(encoding="utf-8").splitlines()):
            if json.loads(line)["event"] == "totals":
                totals = DispatchTotals.model_validate_json(line)
                return totals.written, totals.dropped
    raise EnvironmentFault("the probe recorded nothing", remedy="python -m benchmarks probe --out DIR, and look there")


BENCHMARK = Benchmark(
    question="CPU time of a prefill of the lab with and without the dispatch ledger", about_s=240, measure=measure
)
