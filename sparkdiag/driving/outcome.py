"""A request as a whole, from its events. Pure."""

from collections.abc import Iterable

from sparkdiag.driving.score import score_answer
from sparkdiag.evidence.client import ClientEvent, ClientOutcome, PromptSent


def fold(events: Iterable[ClientEvent]) -> ClientOutcome:
    """The request under suspicion so far, scored once it ended; a control request and what came of it are left out."""
    outcome = ClientOutcome()
    control = False
    for event in events:
        if isinstance(event, PromptSent):
            control = event.control
        if not control:
            outcome = outcome.after(event)
    return scored(outcome)


def scored(outcome: ClientOutcome) -> ClientOutcome:
    """``outcome`` with its score. None stays where there is nothing to score: not ended, cancelled, no text at all."""
    sent, end = outcome.sent, outcome.end
    if outcome.score is not None or sent is None or end is None or end.how == "cancelled":
        return outcome
    if end.how == "error" and not outcome.text:
        return outcome
    reason = end.finish_reason if end.how == "finished" else None
    score, because = score_answer(outcome.text, expected=sent.expected, kind=sent.kind, finish_reason=reason)
    return outcome.model_copy(update={"score": score, "score_because": because})
