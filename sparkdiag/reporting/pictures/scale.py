"""Axes: from a value to a place, and which values are worth a mark. Pure."""

import math
from dataclasses import dataclass

_STEPS = (1.0, 2.0, 5.0, 10.0)
_TIME_STEPS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400)


@dataclass(frozen=True, slots=True)
class Scale:
    """Values between ``low`` and ``high`` onto pixels between ``start`` and ``stop``."""

    low: float
    high: float
    start: float
    stop: float

    def at(self, value: float) -> float:
        """Where ``value`` is drawn; what lies outside is drawn at the edge."""
        if not self.high > self.low:
            return self.start
        part = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return self.start + part * (self.stop - self.start)


def ticks(high: float, *, about: int) -> tuple[float, ...]:
    """Round values from 0 to ``high``, about so many; always 0."""
    if not high > 0 or not math.isfinite(high):
        return (0.0,)
    raw = high / max(1, about)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(step * power for step in _STEPS if step * power >= raw * 0.999)
    return tuple(step * n for n in range(int(high / step + 1e-9) + 1))


def time_ticks(low_s: float, high_s: float, *, about: int) -> tuple[float, ...]:
    """Whole seconds, minutes or hours between the two, about so many, 0 among them where it lies there."""
    span_s = high_s - low_s
    if not span_s > 0 or not math.isfinite(span_s):
        return (low_s,)
    raw = span_s / max(1, about)
    if raw < 1:
        step: float = next(step / 10 for step in (1, 2, 5, 10) if step / 10 >= raw * 0.999 or step == 10)
    else:
        days = _TIME_STEPS_S[-1]
        step = next((step for step in _TIME_STEPS_S if step >= raw * 0.999), days * math.ceil(raw / days))
    first = math.ceil(low_s / step - 1e-9)
    last = math.floor(high_s / step + 1e-9)
    return tuple(n * step for n in range(first, last + 1))


def time_label(seconds: float, *, step_s: float) -> str:
    """``-2 s``, ``0.5 s``, ``90 s``, ``12 min``, ``3.5 h``: the unit fits the distance between two marks."""
    if step_s >= 1800:
        return f"{seconds / 3600:g} h"
    if step_s >= 60:
        return f"{seconds / 60:g} min"
    return f"{round(seconds, 1):g} s"


def amount(value: float) -> str:
    """``250``, ``12k``, ``1.5M``: short enough for an axis."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / (1e3 if unit == 'k' else size):g}{unit}"
    return f"{value:g}"
