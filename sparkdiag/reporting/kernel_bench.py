"""``kernel bench`` as a table for the terminal. Pure."""

from collections.abc import Mapping, Sequence

from sparkdiag.evidence.kernel_runs import BenchFigure, BenchRow, KernelBench
from sparkdiag.kernels.figures import most_subjects
from sparkdiag.reporting.kernel_check import revision_lines, where_words

_GAP = "  "
_NO_FIGURE = "-"


def bench_text(found: KernelBench) -> str:
    """The table, its legend, and what is missing."""
    lines = [where_words(found.environment), *(revision_lines(found.revision) if found.revision else [])]
    if found.environment.device == "cpu":
        lines.append("on the CPU by the wall clock: Triton's interpreter has no speed that means anything for a GPU")
    if found.rows:
        lines += ["", *_table(found), "", *_legend(found)]
    lines += _reasons(found)
    if not found.complete:
        lines.append(f"incomplete: {found.ended_by}")
    return "\n".join(lines)


def _table(found: KernelBench) -> list[str]:
    subjects = most_subjects(found.rows)
    several = any(row.revision_ratio is not None for row in found.rows)
    head = ["M x N x H", "window", *(found.subjects.get(one, one) for one in subjects), "faster"]
    head += ["revision's"] if several else []
    rows = [head]
    for row in found.rows:
        cells = [row.case.shape, row.case.window, *(_time(row.figures.get(one)) for one in subjects), _times(row.ratio)]
        rows.append([*cells, _times(row.revision_ratio)] if several else cells)
        rate = ["", "", *(_rates(row.figures.get(one)) for one in subjects), _author(row)]
        rows.append([*rate, ""] if several else rate)
    return _aligned(rows)


def _time(figure: BenchFigure | None) -> str:
    if figure is None or figure.median_ms is None:
        return _NO_FIGURE
    ms = figure.median_ms
    return f"{ms:,.0f} ms" if ms >= 1000 else f"{ms:.3g} ms" if ms < 100 else f"{ms:.1f} ms"


def _rates(figure: BenchFigure | None) -> str:
    if figure is None or figure.tflop_s is None:
        return ""
    useful = _rate(figure.useful_tflop_s) if figure.useful_tflop_s is not None else "?"
    share = f" {figure.roofline_share:.0%}" if figure.roofline_share is not None else ""
    return f"{_rate(figure.tflop_s)}/{useful}{share}"


def _rate(tflop_s: float) -> str:
    return f"{tflop_s:,.0f}" if tflop_s >= 100 else f"{tflop_s:.3g}"


def _times(ratio: float | None) -> str:
    return _NO_FIGURE if ratio is None else f"{ratio:.1f} x"


def _author(row: BenchRow) -> str:
    return f"author, GB10: {row.author_ratio:g} x" if row.author_ratio is not None else ""


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        _GAP.join(
            cell.ljust(width) if column < 2 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _legend(found: KernelBench) -> list[str]:
    lines = [
        "Medians; below each TFLOP/s of the whole product (2·M·N·H·D) / of the pairs inside the windows"
        + (", share of the roofline." if not found.roofline.startswith("none") else "."),
        "half: the second half of every row lies outside its window. faster: sparkdiag fallback to sparkdiag Triton.",
    ]
    if found.roofline.startswith("none"):
        return [*lines, f"Share of the roofline: {found.roofline}."]
    return [
        *lines,
        f"Roofline: {found.roofline}, datasheet; useful work at the peak of FP8 tensor cores (fallbacks: of float32), "
        "or the bytes at the memory's.",
    ]


def _reasons(found: KernelBench) -> list[str]:
    told: dict[str, list[str]] = {}
    for row in found.rows:
        for subject, figure in row.figures.items():
            if figure.skipped is not None:
                name = found.subjects.get(subject, subject)
                told.setdefault(f"{name}: {figure.skipped}", []).append(f"[{row.case.shape}] {row.case.window}")
    return [f"no figure for {reason} ({', '.join(places)})" for reason, places in told.items()]


def names_of(subjects: Mapping[str, str]) -> str:
    """For the line before the bench."""
    return ", ".join(subjects.values())
