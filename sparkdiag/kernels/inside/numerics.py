"""Holds one kernel's logits against the float64 reference: the mask, the numbers, and where it is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from sparkdiag.kernels.inside.inputs import Inputs
from sparkdiag.kernels.inside.reference import Reference

ZERO = 1e-12
"""A row whose scale is below this has no positive score at all: its logits are zero, and any other is wrong."""


@dataclass(frozen=True)
class Judgement:
    """What came of one call."""

    problems: tuple[str, ...]
    difference: float | None
    """Largest ``|got - reference| / row scale`` inside the windows; None where nothing finite could be compared."""
    worst: tuple[int, int] | None
    """Row and key of it."""
    unknown: Any = None
    """bool [M, N]: elements that are NaN and must not be; None where there is none."""


def judge(got: Any, *, reference: Reference, inputs: Inputs, clean: bool, tolerance: float) -> Judgement:
    """``clean``: everything outside the windows must be ``-inf``; else what stands there means nothing.

    NaN never passes, nor does an infinity inside a window.
    """
    shape = tuple(reference.logits.shape)
    if not isinstance(got, torch.Tensor):
        return Judgement((f"it returned {type(got).__name__}, no tensor",), None, None)
    if tuple(got.shape) != shape:
        return Judgement((f"its shape is {list(got.shape)}, not {list(shape)}",), None, None)
    if got.dtype != torch.float32:
        return Judgement((f"its type is {str(got.dtype).removeprefix('torch.')}, not float32",), None, None)
    inside = reference.inside
    nan = got.isnan()
    problems = []
    if clean:
        problems += _tell("outside the window is not -inf", (got != float("-inf")) & ~inside, got, inputs)
    problems += _tell("inside the window is NaN", nan & inside, got, inputs)
    problems += _tell("inside the window is -inf", (got == float("-inf")) & inside, got, inputs)
    problems += _tell("inside the window is +inf", (got == float("inf")) & inside, got, inputs)
    difference, worst = _difference(got, reference)
    if difference is not None and not difference <= tolerance:
        row, key = worst or (0, 0)
        problems.append(
            f"max relative difference {difference:.1e} is beyond {tolerance:.0e} (row {row}, key {key}: "
            f"{float(got[row, key]):.6g} instead of {float(reference.logits[row, key]):.6g})"
        )
    unknown = nan if clean else nan & inside
    return Judgement(tuple(problems), difference, worst, unknown if bool(unknown.any()) else None)


def _difference(got: Any, reference: Reference) -> tuple[float | None, tuple[int, int] | None]:
    compared = reference.inside & got.isfinite()
    if not bool(compared.any()):
        return None, None
    off = (got.to(torch.float64) - reference.logits).abs()
    relative = off / reference.row_scale.clamp_min(ZERO)[:, None]
    relative.masked_fill_(~compared, 0.0)
    place = int(relative.argmax())
    row, key = divmod(place, int(got.shape[1]))
    return float(relative[row, key]), (row, key)


def pair_difference(one: Any, other: Any, *, reference: Reference) -> float | None:
    """The largest difference of two kernels' logits inside the windows, by the same scale; None where either has
    something there that is not finite."""
    if not (_comparable(one, reference) and _comparable(other, reference)):
        return None
    off = (one.to(torch.float64) - other.to(torch.float64)).abs() / reference.row_scale.clamp_min(ZERO)[:, None]
    return float(off.masked_fill_(~reference.inside, 0.0).amax())


def _comparable(got: Any, reference: Reference) -> bool:
    if not isinstance(got, torch.Tensor) or got.shape != reference.logits.shape:
        return False
    return bool((got.isfinite() | ~reference.inside).all())


def _tell(what: str, wrong: Any, got: Any, inputs: Inputs) -> list[str]:
    """One line: how many, the first of them, and a pattern where all of them follow one."""
    count = int(wrong.sum())
    if not count:
        return []
    row, key = divmod(int(wrong.flatten().to(torch.uint8).argmax()), int(wrong.shape[1]))
    start, end = int(inputs.starts[row]), int(inputs.ends[row])
    value = float(got[row, key])
    line = f"{count:,} element(s): {what}, first at row {row}, key {key} ({value:.6g}, window [{start}, {end}))"
    for offset, side, words in (
        (0, "ends", "each is the key at ke: the window ends one late"),
        (-1, "ends", "each is the last key of its window: it ends one early"),
        (0, "starts", "each is the first key of its window: it starts one late"),
        (-1, "starts", "each is the key before ks: the window starts one early"),
    ):
        if _all_at(wrong, getattr(inputs, side).long() + offset):
            return [f"{line}; {words}"]
    return [line]


def _all_at(wrong: Any, places: Any) -> bool:
    rows, keys = wrong.nonzero(as_tuple=True)
    return len(rows) > 1 and bool((places[rows] == keys).all())
