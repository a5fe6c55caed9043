"""What stacks, and what moved between them, are found to mean."""

from typing import Literal

from pydantic import Field

from sparkdiag.evidence.base import SCHEMA, Value
from sparkdiag.evidence.processes import Role

DiagnosisKind = Literal[
    "torch-fallback",
    "jit-compile",
    "collective-wait",
    "collective-init",
    "gpu-wait",
    "queue-wait",
    "scheduler-loop",
    "kv-transfer",
    "ray-wait",
    "dp-dummy",
    "warmup",
    "weight-load",
    "graph-capture",
    "tokenizer",
    "gc",
    "gil",
    "shutdown",
    "forward",
    "idle",
    "helper-threads-only",
    "garbled",
    "not-an-engine",
]

CANNOT_TELL: frozenset[DiagnosisKind] = frozenset({"helper-threads-only", "garbled", "not-an-engine"})

Confidence = Literal["high", "medium", "low"]
"""``high``: several processes or looks over time agree; ``medium``: a signature names it in one look; ``low``: the
stack alone is as likely in a healthy server, or only part of it was there."""

Finding = Literal["stalled", "healthy", "moving", "unknown"]
"""``stalled`` and ``healthy`` need time or a set of processes; ``moving``: it advances, how fast is not known to be
wrong; one look at one process alone is ``unknown``, whatever its kind."""


class Reason(Value):
    """One piece of evidence and what it was read from."""

    source: str
    """``Worker_TP3_DCP1, MainThread``, ``metrics``, ``3 looks over 40 s``."""
    text: str


class LoopFinding(Value):
    """An integer local that advances."""

    pid: int | None
    function: str
    variable: str
    first: int
    last: int
    looks: int
    over_s: float | None = None
    per_s: float | None = None
    stop_variable: str | None = None
    stop: int | None = None
    left_s: float | None = None
    """Until ``stop`` at that rate."""
    inferred: bool = True
    """Found in the locals; no scenario names it."""
    scope: Literal["call", "pass", "calls"] = "call"
    """``call``: within one call; ``pass``: within one pass of the loop ``around`` it, beginning anew with each;
    ``calls``: from one call to the next, a size that grows with the work done."""
    around: str | None = None

    @property
    def words(self) -> str:
        """``k_start 512 -> 4096 of seq_len_kv 6000 in _fp8_mqa_logits_torch, 90/s, 21 s left (inferred)``."""
        bound = "" if self.stop is None else f" of {self.stop_variable} {self.stop}"
        if self.scope == "pass":
            return f"{self.variable} at {self.last}{bound} in {self.function}, anew with each {self.around} (inferred)"
        if self.scope == "calls":
            rate = "" if self.per_s is None else f", {self.per_s:.3g}/s"
            return f"{self.variable} {self.first} -> {self.last} from call to call of {self.function}{rate} (inferred)"
        rate = "" if self.per_s is None else f", {self.per_s:.3g}/s"
        left = "" if self.left_s is None else f", {self.left_s:.0f} s left of this call at that rate"
        mark = " (inferred)" if self.inferred else ""
        return f"{self.variable} {self.first} -> {self.last}{bound} in {self.function}{rate}{left}{mark}"


class Movement(Value):
    """What changed in one process between its looks."""

    looks: int
    over_s: float | None = None
    what: Literal["nothing", "line", "leaf", "call", "process"]
    """The most that moved: nothing at all; lines of the same innermost functions; the innermost functions; the calls
    from the outermost frames on; the process is another one."""
    text: str
    """For people: ``the same 23 frames and lines in all 3 looks``."""
    loops: tuple[LoopFinding, ...] = ()


class ProcessDiagnosis(Value):
    """What one process is doing."""

    pid: int | None = None
    name: str
    """``Worker_TP0_DCP0``, ``EngineCore``, ``process 4711``."""
    role: Role | None = None
    rank: str | None = None
    """``TP0_DCP0``."""
    kind: DiagnosisKind
    function: str | None = None
    """The function that says most, not always the innermost."""
    path: str | None = None
    line: int | None = None
    thread: str | None = None
    signature: str | None = None
    """Id in the signature file, where one matched."""
    confidence: Confidence = "low"
    meaning: str = ""
    next_step: str = ""
    reference: str | None = None
    healthy: bool | None = None
    """What the signature says of this state by itself; None: seen in healthy and in stalled servers."""
    differs: bool = False
    """The odd one out of its peers."""
    movement: Movement | None = None
    reasons_for: tuple[Reason, ...] = Field(default=(), alias="for")
    reasons_against: tuple[Reason, ...] = Field(default=(), alias="against")


class RankClass(Value):
    """Processes of one role that stand in the same place."""

    members: tuple[str, ...]
    kind: DiagnosisKind
    function: str | None
    waits: bool
    """For somebody else: a victim until shown otherwise."""
    text: str
    """``TP0 to TP2 wait in all_gather``."""


class Difference(Value):
    """One thing that ``triage GOOD BAD`` finds in one of the two only, or differently in both."""

    name: str
    good: str
    bad: str


class Diagnosis(Value):
    """The answer of ``triage``, and of ``watch`` over what it sampled."""

    schema_version: int = Field(default=SCHEMA, alias="schema")
    kind: DiagnosisKind
    finding: Finding = "unknown"
    confidence: Confidence = "low"
    process: str | None = None
    """Name of the process that decides."""
    function: str | None = None
    processes: tuple[ProcessDiagnosis, ...] = ()
    """Where a process was dumped several times: as of its last look."""
    classes: tuple[RankClass, ...] = ()
    differences: tuple[Difference, ...] = ()
    looks: int = 0
    reasons_for: tuple[Reason, ...] = Field(default=(), alias="for")
    reasons_against: tuple[Reason, ...] = Field(default=(), alias="against")
    caveats: tuple[str, ...] = ()
    """``one look only: whether it moves is not known``; ``the paste is cut off``."""
    next_step: str = ""
    """The single next measurement that would settle it."""
    reference: str | None = None
    reason: str | None = None
    """Why nothing more can be told, for the kinds that say so."""


class Traffic(Value):
    """What the server itself said of its requests while the looks were taken."""

    running: float | None = None
    waiting: float | None = None
    """Requests, as of the last answer; None where it was not told."""
    moved: bool | None = None
    """Whether any counter of work (tokens, iterations, KV cache) changed; None where nothing was told of it."""
    over_s: float | None = None
    silent_s: float | None = None
    """Requests have been in flight for so long without one token of an answer and without one that ended; None where
    that was not told."""

    @property
    def in_flight(self) -> bool | None:
        """None where the server did not say."""
        known = [count for count in (self.running, self.waiting) if count is not None]
        return any(count > 0 for count in known) if known else None
