"""``[route]`` of a scenario: where the dispatch starts, which functions are kernels, what its names hold."""

from pydantic import Field

from sparkdiag.evidence.base import Value
from sparkdiag.evidence.route import Cache, Phase, Platform


class RouteValue(Value):
    """``[[route.value]]``: what a name of the source holds, for the configuration that is asked about.

    ``name`` is a parameter or local of the entry function, or an attribute of something that is not known otherwise;
    ``value`` is ``None``, ``True``, ``False``, an integer expression over the sizes (``rows``, ``keys``,
    ``local_keys``, ``heads``, ``head_dim``, ``topk``, ``dcp``, ``batch``, ``chunk_tokens``, ``longest``: the
    most that the model takes), a tensor
    ``fp8[rows, heads, head_dim]`` or a tuple of these.
    """

    name: str
    value: str
    because: str = ""
    cache: Cache | None = None
    """Only with this cache."""
    phase: Phase | None = None
    platform: Platform | None = None
    anywhere: bool = False
    """In every function, not in the entry function alone."""


class RowSplit(Value):
    """``[route.row_split]``: newer revisions split a chunk's rows so that rows x keys x 4 bytes stay below a limit."""

    function: str = "split_indexer_prefill_chunks"
    """The function that splits, and the parameter by which it knows the limit."""
    parameter: str = "max_logits_bytes"
    limit_function: str = "sparse_indexer_max_logits_bytes"
    limit_flag_mib: str = "VLLM_SPARSE_INDEXER_MAX_LOGITS_MB"
    """The environment flag that holds the limit where there is no such function."""
    flags_module: str = "vllm.envs"
    modules: tuple[str, ...] = ("vllm.v1.attention.backends.mla.indexer",)


class RouteSettings(Value):
    """``[route]``: what ``sparkdiag route`` needs beyond ``[[watch]]``, whose entry function it starts from."""

    kernels: tuple[str, ...] = ()
    """Functions that count as one kernel, by name."""
    support: tuple[str, ...] = ()
    """Ops and functions of every route (cache inserts, gathers, top-k), as ``fnmatch`` patterns: not followed."""
    arch: str | None = Field(default=None, pattern=r"^sm[0-9]{2,3}$")
    """CUDA capability that the scenario is about (``sm121``): taken where no GPU and no option tells one."""
    head_dim: int = Field(default=128, ge=1)
    topk: int = Field(default=512, ge=1)
    row_split: RowSplit | None = None
    values: tuple[RouteValue, ...] = Field(default=(), alias="value")
