"""Where a clone is named, a search over releases goes on among the commits between the two that it found."""

from pathlib import Path

from sparkdiag.bisecting.asking.options import Asked, target_of
from sparkdiag.bisecting.asking.resolve import Question, question
from sparkdiag.bisecting.axes.release_pair import ends_of, with_bases
from sparkdiag.environment.clone import open_clone
from sparkdiag.environment.spec import ReleaseSpec
from sparkdiag.evidence.bisection import Bisection
from sparkdiag.reporting.follow_up import kept_options, pair_of


def commits_between(asked: Asked, found: Bisection) -> Question | None:
    """What is searched next; None where no clone was named, or no two releases were found.

    Raises ``UsageError`` where the clone has nothing to search between them.
    """
    pair = pair_of(found)
    if pair is None or asked.repo is None:
        return None
    ends = ends_of(pair, open_clone(Path(asked.repo)))
    rest = kept_options(pair, command=found.command, target=found.target, scenario=found.scenario)
    following = asked.model_copy(
        update={
            **dict.fromkeys(("releases", "good_run", "bad_run", "import_log")),
            "good": ends.good,
            "bad": ends.bad,
            "scenario": asked.scenario or found.scenario,
            "env": ReleaseSpec(version=pair.newer).text,
            "reuse": asked.reuse and target_of(asked.looks_for).what == "stall",
        }
    )
    words = ("sparkdiag", "bisect", "--repo", asked.repo, "--good", ends.good, "--bad", ends.bad, *rest)
    asking = question(following, command=words)
    notes = (*ends.notes, *asking.notes)
    request = asking.request.model_copy(update={"axis": with_bases(asking.request.axis, pair), "notes": notes})
    return asking.model_copy(update={"request": request, "notes": notes})
