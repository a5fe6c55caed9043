"""How a benchmark's result looks: for people, and as one JSON document. Pure."""

import json
from collections.abc import Sequence
from statistics import median

from benchmarks.machine import Load
from benchmarks.paired import CONFIDENCE, FEWEST_PAIRS, Comparison, at_quantile
from sparkdiag.evidence.base import SCHEMA, Value

_SCALES = {"s": (1.0, "s"), "ms": (1000.0, "ms"), "trials": (1.0, "trials"), "MB": (1e-6, "MB")}


class Result(Value):
    """What one benchmark found out."""

    name: str
    question: str
    load: Load
    load_after: Load | None = None
    settings: dict[str, str | int | float] = {}
    comparisons: tuple[Comparison, ...] = ()
    notes: tuple[str, ...] = ()


def as_text(result: Result) -> str:
    """A few lines a comparison."""
    settings = ", ".join(f"{name} {value}" for name, value in result.settings.items())
    lines = [f"{result.name}: {result.question}", f"machine before: {result.load.line}"]
    if result.load_after is not None:
        lines.append(f"machine after:  {result.load_after.line}")
    if settings:
        lines.append(f"settings: {settings}")
    for comparison in result.comparisons:
        lines += ["", *_comparison_lines(comparison)]
    return "\n".join([*lines, *(["", *result.notes] if result.notes else [])])


def as_json(result: Result) -> str:
    """All figures, pair by pair, and the same medians as in the text; times in seconds."""
    document = {"schema": SCHEMA, **result.model_dump(mode="json")}
    for entry, comparison in zip(document["comparisons"], result.comparisons, strict=True):
        references, measured = _sides(comparison)
        entry["medians_s" if comparison.unit in ("s", "ms") else "medians"] = {
            "measured": median(measured),
            "reference": median(references),
        }
    return json.dumps(document, indent=2)


def _sides(comparison: Comparison) -> tuple[Sequence[float], Sequence[float]]:
    references, measured = zip(*comparison.pairs, strict=True)
    return references, measured


def _comparison_lines(comparison: Comparison) -> list[str]:
    references, measured = _sides(comparison)
    width = max(len(comparison.measured), len(comparison.reference), len("ratio"))
    sides = ((comparison.reference, references), (comparison.measured, measured))
    lines = [f"  {name:<{width}}  {_figures(figures, unit=comparison.unit)}" for name, figures in sides]
    lines.append(f"  {'ratio':<{width}}  {_ratio(comparison)}")
    if comparison.goal is not None:
        lines.append(f"  {'goal':<{width}}  {comparison.goal:g} or less: {_answer(comparison)}")
    return [*lines, f"  {comparison.note}"] if comparison.note else lines


def _figures(figures: Sequence[float], *, unit: str) -> str:
    scale, name = _SCALES[unit]
    middle, p95, least, most = (
        scale * figure for figure in (median(figures), at_quantile(figures, 0.95), min(figures), max(figures))
    )
    return f"median {middle:.4g} {name}, 95th percentile {p95:.4g}, {least:.4g} to {most:.4g}, {len(figures)} times"


def _ratio(comparison: Comparison) -> str:
    found = comparison.interval
    sure = f"{CONFIDENCE:.0%} interval {found.low:.4g} to {found.high:.4g}" if found else f"no interval: {_too_few()}"
    return f"{comparison.ratio:.4g} ({sure})"


def _too_few() -> str:
    return f"fewer than {FEWEST_PAIRS} pairs"


def _answer(comparison: Comparison) -> str:
    if comparison.answer != "not resolved" or comparison.goal is None:
        return comparison.answer
    if comparison.interval is None:
        return f"not resolved ({_too_few()})"
    half = (comparison.interval.high - comparison.interval.low) / 2
    return f"not resolved (noise of +-{half:.1%} reaches over it: more pairs, or a quieter machine)"
