"""The one JSON document of ``kernel plan``: programs read it, so keys stay. Pure."""

import json

from sparkdiag.evidence.kernels import KernelPlan


def plan_document_text(found: KernelPlan) -> str:
    """As text for stdout. Nothing in it is from outside but a scenario's name, which JSON escapes."""
    return json.dumps(found.model_dump(mode="json", by_alias=True), indent=2, ensure_ascii=True, allow_nan=False)
