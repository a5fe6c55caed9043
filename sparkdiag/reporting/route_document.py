"""The one JSON document of ``route``: programs read it, so keys stay. Pure."""

import json
from typing import Any

from sparkdiag.evidence.route import Executed, Route, RouteHistory, RouteMatrix
from sparkdiag.harmless.documents import redact_document

_OURS = frozenset({"files"})
"""Ids by path: no name of a file is taken for that of a secret."""


def route_document(found: Route, *, subject: str = "", executed: Executed | None = None) -> dict[str, Any]:
    """The route as it was found, with what a reader would work out: names of kernels, whether the stall is reached."""
    made = _plain(found)
    return {
        "schema": made["schema"],
        "revision": made["revision"],
        "subject": redact_document(subject) or None,
        "stall_path": found.stall_path,
        "kernels": redact_document(list(found.kernels)),
        **made,
        "executed": None if executed is None else _plain(executed),
    }


def matrix_document(found: RouteMatrix) -> dict[str, Any]:
    """Every cell, and the sentences that narrow the claim."""
    return _plain(found)


def history_document(found: RouteHistory) -> dict[str, Any]:
    """Every change, oldest first."""
    return _plain(found)


def _plain(found: Route | RouteMatrix | RouteHistory | Executed) -> dict[str, Any]:
    made = found.model_dump(mode="json", by_alias=True)
    return {key: value if key in _OURS else redact_document(value, field="") for key, value in made.items()}


def document_text(document: dict[str, Any]) -> str:
    """As text for stdout: ASCII only, so that no byte of it can steer a terminal."""
    return json.dumps(document, indent=2, ensure_ascii=True, allow_nan=False)
