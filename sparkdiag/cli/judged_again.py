"""A stored run under today's judge."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sparkdiag.evidence.stored import StoredRun


def judged_again(stored: "StoredRun") -> "StoredRun | None":
    """The run with today's verdict; None where that is the stored one or the run cannot be judged."""
    from sparkdiag.judging.judge import judge
    from sparkdiag.reporting.phrases import scenario_of

    if stored.observation.in_part is not None and stored.observation.in_part.keeps_from_judging:
        return None  # its problems say so
    if stored.record.verdict is not None and any(".jsonl" in problem for problem in stored.problems):
        return None  # less is left than the verdict rests on
    if stored.record.watched:
        return _watched_again(stored)
    scenario = scenario_of(stored)
    old = stored.record.verdict
    if scenario is None or stored.observation.client.sent is None:
        return None
    new = judge(stored.observation, scenario, old.baseline if old is not None else None)
    if old is not None and (
        (new.outcome, new.mode, new.kind, new.function, new.needle)
        == (old.outcome, old.mode, old.kind, old.function, old.needle)
    ):
        return None
    record = stored.record.model_copy(update={"verdict": new})
    return stored.model_copy(update={"record": record})


def _watched_again(stored: "StoredRun") -> "StoredRun | None":
    """The same for a server that was only watched: what its stacks mean to today's signatures."""
    from sparkdiag.judging.judge import judge
    from sparkdiag.reporting.phrases import scenario_of
    from sparkdiag.watching.conclusion import conclusion_of

    old, before, scenario = stored.record.verdict, stored.record.diagnosis, scenario_of(stored)
    prompt = None
    if stored.observation.client.sent is not None and scenario is not None:
        prompt = judge(stored.observation, scenario, old.baseline if old is not None else None)
    reason = before.reason if before is not None else None
    found = conclusion_of(stored.observation, prompt=prompt, why_no_stacks=reason or "none was kept")
    new = found.verdict
    if (
        old is not None
        and before is not None
        and (new.outcome, new.mode, new.kind, new.function) == (old.outcome, old.mode, old.kind, old.function)
        and (found.diagnosis.kind, found.diagnosis.finding) == (before.kind, before.finding)
    ):
        return None
    record = stored.record.model_copy(update={"verdict": new, "diagnosis": found.diagnosis})
    return stored.model_copy(update={"record": record})
