"""One thing that ``doctor`` found out, and what all findings together mean. Pure."""

from collections.abc import Sequence
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from sparkdiag.errors import ExitCode
from sparkdiag.evidence.base import SCHEMA, Value

Status = Literal["ok", "warn", "fail", "crashed"]
"""``warn``: a run works, with the loss that is named. ``fail``: it does not. ``crashed``: the check itself broke."""

BAD: frozenset[Status] = frozenset({"fail", "crashed"})


class Finding(Value):
    """One line of the diagnosis."""

    name: str
    """Of the check: ``sample-child``."""
    status: Status
    seen: str
    """What was done and what came of it."""
    why: str = ""
    """Why it matters to a run; never empty unless all is well."""
    next_step: str | None = Field(default=None, alias="next")
    """What to type, or to do; never None unless all is well."""

    @model_validator(mode="after")
    def _leads_somewhere(self) -> Self:
        if self.status != "ok" and not (self.why and self.next_step):
            raise ValueError(f"the finding {self.name} ({self.status}) says neither why it matters nor what to do")
        return self


def exit_code(findings: Sequence[Finding]) -> ExitCode:
    """4 where something fails or could not be checked; warnings leave 0."""
    return ExitCode.ENVIRONMENT if any(finding.status in BAD for finding in findings) else ExitCode.DONE


def document(findings: Sequence[Finding], *, asked: dict[str, Any]) -> dict[str, Any]:
    """The one JSON document of ``doctor --json``; ``asked`` says what was checked for."""
    return {
        "schema": SCHEMA,
        "ok": exit_code(findings) is ExitCode.DONE,
        "asked": asked,
        "findings": [finding.model_dump(mode="json", by_alias=True) for finding in findings],
    }
