"""All looks together: what is wrong, with whom, how sure, and what to measure next. Pure."""

from collections.abc import Sequence

from sparkdiag.evidence.diagnosis import Diagnosis
from sparkdiag.evidence.dump import Pasted, ProcessDump


def diagnose(looks: Sequence[ProcessDump]) -> Diagnosis:
    """The diagnosis over looks at one server: one or several processes, once or over time, in the order taken."""
    raise NotImplementedError


def diagnose_pasted(texts: Sequence[Pasted]) -> Diagnosis:
    """The same for texts that were read; a refused one is said."""
    raise NotImplementedError


def compare(good: Sequence[Pasted], bad: Sequence[Pasted]) -> Diagnosis:
    """The diagnosis of ``bad`` with what differs from ``good``."""
    raise NotImplementedError
