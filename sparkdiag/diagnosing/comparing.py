"""What differs between looks at a good server and at a bad one. Pure."""

from collections.abc import Sequence

from sparkdiag.evidence.diagnosis import Difference
from sparkdiag.evidence.dump import ProcessDump


def differences(good: Sequence[ProcessDump], bad: Sequence[ProcessDump]) -> tuple[Difference, ...]:
    """The most telling first, bounded in number."""
    raise NotImplementedError
