"""What one bisection is asked to do: everything resolved, nothing started."""

from sparkdiag.bisecting.axes.axis import Axis
from sparkdiag.bisecting.search.bayes import Noise
from sparkdiag.evidence.base import Value
from sparkdiag.evidence.bisection import Mark, Target
from sparkdiag.reproducing.request import ReproRequest


class ImportedMark(Value):
    """A line of a ``git bisect log``: somebody else's verdict."""

    sha: str
    mark: Mark
    word: str
    """What the log calls it: ``good``, ``bad``, ``skip``, or a term of the user's."""


class BisectRequest(Value):
    """One ``bisect``. Kept, without its secrets, in the journal's first line: a resumed search is the same search."""

    repro: ReproRequest
    """The run of every point but for what the axis changes; its ``runs_dir`` is the bisection's own folder."""
    axis: Axis
    target: Target = Target()
    predicted: tuple[str, ...] = ()
    """Points that are thought to bring the change, the likeliest first: tried first, at most two trials too many."""
    predicted_because: dict[str, str] = {}
    """By point, why."""
    repeat: int = 1
    """Runs of each point; they must agree, or the point is skipped as flaky."""
    confidence: float | None = None
    """Verdicts may be wrong: search until one point has this probability."""
    noise: Noise = Noise()
    reuse: bool = True
    """Points with the same suspect files share one result."""
    controls: bool = True
    """Run each end once more without sampling."""
    confirm: bool = False
    """Run the culprit once more under ``CUDA_LAUNCH_BLOCKING=1``."""
    old_run: str | None = None
    """Folder of an earlier run that stands for the old end."""
    new_run: str | None = None
    imported: tuple[ImportedMark, ...] = ()
    """Marks of points between the ends from a ``git bisect log``."""
    suspect_paths: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What a reader of the answer should know of how the ends and the points were chosen."""
    command: tuple[str, ...] = ()
