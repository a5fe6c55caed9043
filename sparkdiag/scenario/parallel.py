"""Decode context parallelism reuses the tensor parallel ranks, so its size must divide theirs. Pure.

vLLM says so only after the model is loaded, which takes minutes: it is checked here, before anything starts.
"""

from typing import NamedTuple

MAX_RANKS = 1024
"""More ranks than any machine has; a larger number is a slip of the keyboard."""


class Misfit(NamedTuple):
    """A DCP size that does not divide the TP size, and what would fit."""

    larger_tp: int
    """The next TP size that this DCP size divides."""
    smaller_dcp: int
    """The largest DCP size below it that divides this TP size."""


def misfit(*, tp: int, dcp: int) -> Misfit | None:
    """What is wrong with the sizes; None where they fit, or where one is out of range (said elsewhere)."""
    if not (1 <= tp <= MAX_RANKS and 1 <= dcp <= MAX_RANKS) or tp % dcp == 0:
        return None
    smaller = max(size for size in range(1, tp + 1) if tp % size == 0 and size <= dcp)
    return Misfit(larger_tp=-(-tp // dcp) * dcp, smaller_dcp=smaller)
