"""The signatures of ``signatures.toml``: what a stack with certain functions in certain places means."""

from sparkdiag.evidence.base import Value
from sparkdiag.evidence.diagnosis import DiagnosisKind
from sparkdiag.evidence.dump import ProcessDump


class Match(Value):
    """What one look at one process is found to be, before time and peers are asked."""

    kind: DiagnosisKind
    function: str | None = None
    path: str | None = None
    line: int | None = None
    thread: str | None = None
    signature: str | None = None
    """Id of the signature; None for ``forward``, ``helper-threads-only``, ... which need none."""
    meaning: str = ""
    next_step: str = ""
    reference: str | None = None
    healthy: bool | None = None
    """What this state means by itself; None: seen in healthy and in stalled servers."""
    waits: bool = False
    """For somebody else: another process, a peer, a client."""
    because: str = ""
    """What in the stack decided it: ``all_gather in torch/distributed below execute_model``."""
    others: tuple[str, ...] = ()
    """What else in the process speaks of something else: reasons against."""


def match_look(look: ProcessDump) -> Match:
    """What this one look shows. Never raises."""
    raise NotImplementedError
