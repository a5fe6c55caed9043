"""A bisection as its folder keeps it."""

from pathlib import Path

from sparkdiag.bisecting.answer.document import document_of
from sparkdiag.bisecting.question.begun import resume_request
from sparkdiag.bisecting.question.journal import read_journal
from sparkdiag.bisecting.steps.state import fold
from sparkdiag.errors import RunFolderError
from sparkdiag.evidence.bisection import Bisection
from sparkdiag.recording.bisection import BisectionFolder
from sparkdiag.recording.listed_bisection import read_bisection


def kept_bisection(path: Path) -> Bisection:
    """Its document, else what its journal amounts to.

    Raises ``RunFolderError`` where there is neither, ``UsageError`` where the journal cannot be read.
    """
    try:
        return read_bisection(path)
    except RunFolderError as lost:
        return rebuilt_bisection(path, lost=lost.message)


def rebuilt_bisection(path: Path, *, lost: str) -> Bisection:
    """What the journal amounts to: all but the diff and the stacks. ``lost``: why its document is not taken."""
    folder = BisectionFolder.open(path)
    request = resume_request(folder)
    found = document_of(request, fold(request, read_journal(folder.journal)))
    return found.model_copy(update={"notes": (*found.notes, f"rebuilt from the journal: {lost}")})
