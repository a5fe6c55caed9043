"""Two runs of anything, side by side: DCP 1 against 2, good against bad, before against after a fix."""

from typing import Literal

from pydantic import Field

from sparkdiag.evidence.base import SCHEMA, Value
from sparkdiag.evidence.verdict import Outcome

TimeSource = Literal["measured", "forecast", "at least", "not known"]
"""``at least``: the run ended that long after sending without a first token, and there was no forecast."""


class ComparedTime(Value):
    """From sending to the first token, as far as the run tells it."""

    seconds: float | None = None
    low_s: float | None = None
    high_s: float | None = None
    """Of a forecast."""
    source: TimeSource = "not known"


class ComparedSide(Value):
    """One of the two runs."""

    run_dir: str
    headline: str
    """``stalled (crawling) in _fp8_mqa_logits_torch``."""
    outcome: Outcome | None = None
    first_token: ComparedTime = ComparedTime()
    total_s: float | None = None
    """From sending to the last token; None where the response did not end by itself."""


class ComparedRow(Value):
    """One line of the table."""

    what: str
    a: str
    b: str
    differs: bool
    setting: bool = False
    """Whether ``what`` is an option or a variable of the server, so a name from outside."""


class FunctionShare(Value):
    """How much of the workers' samples a function is innermost in."""

    function: str
    a: float
    b: float


class Comparison(Value):
    """Two runs as one table, a difference of stacks, and what keeps them from being compared."""

    schema_version: int = Field(default=SCHEMA, alias="schema")
    a: ComparedSide
    b: ComparedSide
    sentence: str
    """The times beside each other in words, each with its source."""
    ratio: float | None = None
    """Of the slower time to the faster one; None where one is not known."""
    rows: tuple[ComparedRow, ...] = ()
    stack_difference: tuple[FunctionShare, ...] = ()
    """Largest difference first."""
    caveats: tuple[str, ...] = ()
    """What differs beside what was to be compared (another prompt length, another machine), one line each."""
