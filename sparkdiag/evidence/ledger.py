"""The dispatch ledger: what the watched functions were given and what they answered, call by call, per rank.

``dispatch.jsonl`` holds :data:`DispatchLine` values. The probe writes them inside each server process
(``dispatch-<pid>.jsonl``); on the way into the run folder only the clock changes, to the run clock.
"""

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from sparkdiag.evidence.base import Value


class DispatchProcess(Value):
    """Who this process is, and what its platform says of itself; the last one of a process counts."""

    event: Literal["process"] = "process"
    pid: int
    dcp_rank: int | None = None
    dcp_world_size: int | None = None
    tp_rank: int | None = None
    tp_world_size: int | None = None
    platform: dict[str, JsonValue] = {}
    """``is_cuda``, ``is_cpu``, ``capability`` ("9.0"), ``device`` (its name): what guards ask vLLM's platform for."""


class DispatchWrapped(Value):
    """A watched function that is recorded from now on."""

    event: Literal["wrapped"] = "wrapped"
    pid: int
    function: str
    module: str
    line: int = 0


class DispatchNotWrapped(Value):
    """A watched name that cannot be recorded here, and why."""

    event: Literal["not_wrapped"] = "not_wrapped"
    pid: int
    function: str
    module: str | None = None
    reason: str


class DispatchCall(Value):
    """One call. Written when it has returned, or once while it goes on for longer than a second.

    The later line of a ``number`` replaces the earlier one.
    """

    event: Literal["call"] = "call"
    pid: int
    number: int
    """Counts the recorded calls of the process from 1."""
    parent: int | None = None
    """The recorded call that this one was made from."""
    function: str
    module: str
    began_s: float
    """Run clock (in the probe's own files ``time.monotonic()``)."""
    took_s: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """None while it goes on. Time on the host, unless ``synced``."""
    synced: bool = False
    """Whether the device was waited for before and after, so that ``took_s`` is the kernel's time."""
    capturing: bool = False
    """Whether a CUDA graph was being captured: replays of it are not seen."""
    arguments: dict[str, JsonValue] = {}
    """By parameter name. Tensors as ``float8_e4m3fn[256, 4, 33]``; None, integers, booleans, floats as they are;
    tuples as lists; anything else as ``<ClassName>``."""
    returned: JsonValue = None
    raised: str | None = None
    """Class of the exception; the text may hold anything and is not kept."""
    seen: dict[str, JsonValue] = {}
    """The scenario's ``[ledger] facts``, read from the frame of the entry function at this moment."""


class DispatchCount(Value):
    """How often a function gave an answer, lines that were not written included."""

    function: str
    module: str
    answer: str
    """``True``, ``False``, ``None``, a tensor's dtype, ``raised TypeError``."""
    facts: dict[str, JsonValue] = {}
    """Those of ``seen`` that a guard asks for, where they are small: booleans, None, integers up to 64, and of larger
    integers only ``>64``."""
    calls: int
    took_s: float


class DispatchTotals(Value):
    """Counts from the start of the process; the last one counts."""

    event: Literal["totals"] = "totals"
    pid: int
    counts: tuple[DispatchCount, ...] = ()
    written: int = 0
    """Lines of finished calls in the file."""
    dropped: int = 0
    """Calls without a line: the file is full, or they came faster than they could be written."""


DispatchLine = Annotated[
    DispatchProcess | DispatchWrapped | DispatchNotWrapped | DispatchCall | DispatchTotals,
    Field(discriminator="event"),
]


# --- What the lines come to (judging/ledger*.py) ------------------------------------------------------------------


class GuardSeen(Value):
    """A guard of the fused path that was seen to say no."""

    fact: str
    """``dcp_world_size``."""
    value: JsonValue
    """The value with which it said no; the commonest where there were several."""
    chunks: int


