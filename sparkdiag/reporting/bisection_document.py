"""The one JSON document of ``bisect``, and of ``report`` on a bisection's folder: programs read it, so keys stay."""

import json
from typing import Any

from sparkdiag.evidence.bisection import Bisection, Commit, Trial
from sparkdiag.reporting import bisection_phrases as phrases
from sparkdiag.reporting.document import finite
from sparkdiag.reporting.follow_up import follow_up

_OURS = frozenset({"schema", "outcome", "reason", "direction", "commits", "trials", "target"})
"""Keys written here in words of their own; every other one stands as in ``bisection.json``."""


def bisection_document(found: Bisection, *, run_dir: str | None) -> dict[str, Any]:
    """``bisection.json`` with what a reader would work out: short names, pull requests, functions, minutes."""
    made = found.model_dump(mode="json", by_alias=True)
    return {
        "schema": made["schema"],
        "outcome": found.outcome,
        "reason": found.reason,
        "direction": found.direction,
        "commits": [_commit(found, commit) for commit in found.commits],
        "trials": [_trial(trial) for trial in found.trials],
        "how_sure": [{"about": about, "text": text} for about, text in phrases.how_sure(found)],
        "minutes": phrases.minutes(found.trials),
        **{key: value for key, value in made.items() if key not in _OURS},
        "target": str(found.target),
        "follow_up": follow_up(found),
        "run_dir": run_dir,
    }


def bisection_json(found: Bisection, *, run_dir: str | None) -> str:
    """As text for stdout: ASCII only, so that no byte of it can steer a terminal."""
    return json.dumps(finite(bisection_document(found, run_dir=run_dir)), indent=2, ensure_ascii=True, allow_nan=False)


def _commit(found: Bisection, commit: Commit) -> dict[str, Any]:
    return {
        "sha": commit.sha,
        "subject": commit.subject,
        "committed_at": commit.committed_at or None,
        "pull_request": phrases.pull_request(commit.subject) if found.axis == "commits" else None,
    }


def _trial(trial: Trial) -> dict[str, Any]:
    result = trial.result
    return {
        "sha": result.sha,
        "subject": trial.subject,
        "purpose": trial.purpose,
        "outcome": result.outcome,
        "reason": result.reason or None,
        "reused_from": result.reused_from,
        "has": trial.has,
        "because": trial.because,
        "mark": trial.mark,
        "mode": result.mode,
        "kind": result.signature.kind if result.signature else None,
        "function": result.signature.function if result.signature else None,
        "needle": result.needle,
        "watched": result.watched,
        "samples": result.samples,
        "first_token_s": result.first_token_s,
        "decided_s": result.decided_s,
        "minutes": result.minutes,
        "for": [item.model_dump(mode="json") for item in result.evidence_for],
        "against": [item.model_dump(mode="json") for item in result.evidence_against],
        "run_dir": result.run_dir,
    }
