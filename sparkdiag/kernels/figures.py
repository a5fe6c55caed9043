"""From times to the table of ``kernel bench``: medians, ratios, rates and the share of the roofline. Pure."""

from collections.abc import Mapping, Sequence
from statistics import median

from sparkdiag.evidence.kernel_runs import BenchFigure, BenchRow, KernelBench, KernelCase, KernelEnvironment, TimedCall
from sparkdiag.evidence.kernels import Gpu
from sparkdiag.kernels.grid import AUTHORS_RATIO, AUTHORS_ROW, HEAD_DIM, Shape, work_flop
from sparkdiag.kernels.heard import Heard
from sparkdiag.kernels.roofline import floor_ms
from sparkdiag.kernels.work import F32, FP8, Kernel


def bench_document(
    heard: Heard, *, environment: KernelEnvironment, seed: int, gpu: Gpu | None, ended_by: str | None
) -> KernelBench:
    """The rows that every kernel was tried on, and the last one as far as it came."""
    rows: dict[KernelCaseKey, dict[str, TimedCall]] = {}
    for call in heard.timed:
        rows.setdefault(_key(call.case), {})[call.subject] = call
    return KernelBench(
        schema=1,
        complete=ended_by is None,
        ended_by=ended_by,
        seed=seed,
        environment=environment,
        revision=heard.revision,
        subjects=heard.subjects,
        rows=tuple(bench_row(calls, gpu=gpu) for calls in rows.values()),
        roofline=_roofline_words(environment, gpu),
    )


KernelCaseKey = tuple[int, int, int, str]


def _key(case: KernelCase) -> KernelCaseKey:
    return (case.rows, case.keys, case.heads, case.window)


def _roofline_words(environment: KernelEnvironment, gpu: Gpu | None) -> str:
    if environment.device == "cpu":
        return "none: the CPU runs Triton's interpreter"
    return gpu.title if gpu is not None else f"none: sparkdiag knows no datasheet of {environment.gpu}"


def bench_row(calls: Mapping[str, TimedCall], *, gpu: Gpu | None) -> BenchRow:
    """One row; ``calls`` by subject, at least one."""
    case = next(iter(calls.values())).case
    figures = {subject: figure_of(call, gpu=gpu) for subject, call in calls.items()}
    shape = Shape(case.rows, case.keys, case.heads)
    return BenchRow(
        case=case,
        figures=figures,
        ratio=_ratio(figures, "sparkdiag_fallback", "sparkdiag_triton"),
        revision_ratio=_ratio(figures, "revision_fallback", "revision_triton"),
        author_ratio=AUTHORS_RATIO if shape == AUTHORS_ROW and case.window == "full" else None,
    )


def _ratio(figures: Mapping[str, BenchFigure], slow: str, fast: str) -> float | None:
    one, other = figures.get(slow), figures.get(fast)
    if one is None or other is None or one.median_ms is None or not other.median_ms:
        return None
    return one.median_ms / other.median_ms


def figure_of(call: TimedCall, *, gpu: Gpu | None) -> BenchFigure:
    """Rates of one kernel on one row."""
    if not call.times_ms or min(call.times_ms) <= 0:
        return BenchFigure(skipped=call.skipped or "no time was taken")
    middle = median(call.times_ms)
    shape = Shape(call.case.rows, call.case.keys, call.case.heads)
    useful = None if call.useful is None else work_flop(shape, pairs=call.useful)
    share = None
    if gpu is not None and useful is not None:
        share = least_ms(shape, useful_flop=useful, gpu=gpu, fallback=call.subject.endswith("fallback")) / middle
    return BenchFigure(
        median_ms=middle,
        repeats=len(call.times_ms),
        spread=(max(call.times_ms) - min(call.times_ms)) / middle,
        tflop_s=work_flop(shape) / middle / 1e9,
        useful_tflop_s=None if useful is None else useful / middle / 1e9,
        roofline_share=share,
    )


def least_ms(shape: Shape, *, useful_flop: float, gpu: Gpu, fallback: bool) -> float:
    """The least time of the useful work: its products at the peak of float32 (the fallback) or of the FP8 tensor cores
    (every other kernel, whatever it uses: that is how far it could go), or its bytes through the memory.

    Bytes: the inputs once, the logits written once, in the windows and outside.
    """
    rows, keys, heads = shape.rows, shape.keys, shape.heads
    read = (rows * heads + keys) * HEAD_DIM * FP8 + keys * F32 + rows * heads * F32
    kernel = Kernel("bench", 1, read, rows * keys * F32, int(useful_flop))
    return floor_ms(kernel, gpu, units="fp32" if fallback else "fp8", cached=False)


def most_subjects(rows: Sequence[BenchRow]) -> tuple[str, ...]:
    """Every kernel that has a figure or a reason somewhere, in order."""
    return tuple(dict.fromkeys(subject for row in rows for subject in row.figures))
