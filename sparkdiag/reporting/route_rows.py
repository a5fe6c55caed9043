"""Lines of a tree in columns: what stands there, its value, and why. Pure; texts are harmless already."""

import textwrap
from collections.abc import Sequence

from sparkdiag.evidence.base import Value

_VALUE = 10
"""Columns of a value and the blanks after it: ``if False``."""
_LEAST_REASON = 20
_MOST_REASON_LINES = 2
"""A longer reason stands below its guard, where it has more room."""
_WIDEST_LEFT = 72
"""Where no terminal limits it, a longer line pushes its own value aside and nobody else's."""
_LEAST_COLUMNS = 50


class Row(Value):
    """One line of the tree."""

    indent: int
    label: str
    """Where it stands: ``deep_gemm.py:452``, ``-> :576``."""
    source: str
    value: str = ""
    because: str = ""
    note: str = ""
    """In place of a value and its reason: what becomes of it."""

    @property
    def left(self) -> str:
        return f"{' ' * self.indent}{self.label}  {self.source}"


def laid_out(rows: Sequence[Row], *, columns: int | None) -> list[str]:
    """The rows with their values below each other; broken to ``columns`` where they are given."""
    width = max(columns, _LEAST_COLUMNS) if columns is not None else None
    cap = width - _VALUE - _LEAST_REASON if width is not None else _WIDEST_LEFT
    widths = [len(row.left) + 2 for row in rows if row.value]
    at = min(max(widths, default=0), cap)
    return [line for row in rows for line in (_guard(row, at, width) if row.value else _call(row, at, width))]


def _guard(row: Row, at: int, width: int | None) -> list[str]:
    right = f"{row.value:<{_VALUE}}{row.because}".rstrip()
    if width is None:
        return [f"{row.left:<{at}}{right}" if len(row.left) + 2 <= at else f"{row.left}  {right}"]
    told = wrapped(right, width=width - at, hanging=_VALUE)
    if len(told) > _MOST_REASON_LINES:
        begin = _beginning(row, width)
        reason = [" " * begin + line for line in wrapped(row.because, width=width - begin, hanging=0)]
        return [*_guard(row.model_copy(update={"because": ""}), at, width), *reason]
    if len(row.left) + 2 <= at:
        return [f"{row.left:<{at}}{told[0]}", *(" " * at + line for line in told[1:])]
    return [*_left(row, width), *(" " * at + line for line in told)]


def _call(row: Row, at: int, width: int | None) -> list[str]:
    if not row.note:
        return _left(row, width)
    if width is None:
        return [f"{row.left:<{max(at - 2, 0)}}  {row.note}"]
    begin = min(at, width - len(row.note))
    if len(row.left) + 2 <= begin:
        return [f"{row.left:<{begin}}{row.note}"]
    begin = max(begin, 0)
    return [*_left(row, width), *(" " * begin + line for line in wrapped(row.note, width=width - begin, hanging=0))]


def _left(row: Row, width: int | None) -> list[str]:
    """Broken under its own beginning, and not beyond the middle of the page."""
    if width is None:
        return [row.left]
    return wrapped(row.left, width=width, hanging=_beginning(row, width))


def _beginning(row: Row, width: int) -> int:
    """Where a row's source begins."""
    return min(row.indent + len(row.label) + 2, width // 2)


def wrapped(text: str, *, width: int, hanging: int) -> list[str]:
    """At least one line; words that are longer than a line are broken."""
    indent = " " * min(hanging, max(width - 8, 0))
    return textwrap.wrap(text, max(width, 8), subsequent_indent=indent, break_on_hyphens=False) or [""]
