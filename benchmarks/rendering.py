"""How long does a page of a very long run take, and how much memory, against the goal?"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.asked import Asked, Benchmark, Findings, say
from benchmarks.long_run import RECORDING, long_run
from benchmarks.paired import Comparison, Pair, compare
from sparkdiag.errors import EnvironmentFault

SAMPLES = 500_000
QUICK_SAMPLES = 50_000
GOAL_S = 10.0
GOAL_MB = 500.0
FORMATS = ("md", "json", "html", "svg", "speedscope", "trace")
MB = 1e6


def measure(asked: Asked) -> Findings:
    """Each format by the command itself, start-up, redaction and writing included."""
    samples = QUICK_SAMPLES if asked.quick else SAMPLES
    count = asked.pairs_or(1, quick=1)
    took: dict[str, list[Pair]] = {form: [] for form in FORMATS}
    used: dict[str, list[Pair]] = {form: [] for form in FORMATS}
    with tempfile.TemporaryDirectory(prefix="sparkdiag-long-run-") as scratch:
        folder = long_run(Path(scratch) / "run", samples=samples)
        written = sum(file.stat().st_size for file in folder.iterdir())
        say(f"{samples} samples, {written / MB:.0f} MB")
        for _ in range(count):
            for form in FORMATS:
                seconds, peak_mb = _rendered(folder, form, out=Path(scratch) / "page")
                say(f"{form}: {seconds:.1f} s, {peak_mb:.0f} MB")
                took[form].append((GOAL_S, seconds))
                used[form].append((GOAL_MB, peak_mb))
    comparisons = [_against(took[form], form, unit="s", goal=f"{GOAL_S:.0f} s") for form in FORMATS]
    comparisons += [_against(used[form], f"{form}, memory", unit="MB", goal=f"{GOAL_MB:.0f} MB") for form in FORMATS]
    settings: dict[str, str | int | float] = {
        "samples": samples,
        "folder_mb": round(written / MB, 1),
        "recording": RECORDING.name,
    }
    return Findings(tuple(comparisons), settings, ("with one pair there is no interval: the figures are what counts",))


def _against(pairs: list[Pair], measured: str, *, unit: str, goal: str) -> Comparison:
    return compare(pairs, measured=measured, reference=goal, unit=unit, goal=1.0)


def _rendered(folder: Path, form: str, *, out: Path) -> tuple[float, float]:
    """(seconds, largest resident memory in MB) of the command."""
    command = [sys.executable, "-m", "sparkdiag", "report", str(folder), "--format", form, "-o", str(out)]
    began_s = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.monotonic() - began_s
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.stderr is not None
    with child.stderr as stream:
        told = stream.read().decode(errors="replace")
    if child.returncode:
        raise EnvironmentFault(f"--format {form} failed: {told[-300:]}", remedy=f"sparkdiag report {folder}")
    if form == "json":
        json.loads(out.read_text(encoding="utf-8"))
    return seconds, usage.ru_maxrss * 1024 / MB


BENCHMARK = Benchmark(
    question=f"a page of a run of {SAMPLES:,} samples, the whole command, against {GOAL_S:.0f} s and {GOAL_MB:.0f} MB",
    about_s=300,
    measure=measure,
)
