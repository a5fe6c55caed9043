"""How long from a pasted dump to its diagnosis, against the goal of 1,000 dumps a second on one core?

A dump is one process with one thread of 25 frames. CPU time counts, so that a busy machine disturbs less.
"""

import sys
import time
from collections.abc import Callable, Sequence
from statistics import median

from benchmarks.asked import Asked, Benchmark, Findings, say
from benchmarks.paired import Comparison, Pair, compare, rounds
from sparkdiag.diagnosing.diagnose import diagnose_pasted
from sparkdiag.dumps.read import read_dumps

GOAL_PER_S = 1000
FRAMES = 25
DUMPS = 500
"""In one measurement."""
_CALLS = (
    "_fp8_mqa_logits_torch (vllm/model_executor/layers/sparse_attn_indexer.py:{line})",
    "SparseAttnIndexer.forward_cuda (vllm/model_executor/layers/sparse_attn_indexer.py:786)",
    *(
        "Module._call_impl (torch/nn/modules/module.py:1790)",
        "Module._wrapped_call_impl (torch/nn/modules/module.py:1779)",
    )
    * 8,
    "GPUModelRunner.execute_model (vllm/v1/worker/gpu_model_runner.py:4394)",
    "Worker.execute_model (vllm/v1/worker/gpu_worker.py:1147)",
    "WorkerProc.worker_busy_loop (vllm/v1/executor/multiproc_executor.py:999)",
    "WorkerProc.worker_main (vllm/v1/executor/multiproc_executor.py:892)",
    "BaseProcess._bootstrap (multiprocessing/process.py:314)",
    "spawn_main (multiprocessing/spawn.py:122)",
    "<module> (<string>:1)",
)


def dump(number: int, *, strange: bool = False) -> str:
    """The text of a dump; a ``strange`` one has no frame in common with any other."""
    lines = [f"Process {1000 + number}: VLLM::Worker_TP{number % 8}", "Python v3.12.3 (/usr/bin/python3.12)", ""]
    lines.append(f'Thread {1000 + number} (active): "MainThread"')
    for place in range(FRAMES):
        call = f"Layer{place}.call_{number} (a_model/part_{number}/layer_{place}.py:{place + 1})"
        lines.append("    " + (call if strange else _CALLS[place].format(line=300 + number % 50)))
    return "\n".join([*lines, ""])


def measure(asked: Asked) -> Findings:
    """Whole triage, and reading by itself: of dumps as they come, and of dumps that have nothing in common."""
    count = asked.pairs_or(15, quick=2)
    usual = [dump(number) for number in range(DUMPS)]
    steps: dict[str, Callable[[], None]] = {
        "triage of a dump": lambda: _triage(usual),
        "reading a dump": lambda: _read(usual),
    }
    for step in steps.values():
        step()  # not counted: patterns are compiled, signatures loaded
    pairs: dict[str, list[Pair]] = {name: [] for name in steps}
    strange: list[Pair] = []
    for turn, names in enumerate(rounds(tuple(steps), count=count)):
        for name in names:
            pairs[name].append((1 / GOAL_PER_S, _cpu_s(steps[name]) / DUMPS))
        # Never the same twice: what was remembered of an earlier dump is of no use to it.
        texts = [dump(number, strange=True) for number in range(turn * DUMPS, (turn + 1) * DUMPS)]
        strange.append((1 / GOAL_PER_S, _cpu_s(lambda texts=texts: _read(texts)) / DUMPS))  # type: ignore[misc]
        say(f"{1 / pairs['triage of a dump'][-1][1]:,.0f} dumps a second")
    comparisons = [_against_goal(pairs[name], measured=name) for name in steps]
    comparisons.append(_against_goal(strange, measured="reading one unlike all before"))
    return Findings(tuple(comparisons), {"frames": FRAMES, "dumps": DUMPS, "python": sys.version.split()[0]})


def _triage(texts: Sequence[str]) -> None:
    for text in texts:
        diagnose_pasted([read_dumps(text, source="benchmark")])


def _read(texts: Sequence[str]) -> None:
    for text in texts:
        read_dumps(text, source="benchmark")


def _cpu_s(step: Callable[[], None]) -> float:
    began_s = time.process_time()
    step()
    return time.process_time() - began_s


def _against_goal(pairs: Sequence[Pair], *, measured: str) -> Comparison:
    a_second = 1 / median(seconds for _, seconds in pairs)
    return compare(
        pairs,
        measured=measured,
        reference=f"{GOAL_PER_S:,} a second",
        unit="ms",
        goal=1.0,
        note=f"{a_second:,.0f} a second on one core",
    )


BENCHMARK = Benchmark(
    question="from a pasted dump to its diagnosis, CPU time of one core, against the goal",
    about_s=45,
    measure=measure,
)
