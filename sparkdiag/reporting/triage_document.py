"""The one JSON document of ``triage``: programs read it, so keys stay. Pure."""

from typing import Any

from sparkdiag.evidence.diagnosis import Diagnosis
from sparkdiag.harmless.documents import redact_document


def triage_document(found: Diagnosis) -> dict[str, Any]:
    """The diagnosis as it was found; ``kind``, ``confidence``, ``processes`` and ``next_step`` are always there."""
    made: dict[str, Any] = redact_document(found.model_dump(mode="json", by_alias=True), field="")
    return made
