"""What a run is found to be, with what speaks for it and against it."""

from typing import Literal

from pydantic import Field

from sparkdiag.evidence.base import SCHEMA, Value
from sparkdiag.evidence.client import NeedleScore

Outcome = Literal["completed", "stalled", "crashed", "inconclusive"]
StallMode = Literal["stuck", "crawling"]

EvidenceSource = Literal[
    "stacks",
    "loop-variables",
    "kv-cache-usage",
    "client",
    "needle",
    "baseline",
    "metrics",
    "process-tree",
    "server-log",
    "gpu",
    "cpu",
    "sampling",
    "revision",
]


class EvidenceItem(Value):
    """One fact and where it was seen."""

    source: EvidenceSource
    text: str


class Baseline(Value):
    """The healthy time to first token for this prompt, from outside the path under suspicion."""

    kind: Literal["control-run", "reference", "fast-kernel", "given"]
    seconds: float
    source: str
    """Which run, which reference, how it was timed: what a reader needs to doubt it."""
    scaled_from_tokens: int | None = None
    """Prompt length it was measured at, where that differs from this run's."""


class Forecast(Value):
    """Time to first token, from sending, as foreseen while the prefill goes on."""

    low_s: float
    best_s: float
    high_s: float
    fraction_done: float
    source: Literal["loop-variables", "kv-cache-usage"]
    inferred: bool = False
    """True when the loop variables were found, not named by the scenario."""


class RankFinding(Value):
    """Where one process spends its time."""

    pid: int
    name: str
    top_function: str | None
    """The suspect function where it was seen, else the innermost function seen most."""
    top_share: float
    samples: int
    loop_progress: str | None = None
    """For people: ``call 3 of layer 1: head 2/4, key 1024/6000``."""
    differs: bool = False
    """True when this rank is the odd one out of its peers."""


class Verdict(Value):
    """The outcome. A stall has ``kind`` and ``function``, unless the run was not to be sampled."""

    schema_version: int = Field(default=SCHEMA, alias="schema")
    outcome: Outcome
    mode: StallMode | None = None
    kind: str | None = None
    function: str | None = None
    role: str | None = None
    needle: NeedleScore | None = None
    baseline: Baseline | None = None
    forecasts: tuple[Forecast, ...] = ()
    ranks: tuple[RankFinding, ...] = ()
    evidence_for: tuple[EvidenceItem, ...] = Field(default=(), alias="for")
    evidence_against: tuple[EvidenceItem, ...] = Field(default=(), alias="against")
    reason: str | None = None
    """Why inconclusive, or how it crashed."""
    decided_at_s: float | None = None

    @property
    def decided(self) -> bool:
        """False while the run should go on: inconclusive is also what is not known yet."""
        return self.outcome != "inconclusive"
