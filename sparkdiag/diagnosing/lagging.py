"""Ranks that go in step: who waits on the device may wait for a peer that has not got there. Pure.

A rank's host waits for its device while the device waits, inside a collective's kernel, for a rank that has launched
nothing yet: no frame says so, only the rank that is elsewhere does
(https://github.com/marin-community/marin/issues/7344: the lagging rank was found against one that was not).
"""

from collections.abc import Sequence
from dataclasses import replace

from sparkdiag.diagnosing.process import Read
from sparkdiag.evidence.diagnosis import CANNOT_TELL

_IN_STEP = frozenset({"gpu-wait", "collective-wait", "collective-init"})


def with_laggards(reads: Sequence[Read]) -> list[Read]:
    """The reads, where a process that runs code of no engine, beside peers of its role that wait in step, counts as one
    of them (``forward``) and not as somebody else's."""
    return [_as_peer(read) if _lags(read, reads) else read for read in reads]


def _lags(read: Read, reads: Sequence[Read]) -> bool:
    return (
        read.match.kind == "not-an-engine"
        and read.match.function is not None
        and any(other.found.role == read.found.role and other.match.kind in _IN_STEP for other in reads)
    )


def _as_peer(read: Read) -> Read:
    match = read.match.model_copy(update={"kind": "forward"})
    found = read.found.model_copy(
        update={
            "kind": "forward",
            "function": match.function,
            "path": match.path,
            "line": match.line,
            "meaning": "In its program's own code, while peers wait in step for somebody.",
        }
    )
    return replace(read, match=match, found=found)


def waiting_for_peers(reads: Sequence[Read]) -> frozenset[int]:
    """Indices of those that wait on the device while a peer of the same role is at work elsewhere."""
    at_work = {
        read.found.role
        for read in reads
        if not read.waits and read.found.kind != "gpu-wait" and read.found.kind not in CANNOT_TELL
    }
    return frozenset(
        index for index, read in enumerate(reads) if read.found.kind == "gpu-wait" and read.found.role in at_work
    )
