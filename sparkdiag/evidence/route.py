"""A route: which kernel a revision's source reaches for a configuration, and the guards that decide it."""

from typing import Literal

from pydantic import Field

from sparkdiag.evidence.base import SCHEMA, Value

Truth = Literal["true", "false", "unknown"]
Phase = Literal["prefill", "decode"]
Cache = Literal["fp8", "fp4"]
Platform = Literal["cuda", "rocm", "xpu", "cpu"]


class SetValue(Value):
    """One ``--set NAME=VALUE``: what a name holds, said by the user."""

    name: str
    value: str
    """A Python literal, an integer size expression, or ``unknown``."""


class RouteConfig(Value):
    """The configuration that is asked about. None: not said, so guards on it stay unknown."""

    dcp: int | None = Field(default=None, ge=1)
    arch: str | None = None
    """CUDA capability as ``sm121``; ``sm90``."""
    platform: Platform | None = "cuda"
    cache: Cache | None = "fp8"
    """Data type of the indexer's cache and queries."""
    phase: Phase = "prefill"
    prompt_tokens: int = Field(default=450_560, ge=1)
    chunk_tokens: int = Field(default=8192, ge=1)
    heads: int = Field(default=64, ge=1)
    """Indexer heads of a rank."""
    compress_ratio: int = Field(default=4, ge=1)
    """Prompt tokens an indexer key."""
    set: tuple[SetValue, ...] = ()


class TrailStep(Value):
    """One line on the way to a kernel: a guard that was passed, or a call that was made."""

    kind: Literal["guard", "call"]
    depth: int
    """Calls below the entry function: 0 in its own body."""
    function: str
    """The function whose body holds the line."""
    path: str
    line: int
    source: str
    """The guard's expression, or the call with the arguments that matter: ``mqa_logits(clean_logits=False)``."""
    value: Truth = "unknown"
    """Of a guard."""
    because: str = ""
    """What decided a guard: ``--dcp 2``, ``clean_logits=False``; why it is unknown."""
    assumed: bool = False
    """True for an unknown guard where this trail takes ``value`` as an assumption (one of ``Reached.when``)."""


class Guard(Value):
    """One guard of the dispatch, once, however many trails pass it."""

    function: str
    path: str
    line: int
    source: str
    value: Truth
    because: str


class Reached(Value):
    """One kernel that the configuration reaches."""

    function: str
    """The function that runs the kernel: the outermost of the scenario's kernels on the way, else whose op it is."""
    path: str
    line: int
    """Where that function is defined; of an external kernel, where it is called."""
    external: bool = False
    """True for a kernel outside the repository (DeepGEMM, a compiled op): its source was not read."""
    when: tuple[str, ...] = ()
    """Conditions that must hold beyond the configuration, one line each; empty: always."""
    trail: tuple[TrailStep, ...] = ()
    """The guards and calls that lead there, in the order in which they run."""
    listed: bool = True
    """False for a function of the repository that runs an op and is none of the scenario's kernels: perhaps one of
    them under a new name."""
    stall: str | None = None
    """The kind of stall that the scenario's signature names for this function."""


class Raises(Value):
    """An error that the configuration may end in before any kernel runs."""

    error: str
    path: str
    line: int
    when: tuple[str, ...] = ()


class NotUnderstood(Value):
    """A line that could matter and was not understood: why the answer is not exact."""

    path: str
    line: int
    source: str
    reason: str


class Route(Value):
    """The answer of ``sparkdiag route`` for one revision and one configuration."""

    schema_version: int = Field(default=SCHEMA, alias="schema")
    revision: str
    """Id of 40 digits."""
    scenario: str
    config: RouteConfig
    entry: str
    """The function that was started from."""
    entry_path: str
    entry_line: int
    reached: tuple[Reached, ...] = ()
    raises: tuple[Raises, ...] = ()
    guards: tuple[Guard, ...] = ()
    not_understood: tuple[NotUnderstood, ...] = ()
    exact: bool = False
    """One kernel, reached whatever is unknown, and every line that matters was understood."""
    files: dict[str, str | None] = {}
    """The blobs that the answer was read from, by path; None for a path that was looked for and is not there."""

    @property
    def kernels(self) -> tuple[str, ...]:
        """Names of what is reached, in the order of the trails, each once."""
        return tuple(dict.fromkeys(found.function for found in self.reached))

    @property
    def stall_path(self) -> Truth:
        """Whether the scenario's stall is reached: ``unknown`` as long as anything that is unknown could decide it."""
        if self.not_understood or not self.reached or not all(found.listed for found in self.reached):
            return "unknown"
        if any(found.stall and not found.when for found in self.reached):
            return "true"
        if all(found.stall is None for found in self.reached):
            return "false"
        return "true" if not self.raises and all(found.stall for found in self.reached) else "unknown"


