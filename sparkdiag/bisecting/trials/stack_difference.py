"""Where the workers' time goes with what is looked for and without it. Pure, but for reading the two run folders."""

from collections.abc import Sequence
from pathlib import Path

from sparkdiag.errors import RunFolderError
from sparkdiag.evidence.bisection import StackShare
from sparkdiag.evidence.stacks import StackSample
from sparkdiag.judging.shares import most_different, worker_samples
from sparkdiag.recording.read import read_run


def difference(with_it: Sequence[StackSample], without: Sequence[StackSample]) -> tuple[StackShare, ...]:
    """The functions whose share differs most; none where either side has no sample."""
    return tuple(
        StackShare(function=name, share_with=one, share_without=other)
        for name, one, other in most_different(with_it, without)
    )


def stack_difference(with_it: Path, without: Path) -> tuple[StackShare, ...]:
    """Between the runs in two folders, from the prompt's sending to the first token; none where one cannot be read."""
    try:
        stored = read_run(with_it), read_run(without)
    except RunFolderError:
        return ()
    return difference(worker_samples(stored[0].observation), worker_samples(stored[1].observation))
