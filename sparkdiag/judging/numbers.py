"""Guards for numbers that came out of another process: the judge is total, whatever was recorded."""

import math

from sparkdiag.evidence.stacks import LocalValue

_LIMIT = 1e12


def finite(value: float | None) -> float | None:
    """``value`` as a float that arithmetic cannot overflow with; None for NaN, infinities and absurd sizes."""
    if value is None:
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) and abs(number) < _LIMIT else None


def count(value: LocalValue) -> int | None:
    """A local as a non-negative size or index; booleans, text and absurd numbers are none."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value < _LIMIT else None
