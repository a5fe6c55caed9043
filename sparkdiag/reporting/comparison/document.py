"""The one JSON document of ``report A B``: programs read it, so keys stay."""

import json
from typing import Any

from sparkdiag.evidence.comparison import Comparison
from sparkdiag.reporting.document import finite


def comparison_document(found: Comparison) -> dict[str, Any]:
    """``Comparison`` as it is, with its schema."""
    return found.model_dump(mode="json", by_alias=True)


def comparison_json(found: Comparison) -> str:
    """As text for stdout: ASCII only, so that no byte of it can steer a terminal."""
    return json.dumps(finite(comparison_document(found)), indent=2, ensure_ascii=True, allow_nan=False)