class RouteProblem(Value):
    """Why one revision has no answer."""

    revision: str
    message: str
    remedy: str | None = None


class RouteChange(Value):
    """A commit whose route differs from that of its parent (of every parent, for a merge)."""

    sha: str
    subject: str = ""
    committed_at: str = ""
    before: tuple[str, ...] = ()
    """Kernels before it; empty where the entry function was not there."""
    after: tuple[str, ...] = ()
    exact: bool = False
    """Both answers are exact."""
    because: str = ""
    """The first guard or call that differs, in words."""


class RouteHistory(Value):
    """The answer of ``sparkdiag route --history A..B``."""

    schema_version: int = Field(default=SCHEMA, alias="schema")
    scenario: str
    config: RouteConfig
    old: str
    new: str
    commits: int
    """How many commits lie between."""
    evaluated: int
    """How many of them had to be read: those that touch a file which the route depends on."""
    changes: tuple[RouteChange, ...] = ()
    """Oldest first."""
    problems: tuple[RouteProblem, ...] = ()


class MatrixRevision(Value):
    """One revision of a matrix."""

    name: str
    """As it was asked for."""
    revision: str
    """Id of 40 digits."""
    subject: str = ""


class MatrixCell(Value):
    """One configuration at one revision, and what it reaches."""

    revision: str
    """Id of 40 digits."""
    dcp: int | None = None
    arch: str | None = None
    cache: Cache | None = None
    kernels: tuple[str, ...] = ()
    raises: tuple[str, ...] = ()
    stall: Truth = "unknown"
    """Whether the scenario's stall is reached; ``unknown`` is not safe."""
    exact: bool = False
    problem: str | None = None
    """Why this cell alone has no answer."""


class RouteMatrix(Value):
    """The answer of ``sparkdiag route --matrix``: one cell for each revision and configuration asked."""

    schema_version: int = Field(default=SCHEMA, alias="schema")
    scenario: str
    config: RouteConfig
    """What all cells have in common; an axis' value stands in the cell."""
    dcp: tuple[int | None, ...]
    arch: tuple[str | None, ...]
    cache: tuple[Cache | None, ...]
    revisions: tuple[MatrixRevision, ...] = ()
    cells: tuple[MatrixCell, ...] = ()
    """By revision, then DCP size, architecture, cache, each in the order asked."""
    narrowed: tuple[str, ...] = ()
    """When the stall path is reached, as far as these cells tell: one sentence, and where no condition on the axes
    tells them apart one more for each revision."""
    problems: tuple[RouteProblem, ...] = ()
    """Revisions without an answer."""


class ExecutedCall(Value):
    """One call of the dynamic twin: which kernels a revision's own code really reached."""

    function: str
    """The dispatch function that was called, ``sparse_attn_indexer`` or ``fp8_fp4_mqa_logits``."""
    clean_logits: bool | None = None
    reached: tuple[str, ...] = ()
    raised: str | None = None
    """One line, where it ended in an error."""
    agrees: bool | None = None
    """With the static answer; None where they cannot be compared."""
    because: str = ""


class Executed(Value):
    """The answer of ``sparkdiag route --execute``: what running the dispatch over stubs and tiny tensors showed."""

    schema_version: int = Field(default=SCHEMA, alias="schema")
    revision: str
    python: str
    """Version of the interpreter, and of torch."""
    sandbox: tuple[str, ...] = ()
    """What bounded the child, one line each; and what could not be had."""
    calls: tuple[ExecutedCall, ...] = ()
    problem: str | None = None
    """Why nothing was executed."""
