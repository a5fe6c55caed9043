"""From times to figures: rates by arithmetic, and a whole bench of an H200 as it was recorded."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.evidence.kernel_runs import KernelBench, KernelCase, TimedCall
from sparkdiag.kernels.figures import bench_row, figure_of
from sparkdiag.kernels.gpus import gpu_of_device
from sparkdiag.kernels.grid import BENCH_SHAPES
from sparkdiag.reporting.kernel_bench import bench_text

RECORDED = Path(__file__).resolve().parents[2] / "recordings" / "h200-kernels" / "bench.json"
H200 = gpu_of_device("NVIDIA H200")
AUTHORS = KernelCase(rows=1024, keys=131_072, heads=64, window="full")


@pytest.fixture(scope="module")
def recorded() -> KernelBench:
    return KernelBench.model_validate_json(RECORDED.read_text(encoding="utf-8"))


def timed(
    *times_ms: float, subject: str = "sparkdiag_triton", case: KernelCase = AUTHORS, share: float = 1
) -> TimedCall:
    return TimedCall(subject=subject, case=case, useful=int(case.rows * case.keys * share), times_ms=times_ms)


def test_a_rate_is_the_work_by_the_median() -> None:
    figure = figure_of(timed(3.0, 2.0, 4.0), gpu=H200)
    work = 2 * 1024 * 131_072 * 64 * 128
    assert (figure.median_ms, figure.repeats) == (3.0, 3)
    assert figure.tflop_s == figure.useful_tflop_s == pytest.approx(work / 3e-3 / 1e12)
    assert figure.spread == pytest.approx(2 / 3)


@given(st.floats(0.01, 1e4), st.floats(0.05, 1))
def test_what_lies_outside_the_windows_is_no_useful_work(median_ms: float, share: float) -> None:
    figure = figure_of(timed(median_ms, share=share), gpu=H200)
    assert figure.tflop_s is not None and figure.useful_tflop_s is not None
    assert figure.useful_tflop_s == pytest.approx(figure.tflop_s * share, rel=1e-6)


def test_no_time_is_no_figure_and_no_ratio() -> None:
    assert (
        figure_of(TimedCall(subject="one", case=AUTHORS, skipped="out of memory"), gpu=H200).skipped == "out of memory"
    )
    row = bench_row({"sparkdiag_fallback": timed(9.0), "sparkdiag_triton": timed()}, gpu=None)
    assert (row.ratio, row.author_ratio) == (None, 28.0)


def test_the_author_s_ratio_stands_beside_his_shape_alone() -> None:
    calls = {"sparkdiag_fallback": timed(9.0), "sparkdiag_triton": timed(3.0)}
    assert bench_row(calls, gpu=H200).ratio == 3.0
    half = AUTHORS.model_copy(update={"window": "half"})
    assert bench_row({"sparkdiag_triton": timed(3.0, case=half)}, gpu=H200).author_ratio is None


def test_the_recorded_bench_meets_the_goals_and_no_kernel_beats_the_roofline(recorded: KernelBench) -> None:
    """At the author's row at least 3 times the fork's kernel, 6 times where half is masked, within 2 of DeepGEMM."""
    rows = {(row.case.rows, row.case.keys, row.case.window): row.figures for row in recorded.rows}
    assert len(rows) == 2 * len(BENCH_SHAPES)
    for window, times in (("full", 3), ("half", 6)):
        ms = {key: figure.median_ms or 0.0 for key, figure in rows[1024, 131_072, window].items()}
        assert ms["revision_triton"] > times * ms["sparkdiag_triton"]
        assert ms["sparkdiag_triton"] < 2 * ms["deepgemm"]
    shares = [one.roofline_share for figures in rows.values() for one in figures.values() if one.roofline_share]
    assert len(shares) == 5 * len(rows) and max(shares) < 1


def test_the_recorded_bench_as_a_table(recorded: KernelBench) -> None:
    text = bench_text(recorded)
    assert "author, GB10: 28 x" in text and "b12eeaa2ba" in text and "DeepGEMM" in text
    assert sum("1024 x 131072 x 64" in line for line in text.splitlines()) == 2
    lost = recorded.model_copy(update={"complete": False, "ended_by": "the device failed"})
    assert bench_text(lost).endswith("incomplete: the device failed")
