"""The one JSON document of ``repro``, ``watch`` and ``report``: programs read it, so keys stay."""

import json
import math
from typing import Any

from sparkdiag.evidence.base import SCHEMA
from sparkdiag.evidence.stored import StoredRun
from sparkdiag.evidence.verdict import Verdict
from sparkdiag.reporting.predicted_route import route_document
from sparkdiag.reporting.triage_document import triage_document


def document(stored: StoredRun, *, judged_again: StoredRun | None = None) -> dict[str, Any]:
    """Everything a program asks of a run. ``verdict`` is None while there is none."""
    record = stored.record
    revision = record.revision
    verdict = record.verdict
    sampling = stored.observation.sampling
    made: dict[str, Any] = {
        "schema": SCHEMA,
        "status": record.status,
        "error": record.error,
        "verdict": _verdict(verdict),
        "needle": verdict.needle if verdict is not None else None,
        "finish_reason": stored.observation.client.end.finish_reason if stored.observation.client.end else None,
        "dcp_world_size": record.dcp.size if record.dcp is not None else None,
        "dcp": record.dcp.model_dump(mode="json") if record.dcp is not None else None,
        "revision": {
            "sha": revision.sha,
            "proved": revision.proved,
            "contains_suspect_commit": revision.contains_suspect_commit,
            "suspect_commit": revision.suspect_commit,
            "asked": revision.asked,
            "version": revision.version,
            "because": revision.because,
        },
        "route": route_document(stored),
        "ledger": stored.ledger.model_dump(mode="json") if stored.ledger is not None else None,
        "timings_s": _timings(stored),
        "scenario": record.scenario.get("name"),
        "command": list(record.command),
        "started_at": record.started_at,
        "sparkdiag_version": record.sparkdiag_version,
        "sampling": {**sampling.model_dump(mode="json"), "share": sampling.share},
        "server_priority": record.server_priority.model_dump(mode="json") if record.server_priority else None,
        "problems": list(stored.problems),
        "run_dir": stored.run_dir,
    }
    if record.diagnosis is not None or record.watched:
        made["diagnosis"] = triage_document(record.diagnosis) if record.diagnosis is not None else None
        made["watched"] = record.environment
    if judged_again is not None:
        made["judged_again"] = _verdict(judged_again.record.verdict)
    return made


def document_json(stored: StoredRun, *, judged_again: StoredRun | None = None) -> str:
    """``document`` as text for stdout: ASCII only, so that no byte of it can steer a terminal."""
    made = finite(document(stored, judged_again=judged_again))
    return json.dumps(made, indent=2, ensure_ascii=True, allow_nan=False)


def finite(value: Any) -> Any:
    """``value`` with what JSON has no number for (infinity, NaN) as null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: finite(inner) for key, inner in value.items()}
    return [finite(inner) for inner in value] if isinstance(value, list) else value


def _verdict(verdict: Verdict | None) -> dict[str, Any] | None:
    return verdict.model_dump(mode="json", by_alias=True, exclude={"schema_version"}) if verdict is not None else None


def _timings(stored: StoredRun) -> dict[str, float | None]:
    timings = stored.record.timings_s
    return {
        "ready": timings.ready_s,
        "prompt_to_verdict": timings.prompt_to_verdict_s,
        "prompt_to_first_token": timings.prompt_to_first_token_s,
        "environment": timings.environment_s,
        "shutdown": timings.shutdown_s,
        "total": timings.total_s,
    }
