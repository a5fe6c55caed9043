"""A scenario: one known stall, as data. What is asked of the server, what to look for, what healthy looks like."""

from typing import Literal

from pydantic import Field

from sparkdiag.evidence.base import SCHEMA, Value
from sparkdiag.evidence.processes import Role
from sparkdiag.scenario.ledger import LedgerSettings
from sparkdiag.scenario.parallel import MAX_RANKS
from sparkdiag.scenario.route import RouteSettings

StallKind = Literal["torch-fallback", "jit-compile", "collective-wait", "gpu-wait", "forward", "unknown"]


MAX_TOKENS = 10_000_000
"""Of a prompt, an answer or a chunk: an order of magnitude beyond any model, and a prompt that memory still holds."""
MAX_MODEL_LEN = 100_000_000


class ServerSettings(Value):
    """``[server]``: how vLLM is started, beyond host and port, which sparkdiag chooses."""

    model: str | None = None
    """Path or hub name; None in the lab, whose model sparkdiag writes."""
    served_model_name: str = "sparkdiag"
    dcp: int = Field(default=1, ge=1, le=MAX_RANKS)
    tp: int = Field(default=1, ge=1, le=MAX_RANKS)
    """Tensor parallel size; DCP must divide it."""
    chunk_tokens: int = Field(default=8192, ge=1, le=MAX_TOKENS)
    """Tokens a prefill chunk holds: --max-num-batched-tokens."""
    max_model_len: int | None = Field(default=None, ge=1, le=MAX_MODEL_LEN)
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    ready_timeout_s: float = Field(default=1800, gt=0)


class PromptSettings(Value):
    """``[prompt]``: the request that should stall."""

    kind: Literal["needle", "reasoning"] = "needle"
    tokens: int = Field(ge=64, le=MAX_TOKENS)
    """Exact length by the server's own /tokenize."""
    depth: float = Field(default=0.35, ge=0, le=1)
    """Where the needle lies: 0 at the front, 1 at the end."""
    seed: int = 0
    max_output_tokens: int = Field(default=64, ge=1, le=MAX_TOKENS)


class LoopVariable(Value):
    """One loop of the suspect function, by the names of its locals."""

    index: str
    """Local that holds where the current pass starts: ``head_start``."""
    step: str | None = None
    """Local that holds the stride: ``head_chunk_size``; None for 1."""
    stop: str
    """Local that holds the exclusive end: ``num_heads``."""


class Signature(Value):
    """``[[signature]]``: a function whose presence on the stack names the stall."""

    function: str
    """Bare function name; matched by name, never by line."""
    kind: StallKind
    role: Role = "worker"
    meaning: str = ""
    loop: tuple[LoopVariable, ...] = ()
    """Outermost first."""
    call_identity: tuple[str, ...] = ()
    """Locals that stay the same within one call (sizes); a change means another call."""
    rows: str | None = None
    """Local that holds M, the rows (query tokens) of the call."""
    keys: str | None = None
    """Local that holds N, the keys of the call: it tells how far into the prompt the call is."""
    heads: str | None = None


class LayerClock(Value):
    """``[layer_clock]``: which local of which function names the layer a call belongs to."""

    function: str
    variable: str


class Work(Value):
    """``[work]``: what a prefill consists of, for the forecast."""

    layers: int | None = Field(default=None, ge=1)
    """Indexer layers; None when unknown (then counted from what is seen)."""
    compress_ratio: int = Field(default=1, ge=1)
    """Prompt tokens per indexer key (DeepSeek V4: 4)."""
    heads: int | None = Field(default=None, ge=1)
    budget_bytes: int | None = Field(default=None, ge=1)
    """The fallback's score budget (incident: 64 MiB)."""


class Reference(Value):
    """``[[baseline.reference]]``: a healthy time somebody measured."""

    prompt_tokens: int = Field(ge=1)
    seconds: float = Field(gt=0)
    hardware: str
    source: str


class BaselineSettings(Value):
    """``[baseline]``: when slow becomes crawling."""

    factor: float = Field(default=10, gt=1)
    references: tuple[Reference, ...] = Field(default=(), alias="reference")
    fast_kernel: bool = False
    """True when the environment can time the fast kernel on the scenario's shapes (the lab can)."""
    fast_kernel_share: float = Field(default=1, gt=0, le=1)
    """Share of a healthy prefill that the fast kernel takes, measured where the scenario says: the healthy time is
    the timed kernel divided by this."""


class WatchedFunction(Value):
    """``[[watch]]``: a function of the path under suspicion, for the proof of revision and the probe."""

    function: str
    role: Literal["entry", "dispatch", "leaf"] = "dispatch"
    modules: tuple[str, ...] = ()
    """Modules it was seen in over time, newest first."""


class Suspect(Value):
    """``[suspect]``: the commit the review argues about."""

    commit: str | None = None
    """Hex, as short as unique or longer."""
    twins: tuple[str, ...] = ()
    """Rebased twins of it in other clones."""
    subject: str = ""
    paths: tuple[str, ...] = ()
    """Files it touches, any of the names they had."""


class Patience(Value):
    """``[patience]``: how long to look before saying what."""

    stuck_s: float = Field(default=60, gt=0)
    """No advance within the same call for this long is ``stuck``."""
    settle_s: float = Field(default=5, ge=0)
    """Nothing is concluded about speed before this long after the prompt was sent."""
    min_samples: int = Field(default=5, ge=2)
    """Usable samples of each worker before anything is concluded from stacks."""
    timeout_s: float = Field(default=3600, gt=0)
    """The whole request; then ``inconclusive``."""


class Sampling(Value):
    """``[sampling]``: how often to look."""

    cpu_share: float = Field(default=0.01, gt=0, le=1)
    """Share of the machine's cores that taking stacks may cost on average, py-spy's processes included."""
    min_period_s: float = Field(default=0.5, gt=0)
    max_period_s: float = Field(default=10, gt=0)
    dump_timeout_s: float = Field(default=10, gt=0)
    metrics_period_s: float = Field(default=1.0, gt=0)
    """A scrape costs 3 ms of CPU; one a second is enough for the judge, who needs two readings a chunk."""


class Scenario(Value):
    """The whole of a scenario file, checked."""

    schema_version: int = Field(default=SCHEMA, alias="schema")
    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,40}$")
    title: str
    description: str = ""
    incident: str | None = None
    """URL or reference of the report this scenario restates."""
    lab: bool = False
    """True for scenarios that run on the embedded lab."""
    hardware: str = ""
    server: ServerSettings
    prompt: PromptSettings
    signatures: tuple[Signature, ...] = Field(alias="signature", min_length=1)
    layer_clock: LayerClock | None = None
    work: Work = Work()
    baseline: BaselineSettings = BaselineSettings()
    watch: tuple[WatchedFunction, ...] = ()
    ledger: LedgerSettings = LedgerSettings()
    suspect: Suspect = Suspect()
    route: RouteSettings = RouteSettings()
    patience: Patience = Patience()
    sampling: Sampling = Sampling()

    @property
    def kept_locals(self) -> frozenset[str]:
        """Names of locals that may be kept although they are neither integers nor booleans."""
        return frozenset({self.layer_clock.variable} if self.layer_clock else ())
