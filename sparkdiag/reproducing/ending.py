"""A run that has ended: what its folder tells, and where the disk refused something, what is still in memory."""

from pathlib import Path

from sparkdiag.errors import RunFolderError
from sparkdiag.evidence.observation import Observation
from sparkdiag.evidence.run import RunRecord
from sparkdiag.evidence.stored import StoredRun
from sparkdiag.judging.agreement import agreement_of
from sparkdiag.judging.ledger import ledger_of
from sparkdiag.recording.folder import RECORD, RunFolder
from sparkdiag.recording.identities import identities_here
from sparkdiag.recording.read import read_run
from sparkdiag.reporting.markdown import REPORT, render_markdown
from sparkdiag.reporting.public import public


def stored_run(folder: RunFolder, record: RunRecord) -> StoredRun:
    """The run as ``report`` will find it; with the verdict that was reached also where that could not be written."""
    return compared(_stored_run(folder, record))


def compared(stored: StoredRun) -> StoredRun:
    """With what its source says beside what its stacks show, and what its ledger comes to beside both."""
    routed = stored.model_copy(update={"agreement": agreement_of(stored)})
    return routed.model_copy(update={"ledger": ledger_of(routed)})


def _stored_run(folder: RunFolder, record: RunRecord) -> StoredRun:
    lost = tuple(f"not written: {problem}" for problem in folder.problems)
    try:
        stored = read_run(folder.path)
    except RunFolderError as error:  # somebody has removed it
        stored = StoredRun(
            run_dir=str(folder.path),
            record=record,
            observation=Observation(now_s=record.timings_s.total_s or 0),
            problems=(error.message,),
        )
    if not lost:
        return stored
    read = tuple(problem for problem in stored.problems if not problem.startswith(RECORD))
    return stored.model_copy(update={"record": record, "problems": (*lost, *read)})


def keep_report(folder: RunFolder, stored: StoredRun) -> tuple[Path | None, tuple[str, ...]]:
    """Write ``report.md``, fit to be posted: its path, None where it could not be; and all that was not written."""
    shown, _ = public(stored, identities=identities_here())
    path = folder.write_report(REPORT, render_markdown(compared(shown)))
    return (path if path.is_file() else None), folder.problems
