"""What moved between several looks at one process: leaf, line, calls, loop variables. Pure."""

from collections.abc import Sequence

from sparkdiag.evidence.diagnosis import LoopFinding, Movement
from sparkdiag.evidence.dump import ProcessDump


def movement_of(looks: Sequence[ProcessDump]) -> Movement | None:
    """What changed over ``looks`` at one process, in order; None for fewer than two."""
    raise NotImplementedError


def loops_in(looks: Sequence[ProcessDump]) -> tuple[LoopFinding, ...]:
    """Integer locals that advance monotonically within one call, found without a scenario naming them."""
    raise NotImplementedError
