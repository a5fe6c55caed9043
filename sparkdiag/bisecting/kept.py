"""A bisection as its folder keeps it."""

from pathlib import Path

from sparkdiag.bisecting.document import document_of
from sparkdiag.bisecting.journal import read_journal
from sparkdiag.bisecting.question import resume_request
from sparkdiag.bisecting.state import fold
from sparkdiag.errors import RunFolderError
from sparkdiag.evidence.bisection import Bisection
from sparkdiag.recording.bisection import BisectionFolder
from sparkdiag.recording.listed_bisection import read_bisection


def kept_bisection(path: Path) -> Bisection:
    """Its document, or where that is lost what its journal amounts to, which lacks the diff and the stacks.

    Raises ``RunFolderError`` where there is neither, ``UsageError`` where the journal cannot be read.
    """
    folder = BisectionFolder.open(path)
    try:
        return read_bisection(path)
    except RunFolderError as lost:
        request = resume_request(folder)
        found = document_of(request, fold(request, read_journal(folder.journal)))
        return found.model_copy(update={"notes": (*found.notes, f"rebuilt from the journal: {lost.message}")})
