"""How long does the command line take to answer, against importing its option parser alone?"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.asked import Asked, Benchmark, Findings
from benchmarks.paired import Pair, compare, rounds

GOAL = 2.0
TIMEOUT_S = 60
REFERENCE = 'python -c "import typer"'
COMPLETING = {"_SPARKDIAG_COMPLETE": "complete_bash", "COMP_WORDS": "sparkdiag ru", "COMP_CWORD": "1"}


class Call(NamedTuple):
    """A command whose whole process is timed."""

    argv: tuple[str, ...]
    env: dict[str, str] = {}


class Cost(NamedTuple):
    """Of one process, from start to end."""

    wall_s: float
    cpu_s: float


def calls() -> dict[str, Call]:
    """What is compared with the reference, by name."""
    console_script = Path(sys.executable).parent / "sparkdiag"
    ours = (str(console_script),) if console_script.exists() else (sys.executable, "-m", "sparkdiag")
    return {
        "sparkdiag --help": Call((*ours, "--help")),
        "sparkdiag runs list": Call((*ours, "runs", "list", "--out", "/nonexistent")),
        "a shell completion": Call(ours, COMPLETING),
    }


def time_call(call: Call, *, env: dict[str, str]) -> Cost:
    """Raises ``subprocess.CalledProcessError`` where the command fails."""
    began_s = time.perf_counter()
    child = subprocess.Popen(
        call.argv, env=env | call.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _pid, status, usage = os.wait4(child.pid, 0)
    wall_s = time.perf_counter() - began_s
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise subprocess.CalledProcessError(child.returncode, call.argv)
    return Cost(wall_s=wall_s, cpu_s=usage.ru_utime + usage.ru_stime)


@contextmanager
def compiled_once() -> Iterator[dict[str, str]]:
    """An environment in which every module's bytecode is kept from the first call on, as in any installed tool, and
    apart from the caller's own."""
    folder = tempfile.mkdtemp(prefix="sparkdiag-bytecode-")
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    try:
        yield env | {"PYTHONPYCACHEPREFIX": folder}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def measure(asked: Asked) -> Findings:
    count = asked.pairs_or(25, quick=3)
    ours = calls()
    everything = {REFERENCE: Call((sys.executable, "-c", "import typer")), **ours}
    costs: dict[str, list[Cost]] = {name: [] for name in everything}
    with compiled_once() as env:
        for call in everything.values():
            time_call(call, env=env)
        for order in rounds(tuple(everything), count=count):
            for name in order:
                costs[name].append(time_call(everything[name], env=env))
    comparisons = []
    for name in ours:
        goal = GOAL if name.endswith("--help") else None
        both = list(zip(costs[REFERENCE], costs[name], strict=True))
        wall: list[Pair] = [(reference.wall_s, measured.wall_s) for reference, measured in both]
        cpu: list[Pair] = [(reference.cpu_s, measured.cpu_s) for reference, measured in both]
        comparisons.append(compare(wall, measured=name, reference=REFERENCE, unit="ms", goal=goal))
        comparisons.append(compare(cpu, measured=f"{name}, CPU time", reference=f"{REFERENCE}, CPU time", unit="ms"))
    return Findings(tuple(comparisons), {"pairs": count, "python": sys.version.split()[0]})


BENCHMARK = Benchmark(question="start-up of the command line against importing typer", about_s=60, measure=measure)
