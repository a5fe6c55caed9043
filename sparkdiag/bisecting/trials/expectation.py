"""What a trial will take: what its environment needs first, and what the trials so far took.

Pure, but for the look into the cache at the end.
"""

from collections.abc import Sequence
from statistics import median

from sparkdiag.environment.cache import cache_root, environments_dir, read_stamp
from sparkdiag.environment.revision_plan import OVERLAY_MINUTES, PRECOMPILED_MINUTES, SOURCE_MINUTES
from sparkdiag.evidence.run import Timings

ENVIRONMENT_MINUTES = {
    "lab": 0.02,
    "existing": 0.0,
    "overlay": OVERLAY_MINUTES,
    "release": 2.5,
    "precompiled": PRECOMPILED_MINUTES,
    "source": SOURCE_MINUTES,
}
"""By the kind of a spec, where nothing is there yet."""
READY_MINUTES = 0.02
"""What is there already is only looked up."""
LAB_TRIAL_MINUTES, OTHER_TRIAL_MINUTES = 1.5, 10.0
"""Loading, prompt and verdict before any trial has ended: the lab's as measured, of others nothing is known."""


def environment_minutes(spec: str, *, releases: frozenset[str]) -> float:
    """What preparing an environment takes that no trial has used yet; ``releases``: those the cache holds whole."""
    kind, _, value = spec.partition(":")
    if kind == "release" and value in releases:
        return READY_MINUTES
    return ENVIRONMENT_MINUTES.get(kind, OTHER_TRIAL_MINUTES)


def run_minutes(timings: Sequence[Timings], *, lab: bool) -> float:
    """Loading, prompt and verdict: the median of the trials that came to their end, else an assumption."""
    took_s = [one.total_s - (one.environment_s or 0.0) for one in timings if one.total_s is not None]
    if not took_s:
        return LAB_TRIAL_MINUTES if lab else OTHER_TRIAL_MINUTES
    return max(0.0, median(took_s)) / 60


def cached_releases() -> frozenset[str]:
    """The vLLM releases of which the cache holds a whole environment."""
    try:
        folders = list(environments_dir(cache_root()).iterdir())
    except OSError:
        return frozenset()
    stamps = (read_stamp(folder) for folder in folders)
    return frozenset(stamp.vllm_version for stamp in stamps if stamp is not None)
