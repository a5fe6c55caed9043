"""Where the workers' time goes with what is looked for and without it. Pure, but for reading the two run folders."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from sparkdiag.bisecting.trials.result import worker_samples
from sparkdiag.errors import RunFolderError
from sparkdiag.evidence.bisection import StackShare
from sparkdiag.evidence.stacks import StackSample
from sparkdiag.recording.read import read_run

MOST_SHARES = 10
LEAST_DIFFERENCE = 0.01


def innermost_shares(samples: Sequence[StackSample]) -> dict[str, float]:
    """For each function, the share of the samples in which the main thread's innermost frame is in it."""
    mains = [sample.main_thread for sample in samples]
    innermost = Counter(main.frames[0].name for main in mains if main is not None and main.frames)
    total = innermost.total()
    return {function: times / total for function, times in innermost.items()}


def difference(with_it: Sequence[StackSample], without: Sequence[StackSample]) -> tuple[StackShare, ...]:
    """The functions whose share differs most, at most ``MOST_SHARES``; none where either side has no sample."""
    one, other = innermost_shares(with_it), innermost_shares(without)
    if not one or not other:
        return ()
    shares = [
        StackShare(function=name, share_with=one.get(name, 0.0), share_without=other.get(name, 0.0))
        for name in sorted({*one, *other})
    ]
    telling = [share for share in shares if abs(share.share_with - share.share_without) >= LEAST_DIFFERENCE]
    return tuple(sorted(telling, key=lambda share: -abs(share.share_with - share.share_without))[:MOST_SHARES])


def stack_difference(with_it: Path, without: Path) -> tuple[StackShare, ...]:
    """Between the runs in two folders, from the prompt's sending to the first token; none where one cannot be read."""
    try:
        stored = read_run(with_it), read_run(without)
    except RunFolderError:
        return ()
    return difference(worker_samples(stored[0].observation), worker_samples(stored[1].observation))
