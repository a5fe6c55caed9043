"""Numbers of ``kernel plan`` for people: short, and never more sure than they are. Pure."""

from sparkdiag.kernels.roofline import rounded_down

_DIGITS = 2
"""Of a least time: the peaks are known to two or three."""
_SECONDS_FROM_MS = 1_000_000
"""A table with a longer time is in seconds."""
_BINARY = ("B", "KiB", "MiB", "GiB", "TiB")
_DECIMAL = ("", "k", "M", "G", "T", "P", "E", "Z")


def least_time(number: float) -> str:
    """Rounded down to two digits, as a floor must be: ``0.48``, ``3.3``, ``290``, ``92,000``."""
    if number < 0.01:
        return "<0.01" if number > 0 else "0"
    return f"{rounded_down(number, digits=_DIGITS):,.15g}"


def time_unit(longest_ms: float) -> tuple[str, float]:
    """The unit of a table with such a longest time, and how many milliseconds it has."""
    return ("s", 1000.0) if longest_ms >= _SECONDS_FROM_MS else ("ms", 1.0)


def decimal_size(number: int, unit: str) -> str:
    """Three digits and an SI prefix: ``15.1 TFLOP``, ``1.91 TB``."""
    value = float(number)
    for prefix in _DECIMAL[:-1]:
        if float(f"{value:.3g}") < 1000:
            return f"{value:.3g} {prefix}{unit}"
        value /= 1000
    return f"{value:.3g} {_DECIMAL[-1]}{unit}"


def binary_size(number: int) -> str:
    """``64 MiB``, ``1 KiB``, ``1.5 MiB``."""
    value = float(number)
    for unit in _BINARY[:-1]:
        if value < 1024:
            return f"{value:.4g} {unit}"
        value /= 1024
    return f"{value:,.4g} {_BINARY[-1]}"
