"""``kernel bench``, from what was asked to the table; whatever ends it, what was measured is shown."""

import secrets

from sparkdiag.cli.kernel_run import BenchAsked, Progress, interpreter_for, revision_of
from sparkdiag.cli.talk import say
from sparkdiag.errors import EnvironmentFault, ExitCode
from sparkdiag.evidence.kernel_runs import KernelEnvironment
from sparkdiag.kernels.figures import bench_document
from sparkdiag.kernels.gpus import gpu_of_device
from sparkdiag.kernels.grid import BENCH_SHAPES, Shape, bench_calls, estimate_s, parse_shapes
from sparkdiag.kernels.heard import Heard
from sparkdiag.kernels.orders import bench_order, cpu_shapes
from sparkdiag.kernels.session import Interpreter, OutOfTime, Talk, converse, fault_of
from sparkdiag.reporting.kernel_bench import bench_text
from sparkdiag.reporting.route_document import document_text
from sparkdiag.reproducing.signals import Terminated, sigterm_raises

CALL_BUDGET_S = 4.0
"""For the repeats of one kernel on one row; two repeats are made even where they take longer."""


def run_bench(asked: BenchAsked) -> ExitCode:
    """Bench, print, and say how it ended."""
    shapes = parse_shapes(asked.shapes)
    shapes = cpu_shapes(shapes) if asked.device == "cpu" else shapes or BENCH_SHAPES
    kernels, revision = revision_of(asked)
    seed = asked.seed if asked.seed is not None else secrets.randbelow(2**31)
    order = bench_order(
        device=asked.device,
        seed=seed,
        shapes=shapes,
        repeat=asked.repeat,
        budget_s=CALL_BUDGET_S,
        revision=kernels,
    )
    heard, ended_by, code = Heard(revision), None, ExitCode.DONE
    interpreter, talk = None, None
    try:
        with sigterm_raises():
            interpreter = interpreter_for(asked)
            say(_forecast(asked, shapes, revision=kernels is not None))
            talk = _measured(asked, interpreter, order, heard, rows=len(bench_calls(shapes)))
    except KeyboardInterrupt:
        ended_by, code = "interrupted", ExitCode.INTERRUPTED
    except Terminated:
        ended_by, code = "terminated", ExitCode.TERMINATED
    except OutOfTime as late:
        if not heard.timed:
            raise
        ended_by, code = f"{late.message}; {late.remedy}", ExitCode.INCONCLUSIVE
    if talk is not None and talk.problem is not None and interpreter is not None:
        fault = fault_of(talk.problem, interpreter)
        if not heard.timed:
            raise fault
        ended_by, code = fault.message, ExitCode.INCONCLUSIVE
    _show(asked, heard, seed=seed, ended_by=ended_by)
    if code is ExitCode.DONE and not any(call.times_ms for call in heard.timed):
        return ExitCode.INCONCLUSIVE
    return code


def _measured(
    asked: BenchAsked, interpreter: Interpreter, order: dict[str, object], heard: Heard, *, rows: int
) -> Talk:
    with Progress(plain=asked.as_json) as progress:
        hearing = progress.hearing(heard, before=lambda: f"row {_row(heard, of=rows)} of {rows}, ")
        try:
            return converse(interpreter, order, heard=hearing, timeout_s=asked.time_limit_s)
        except OutOfTime:
            raise
        except EnvironmentFault as fault:
            if not heard.timed:
                raise
            crashed = Talk(hearing)
            crashed.problem = ("crash", fault.message)
            return crashed


def _row(heard: Heard, *, of: int) -> int:
    """The row that is under way."""
    done = len({(call.case.shape, call.case.window) for call in heard.timed})
    return min(max(done, 1), of)


def _forecast(asked: BenchAsked, shapes: tuple[Shape, ...], *, revision: bool) -> str:
    calls = bench_calls(shapes)
    seconds = estimate_s(
        calls,
        fallbacks=2 if revision else 1,
        kernels=3 if revision else 2,
        repeat=asked.repeat,
        budget_s=CALL_BUDGET_S,
        device=asked.device,
    )
    on = "" if asked.device == "cpu" else " on an H200, longer on a smaller GPU"
    return f"{len(calls)} rows, about {seconds:.0f} s{on}; at most {asked.time_limit_s:g} s (--time-limit)"


def _show(asked: BenchAsked, heard: Heard, *, seed: int, ended_by: str | None) -> None:
    environment: KernelEnvironment | None = heard.environment
    if environment is None:
        say("nothing was measured")
        return
    gpu = gpu_of_device(environment.gpu) if environment.gpu is not None else None
    found = bench_document(heard, environment=environment, seed=seed, gpu=gpu, ended_by=ended_by)
    if asked.as_json:
        print(document_text(found.model_dump(mode="json", by_alias=True)))
    else:
        print(bench_text(found))
