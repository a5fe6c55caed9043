"""The next step where verdicts may be wrong (``--confidence``): trials until one point is probable enough. Pure.

The ends are taken for certain: the search would have nothing to stand on without them (``--repeat`` tries them more
than once).
"""

from collections.abc import Callable

from sparkdiag.bisecting.question.request import BisectRequest
from sparkdiag.bisecting.search.bayes import Posterior, credible, next_noisy_trial, settled, uniform, updated
from sparkdiag.bisecting.search.candidates import Standing, halving_bound, in_history_order, standing
from sparkdiag.bisecting.search.findings import finding, mark
from sparkdiag.bisecting.steps.state import Conclusion, State, TrialStep, commit_of, named
from sparkdiag.evidence.base import Value

MOST_TRIALS_PER_HALVING = 3
MOST_TRIALS_BESIDES = 20
"""A search ends after three trials for each that plain halving needs, and twenty: by then it goes in circles."""
MOST_NAMED = 5


class Belief(Value):
    """What the trials so far make probable."""

    posterior: Posterior
    trials: int
    skipped: frozenset[str]


def noisy_step(
    request: BisectRequest, state: State, *, minutes: Callable[[str], float] = lambda _sha: 1.0
) -> TrialStep | Conclusion:
    """The trial that tells most for its price, or the answer."""
    history, confidence = request.axis.history, request.confidence or 1.0
    start = standing(history, {request.axis.old: "old", request.axis.new: "new"})
    now = belief(request, state, start)
    testable = [sha for sha in start.testable if sha not in now.skipped]
    answer = settled(now.posterior, history, testable=testable, confidence=confidence)
    if answer is not None and len(answer) == 1:
        return Conclusion(outcome="found", commits=answer, confidence=now.posterior.weights[history.index[answer[0]]])
    sha = None
    if answer is None and now.trials < most_trials(len(start.candidates)):
        sha = _predicted(request, state, testable) or next_noisy_trial(
            now.posterior, history, testable=testable, noise=request.noise, confidence=confidence, minutes=minutes
        )
    if sha is not None:
        return TrialStep(sha=sha, purpose="search")
    chosen = answer or credible(now.posterior, history, confidence=confidence)
    return _candidates(request, now, chosen, confidence=confidence)


def most_trials(candidates: int) -> int:
    """After so many trials the search says what it has."""
    return MOST_TRIALS_PER_HALVING * halving_bound(candidates) + MOST_TRIALS_BESIDES


def belief(request: BisectRequest, state: State, start: Standing) -> Belief:
    """From every candidate being as likely, trial by trial. A point that could not be judged once is left alone."""
    history = request.axis.history
    direction = state.ends.direction if state.ends is not None else None
    seen = [(one.sha, one.mark) for one in request.imported if one.sha in history.index]
    imported = len(seen)
    for step in state.finished:
        if step.purpose == "search" and step.result.sha in history.index and direction is not None:
            found = finding(step.result, target=request.target, reference=state.reference)
            seen.append((step.result.sha, mark(found.has, direction)))
    posterior = uniform(history, start.candidates)
    for sha, side in seen:
        if side != "skip":
            posterior = updated(posterior, history, sha=sha, is_new=side == "new", noise=request.noise)
    return Belief(
        posterior=posterior,
        trials=len(seen) - imported,
        skipped=frozenset(sha for sha, side in seen if side == "skip"),
    )


def _predicted(request: BisectRequest, state: State, testable: list[str]) -> str | None:
    """The likeliest prediction and its parent, once each."""
    tried = {step.result.sha for step in state.finished if step.purpose == "search"}
    for predicted in request.predicted[:1]:
        for sha in (predicted, *commit_of(request, predicted).parents[:1]):
            if sha in testable and sha not in tried:
                return sha
    return None


def _candidates(request: BisectRequest, now: Belief, chosen: tuple[str, ...], *, confidence: float) -> Conclusion:
    index, weights = request.axis.history.index, now.posterior.weights
    likeliest = sorted(chosen, key=lambda sha: -weights[index[sha]])
    shares = ", ".join(f"{named(request, sha)} {weights[index[sha]]:.0%}" for sha in likeliest[:MOST_NAMED])
    more = f" and {len(chosen) - MOST_NAMED} more" if len(chosen) > MOST_NAMED else ""
    hidden = f"; {len(now.skipped)} could not be judged" if now.skipped else ""
    return Conclusion(
        outcome="candidates",
        commits=in_history_order(request.axis.history, chosen),
        reason=f"after {now.trials} trials no point has {confidence:.0%} by itself: {shares}{more}{hidden}",
    )
