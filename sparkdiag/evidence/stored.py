"""A run as its folder tells it afterwards, ready to be judged again or reported."""

from sparkdiag.evidence.agreement import RouteAgreement
from sparkdiag.evidence.base import Value
from sparkdiag.evidence.ledger import LedgerSummary
from sparkdiag.evidence.observation import Observation
from sparkdiag.evidence.run import RunRecord
from sparkdiag.evidence.timeline import NoteEvent, PhaseEvent


class StoredRun(Value):
    """``record`` and everything the judge may look at, up to the moment the verdict was reached.

    Built by ``sparkdiag.recording.read.read_run``, or from a run that is still in memory.
    """

    run_dir: str
    record: RunRecord
    observation: Observation
    phases: tuple[PhaseEvent, ...] = ()
    notes: tuple[NoteEvent, ...] = ()
    held: bool | None = None
    """Whether a process still writes the run, for a record that says so; None where that was not or cannot be told."""
    agreement: RouteAgreement | None = None
    """What the source said beside what was seen (``judging.agreement``); None where no route was asked for."""
    ledger: LedgerSummary | None = None
    """What the probe's dispatch ledger comes to (``judging.ledger``); None where none was to be had."""
    problems: tuple[str, ...] = ()
    """What could not be read, or could not be written at the time; one line each."""
