"""``python -m benchmarks NAME``: one measurement, printed as paired ratios."""

import argparse
import importlib
import sys
import tempfile
from pathlib import Path

from benchmarks.asked import Asked, Benchmark, say
from benchmarks.machine import look, quiet
from benchmarks.shown import Result, as_json, as_text
from sparkdiag.errors import ExitCode, SparkdiagError
from sparkdiag.reproducing.signals import Terminated, sigterm_raises

MODULES = {
    "cli": "benchmarks.cli_start",
    "prefill": "benchmarks.prefill",
    "yielding": "benchmarks.yielding",
    "verdict": "benchmarks.verdict",
    "latency": "benchmarks.latency",
    "bisect": "benchmarks.bisect_trials",
    "overlay": "benchmarks.overlay",
    "route": "benchmarks.route",
    "triage": "benchmarks.triage",
    "watch": "benchmarks.watch",
    "probe": "benchmarks.probe",
    "rendering": "benchmarks.rendering",
}


def parser() -> argparse.ArgumentParser:
    """The options; README.md tells the same."""
    found = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    found.add_argument("name", choices=MODULES)
    found.add_argument("--quick", action="store_true", help="as few pairs as show that it runs")
    found.add_argument("--pairs", type=_positive, help="how many pairs instead of the benchmark's own number")
    found.add_argument("--prompt-tokens", type=_positive, help="length of the lab's prompt; default: the scenario's")
    found.add_argument("--anyway", action="store_true", help="measure on a busy machine too")
    found.add_argument("--json", action="store_true", help="one JSON document on stdout")
    found.add_argument("--out", type=Path, help="keep server logs and evidence in this folder; default: thrown away")
    found.add_argument("--repo", type=Path, help="of route: a clone of vLLM; default: the lab's small history")
    return found


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return number


def benchmark_of(name: str) -> Benchmark:
    """Only the one that is asked for is imported: the start-up of the command line needs nothing of a server."""
    found: Benchmark = importlib.import_module(MODULES[name]).BENCHMARK
    return found


def run(name: str, benchmark: Benchmark, *, asked: Asked, anyway: bool) -> Result:
    """Measure it. Raises ``SparkdiagError``."""
    load = quiet(anyway=anyway)
    say(f"{name}: {load.line}; about {benchmark.about_s} s" + (", less with --quick" if asked.quick else ""))
    if load.busy:
        say("WARNING: this machine is busy; the ratios below say little")
    found = benchmark.measure(asked)
    return Result(
        name=name,
        question=benchmark.question,
        load=load,
        load_after=look(),
        settings=found.settings,
        comparisons=found.comparisons,
        notes=(*(("measured on a busy machine: says little",) if load.busy else ()), *found.notes),
    )


def main() -> int:
    options = parser().parse_args()
    with tempfile.TemporaryDirectory(prefix="sparkdiag-benchmark-") as scratch:
        asked = Asked(
            quick=options.quick,
            pairs=options.pairs,
            prompt_tokens=options.prompt_tokens,
            out=options.out or Path(scratch),
            repo=options.repo,
        )
        try:
            with sigterm_raises():
                result = run(options.name, benchmark_of(options.name), asked=asked, anyway=options.anyway)
        except (KeyboardInterrupt, Terminated) as stop:
            say("interrupted; everything started is stopped")
            return int(ExitCode.INTERRUPTED if isinstance(stop, KeyboardInterrupt) else ExitCode.TERMINATED)
        except SparkdiagError as error:
            say("\n".join([f"error: {error.message}", *error.details, f"next: {error.remedy}"]))
            return int(error.exit_code)
    print(as_json(result) if options.json else as_text(result))
    return int(ExitCode.DONE)


if __name__ == "__main__":
    sys.exit(main())
