"""Which two trials of a bisection show best what it found: the latest on either side. Pure."""

from sparkdiag.evidence.bisection import Bisection, Has, TrialResult


def telling_trials(found: Bisection) -> tuple[TrialResult | None, TrialResult | None]:
    """(without what was looked for, with it): a search ends beside the change, so the latest are nearest to it.

    Only those of the search that were sampled and left a folder of their own: a confirmation runs otherwise.
    """
    return _latest(found, "no"), _latest(found, "yes")


def _latest(found: Bisection, has: Has) -> TrialResult | None:
    for trial in reversed(found.trials):
        result = trial.result
        if (
            trial.purpose in ("end", "search")
            and trial.has == has
            and result.watched
            and result.run_dir is not None
            and result.reused_from is None
        ):
            return result
    return None