class FusedSeen(Value):
    """How often the fused path was tried and what it answered, in chunks of one rank."""

    function: str
    accepted: int = 0
    """It returned True: the chunk was done."""
    refused: int = 0
    """It was tried and returned False."""
    mixed: int = 0
    """Its layers or parts went different ways."""
    not_tried: int = 0
    not_tried_because: tuple[GuardSeen, ...] = ()
    unexplained: int = 0
    """Not tried, and no guard of the scenario's list said no."""
    unanswered: int = 0
    """Tried, and it raised or had not returned at the end."""
    unknown: int = 0
    """Lines are missing: whether it was tried is not known."""
    not_guards: tuple[str, ...] = ()
    """Facts that said no while it was tried all the same: no guard of this revision."""


class KernelSeen(Value):
    """One kernel (a leaf function) on one rank."""

    function: str
    calls: int
    chunks: int
    layers: int
    took_s: float
    synced: bool = False
    rows_max: int | None = None
    keys_max: int | None = None
    heads: int | None = None
    head_chunk_size: int | None = None
    """By the chunk plan for the largest shape that was passed. None without a plan."""
    head_chunk_size_most: int | None = None
    """The same of the call with the most heads a pass."""
    head_chunk_seen: tuple[int, ...] = ()
    """What the function's own frames showed of it, on the stacks of any rank."""
    k_chunk_size: int | None = None
    matmuls: int | None = None
    """Of all recorded calls together, by the plan."""
    clean_logits: tuple[bool, ...] = ()
    """The values that were passed, where it or its caller has that argument."""


class RankLedger(Value):
    """One rank's prefill."""

    pid: int
    rank: str
    """``TP0 DCP0``."""
    dcp_world_size: int | None = None
    platform: dict[str, JsonValue] = {}
    chunks: int
    """Scheduler steps with prefill calls that were recorded."""
    counted: Literal["chunks", "calls"] = "chunks"
    """``calls`` where no fact names the layer: then calls of the outermost watched function are counted."""
    layers: int = 0
    """Different layers that were named."""
    open_function: str | None = None
    """The innermost recorded call that had not returned at the end, and for how long."""
    open_s: float | None = None
    local_total_zero: int | None = None
    """Chunks in which the scenario's ``empty`` fact was 0 (for the incident ``chunk.local_total_seq_lens``); None where
    it could not be read."""
    fused: FusedSeen | None = None
    no_fused_because: str | None = None
    """Why nothing is known of the fused path here, where the scenario names one."""
    kernels: tuple[KernelSeen, ...] = ()
    whole_in: str | None = None
    """The kernel in which every layer of every chunk was, where it was one; the fused function, where that did it."""
    elsewhere: int = 0
    """Layers of chunks (or calls) that were finished and show no known kernel."""
    capturing: int = 0
    """Calls that were made while a CUDA graph was being captured."""
    missing: int = 0
    """Calls of the time of the prefill that have no line, at most."""
    totals: tuple[DispatchCount, ...] = ()
    """Where lines are missing: what was counted from the process' start, warm-up and decode included."""


Answer = Literal["agree", "disagree", "not compared"]


class LedgerFinding(Value):
    """One thing that two sources say of the same question, and whether they agree."""

    question: str
    """``which kernel``, ``heads a pass``, ``keys a pass``, ``DCP size``, ``why not fused``."""
    answer: Answer
    says: tuple[str, ...]
    """One line a source, beginning with it: ``ledger: …``, ``stacks: …``, ``route: …``, ``plan: …``."""
    because: str = ""


class LedgerSummary(Value):
    """What the ledger of a run comes to. No verdict rests on it alone."""

    sentence: str
    """``DCP 2; fused path not tried in 58 of 58 chunks because dcp_world_size = 2; every indexer layer of every
    chunk in _fp8_mqa_logits_torch, head_chunk_size 1``."""
    nothing_because: str | None = None
    """Why no prefill call was recorded."""
    expected_chunks: int | None = None
    """Of the whole prompt, as the scheduler splits it."""
    ranks: tuple[RankLedger, ...] = ()
    without: tuple[str, ...] = ()
    """Processes of the model that left no ledger: nothing here tells of them."""
    not_wrapped: tuple[DispatchNotWrapped, ...] = ()
    never_called: tuple[str, ...] = ()
    """Wrapped, but no call was seen: never reached, or reached inside a compiled graph."""
    dropped: int = 0
    """Calls of the time of the prefill that have no line, at most, all ranks together."""
    findings: tuple[LedgerFinding, ...] = ()
