"""Runs whose end says what they were: the answer came, or the server or the request broke."""

from sparkdiag.evidence.observation import Observation
from sparkdiag.evidence.verdict import Baseline, EvidenceItem, Outcome
from sparkdiag.judging.facts import baseline_fact, client_fact, stack_facts
from sparkdiag.judging.numbers import finite
from sparkdiag.judging.pace import Limit
from sparkdiag.judging.scene import Scene

_GONE = ("connect", "reset", "closed", "disconnect", "broken pipe", "eof", "protocol", "incomplete", "refused")
"""Words of a client's error when the other side went away."""
_LOG_LINES = 8


def how_it_ended(observation: Observation) -> Outcome | None:
    """``completed``, ``crashed``, ``inconclusive`` (the request failed but the server lives, or the server was ended by
    what had nothing to do with it), or None: not ended."""
    client = observation.client
    end = client.end
    if end is not None and end.how == "finished":
        return "completed"
    exit_ = observation.server_exit
    if exit_ is not None and (end is None or end.how != "cancelled" or not exit_.at_s > end.t_s):
        return "inconclusive" if exit_.guardian_killed else "crashed"
    if end is not None and end.how == "error":
        return "crashed" if _server_went_away(observation) else "inconclusive"
    return None


def _server_went_away(observation: Observation) -> bool:
    end = observation.client.end
    text = (end.error or "").lower() if end else ""
    last = observation.metrics[-1] if observation.metrics else None
    health_gone = last is not None and end is not None and last.t_s >= end.t_s and last.error is not None
    return health_gone or any(word in text for word in _GONE)


def open_end(observation: Observation) -> EvidenceItem:
    """What ended a request of which nothing is known to be wrong with the server."""
    exit_, end = observation.server_exit, observation.client.end
    if exit_ is not None and exit_.guardian_killed:
        return EvidenceItem(source="process-tree", text=exit_.how)
    return EvidenceItem(source="client", text=f"the request failed: {(end.error if end else None) or 'no error text'}")


def crash_reason(observation: Observation) -> str:
    """One line: which process, how, and what the client saw."""
    exit_, end = observation.server_exit, observation.client.end
    if exit_ is None:
        return f"the server went away during the request: {(end.error if end else None) or 'no error text'}"
    at = finite(exit_.at_s)
    when = f" {at:.1f} s into the run" if at is not None else ""
    return f"{exit_.process or 'the server'} ended by itself with {exit_.how}{when}"


def crash_facts(observation: Observation) -> list[EvidenceItem]:
    """The exit and the log's last lines."""
    facts = [EvidenceItem(source="process-tree", text=crash_reason(observation))]
    if observation.server_exit is not None:
        lines = observation.server_exit.last_log_lines[-_LOG_LINES:]
        facts += [EvidenceItem(source="server-log", text=line) for line in lines if line.strip()]
    return facts


def completed_facts(observation: Observation, scene: Scene | None) -> list[EvidenceItem]:
    """That it finished, and the answer's score."""
    client = observation.client
    facts = []
    if scene is not None and client.end is not None:
        seconds = finite(client.end.t_s)
        total = f"{seconds - scene.moment.sent_s:.1f} s" if seconds is not None else "an unknown time"
        tokens = f"{client.end.completion_tokens} tokens, " if client.end.completion_tokens is not None else ""
        reason = client.end.finish_reason or "unknown"
        facts.append(
            EvidenceItem(source="client", text=f"the response finished in {total} ({tokens}finish_reason {reason})")
        )
        if scene.first_token_s is not None:
            facts.append(client_fact(scene))
    if client.score is not None:
        because = f": {client.score_because}" if client.score_because else ""
        facts.append(EvidenceItem(source="needle", text=f"answer {client.score}{because}"))
    return facts


def completed_doubts(scene: Scene | None, *, baseline: Baseline | None, limit: Limit | None) -> list[EvidenceItem]:
    """What a completed run still showed of a stall."""
    if scene is None:
        return []
    facts = [fact for fact in stack_facts(scene) if "on the stack" in fact.text]
    if scene.first_token_s is not None and limit is not None and baseline is not None:
        ratio = (scene.first_token_s - scene.moment.sent_s) / limit.healthy_s
        if ratio > 2:
            facts.append(EvidenceItem(source="client", text=f"the first token took {ratio:.1f} times the healthy time"))
            facts.append(baseline_fact(baseline, limit))
    return facts
