"""What the confined child is told: which functions to call, and what names hold. Pure but for the tree."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sparkdiag.errors import RouteError
from sparkdiag.evidence.route import RouteConfig
from sparkdiag.routing.source.source_tree import SourceTree
from sparkdiag.routing.values.domain import AnyValue, Items, Known, Some, Span, Tensor, Typed
from sparkdiag.routing.values.given import Sizes, chunks_of, given_for, keys_at, sizes_of
from sparkdiag.scenario.model import Scenario
from sparkdiag.scenario.route import RouteValue

Described = Any
"""A value as JSON: a constant, or a dict of one key (``tensor``, ``tuple``, ``list``, ``by_layer``, ``thing``)."""

BLOCK_TOKENS = 64


def _value(name: str, value: str, **only: Any) -> RouteValue:
    return RouteValue(name=name, value=value, anywhere=True, **only)


DEFAULTS = (
    # What one layer's metadata says of a step with one request.
    _value("attn_metadata", "dict"),
    _value("chunks", "some"),
    _value("num_prefills", "1", phase="prefill"),
    _value("num_prefills", "0", phase="decode"),
    _value("num_decodes", "0", phase="prefill"),
    _value("num_decodes", "batch", phase="decode"),
    _value("num_decode_tokens", "0", phase="prefill"),
    _value("num_decode_tokens", "batch", phase="decode"),
    _value("num_prefill_tokens", "rows", phase="prefill"),
    _value("num_actual_tokens", "rows", phase="prefill"),
    _value("num_actual_tokens", "batch", phase="decode"),
    _value("slot_mapping", "int64[rows]", phase="prefill"),
    _value("slot_mapping", "int64[batch]", phase="decode"),
    _value("requires_padding", "False"),
    _value("skip_kv_gather", "False"),
    _value("token_start", "0"),
    _value("token_end", "rows"),
    _value("num_reqs", "1"),
    _value("num_tokens", "rows", phase="prefill"),
    _value("num_tokens", "batch", phase="decode"),
    _value("cu_seqlen_ks", "int32[rows]"),
    _value("cu_seqlen_ke", "int32[rows]"),
    _value("cu_seq_lens", "int32[2]"),
    _value("block_table", "int32[batch, keys]"),
    _value("block_tables", "int32[batch, keys]"),
    _value("decode_lens", "int32[batch]"),
    _value("seq_lens", "int32[batch, 1]"),
    _value("context_lens", "int32[batch, 1]"),
    _value("schedule_metadata", "int32[133, 2]"),
    _value("max_seq_len", "keys"),
    _value("max_model_len", "keys"),
    _value("max_decode_len", "1"),
    _value("total_seq_lens", "keys"),
    _value("max_total_seq_len", "keys"),
    _value("local_total_seq_lens", "local_keys"),
    # Parallelism.
    _value("dcp_world_size", "dcp"),
    _value("decode_context_parallel_size", "dcp"),
    _value("world_size", "dcp"),
    _value("dcp_rank", "0"),
    _value("rank", "0"),
    _value("rank_in_group", "0"),
    # Parameters of the entry and of the dispatch functions.
    _value("k_cache_prefix", "'model.layers.0.self_attn.indexer.k_cache'"),
    _value("quant_block_size", "128"),
    _value("scale_fmt", "'ue8m0'"),
    _value("topk_tokens", "topk"),
    _value("head_dim", "head_dim"),
    _value("skip_k_cache_insert", "True"),
    _value("use_fp4_cache", "False", cache="fp8"),
    _value("use_fp4_cache", "True", cache="fp4"),
    _value("weights", "float32[rows, heads]", phase="prefill"),
    _value("weights", "float32[batch, heads]", phase="decode"),
    _value("hidden_states", "bfloat16[rows, 7168]", phase="prefill"),
    _value("hidden_states", "bfloat16[batch, 7168]", phase="decode"),
    _value("topk_indices_buffer", "int32[rows, topk]"),
    _value("topk_indices", "int32[rows, topk]", phase="prefill"),
    _value("topk_indices", "int32[batch, topk]", phase="decode"),
    _value("topk_scores", "float32[rows, topk]"),
    _value("k", "bfloat16[rows, head_dim]", phase="prefill"),
    _value("k", "bfloat16[batch, head_dim]", phase="decode"),
    _value("kv_cache", f"uint8[keys, {BLOCK_TOKENS}, head_dim + 4]", cache="fp8"),
    _value("kv_cache", f"uint8[keys, {BLOCK_TOKENS}, head_dim // 2 + head_dim // 32]", cache="fp4"),
    _value("q_scale", "None", cache="fp8"),
    _value("q_scale", "int32[rows, heads]", cache="fp4", phase="prefill"),
    _value("q_scale", "int32[batch, heads]", cache="fp4", phase="decode"),
)
"""Where the scenario's ``[[route.value]]`` says nothing. What neither says is a stand-in that decides nothing."""

_Q = {
    ("fp8", "prefill"): "fp8[rows, heads, head_dim]",
    ("fp8", "decode"): "fp8[batch, heads, head_dim]",
    ("fp4", "prefill"): "uint8[rows, heads, head_dim // 2]",
    ("fp4", "decode"): "uint8[batch, heads, head_dim // 2]",
}
_DISPATCH_Q = {
    ("fp8", "prefill"): "(fp8[rows, heads, head_dim], None)",
    ("fp8", "decode"): "(fp8[batch, 1, heads, head_dim], None)",
    ("fp4", "prefill"): "(int8[rows, heads, head_dim // 2], int32[rows, heads])",
    ("fp4", "decode"): "(int8[batch, 1, heads, head_dim // 2], int32[batch, 1, heads])",
}
_KV = {
    "fp8": "(fp8[local_keys, head_dim], float32[local_keys])",
    "fp4": "(int8[local_keys, head_dim // 2], int32[local_keys])",
}
_PAGED_KV = {
    "fp8": f"uint8[keys, {BLOCK_TOKENS}, 1, head_dim + 4]",
    "fp4": f"uint8[keys, {BLOCK_TOKENS}, 1, head_dim // 2 + head_dim // 32]",
}
LENGTHS = {"seq_lens": "keys", "context_lens": "keys", "decode_lens": "1", "block_table": "0", "block_tables": "0"}
"""Of one request: these tensors hold this number only, so that their contents may be read."""
QUERIES = ("q_quant", "q_fp8", "q_values", "q")


@dataclass(frozen=True)
class Place:
    """Where a function is defined at a revision."""

    function: str
    module: str
    path: str


def package_of(scenario: Scenario) -> str:
    """The project's package: ``vllm``."""
    return _entry_modules(scenario)[0].partition(".")[0]


def entry_name(scenario: Scenario) -> str:
    """The function that the dispatch starts from."""
    return next(watched.function for watched in scenario.watch if watched.role == "entry")


def entry_place(tree: SourceTree, scenario: Scenario) -> Place:
    """The entry function, where the scenario names it or where it moved to.

    Raises ``RouteError`` where the revision has none.
    """
    name = entry_name(scenario)
    found = placed(tree, name, _entry_modules(scenario))
    if found is not None:
        return found
    for path in tree.holding(f"def {name}("):
        package, _, rest = path.removesuffix(".py").removesuffix("/__init__").partition("/")
        if package == package_of(scenario):
            return Place(name, f"{package}.{rest.replace('/', '.')}" if rest else package, path)
    raise RouteError(f"{tree.revision[:10]} has no function {name}", remedy="--rev with a commit that has it")


def dispatch_places(tree: SourceTree, scenario: Scenario, *, phase: str) -> tuple[Place, ...]:
    """The scenario's dispatch functions that this revision has, of the phase."""
    found = (
        placed(tree, watched.function, watched.modules)
        for watched in scenario.watch
        if watched.role == "dispatch" and ("paged" in watched.function) == (phase == "decode")
    )
    return tuple(place for place in found if place is not None)


def placed(tree: SourceTree, function: str, modules: Iterable[str]) -> Place | None:
    """The first of ``modules`` that defines ``function``."""
    for module in modules:
        stem = module.replace(".", "/")
        for path in (f"{stem}.py", f"{stem}/__init__.py"):
            blob = tree.read(path)
            if blob is not None and f"def {function}(" in blob.text:
                return Place(function, module, path)
    return None


def job(
    scenario: Scenario, config: RouteConfig, *, entry: Place, dispatch: Iterable[Place], rows: int | None = None
) -> dict[str, Described]:
    """One configuration's calls: every dispatch function with ``clean_logits`` true and false, and the entry itself.

    The sizes are those of the prompt's last chunk; ``rows`` where the revision splits it further.
    """
    names = described(scenario, config, rows=rows)
    calls: list[dict[str, Described]] = []
    for place in dispatch:
        given = _dispatch_arguments(scenario, config, place.function, rows=rows)
        asked = (True, False) if "logits" in place.function else (None,)
        for clean in asked:
            also = {} if clean is None else {"clean_logits": clean}
            calls.append(
                {"function": place.function, "module": place.module, "with": {**given, **also}, "clean": clean}
            )
    queries = _texts(scenario, config, dict.fromkeys(QUERIES, _Q[_kind(config)]), rows=rows)
    own = {value.name for value in scenario.route.values}
    entry_with = {name: value for name, value in queries.items() if name not in own}
    calls.append({"function": entry.function, "module": entry.module, "with": entry_with, "clean": None})
    return {
        "package": package_of(scenario),
        "root": entry.path.removesuffix(f"{entry.module.replace('.', '/')}.py") if entry.path.endswith(".py") else "",
        "platform": config.platform,
        "arch": config.arch,
        "kernels": sorted({*scenario.route.kernels, *leaves(scenario)}),
        "entry": entry.function,
        "held": sorted(own),
        "names": names,
        "calls": calls,
    }


def leaves(scenario: Scenario) -> set[str]:
    """The scenario's kernels by its watch list."""
    return {watched.function for watched in scenario.watch if watched.role == "leaf"}


def described(scenario: Scenario, config: RouteConfig, *, rows: int | None = None) -> dict[str, Described]:
    """What names hold, as JSON; those that are not known are left out."""
    sizes = last_chunk(config, rows=rows)
    found: dict[str, Described] = {}
    for settings in (scenario.route.model_copy(update={"values": DEFAULTS}), scenario.route):
        given = given_for(settings, config, sizes)
        told: Mapping[str, AnyValue] = {**given.anywhere, **given.entry, **given.insisted}
        found.update((name, _described(value)) for name, value in told.items() if _described(value) is not _NOTHING)
    for name, value in _texts(scenario, config, LENGTHS, rows=rows).items():
        if isinstance(found.get(name), dict) and config.phase == "decode":
            found[name]["filled"] = value
    return found


def last_chunk(config: RouteConfig, *, rows: int | None = None) -> Sizes:
    """Sizes of the prompt's last chunk."""
    last = chunks_of(config) - 1
    sizes = sizes_of(config, last, last, row_limit_bytes=None)
    full = min(config.chunk_tokens, config.prompt_tokens)
    keys = keys_at(config, last)
    local = max(1, -(-keys // (config.dcp or 1)))
    most = rows or full
    return type(sizes)((most, most), (keys, keys), (local, local))


def _dispatch_arguments(
    scenario: Scenario, config: RouteConfig, function: str, *, rows: int | None
) -> dict[str, Described]:
    texts = {"q": _DISPATCH_Q[_kind(config)]}
    if "paged" in function:
        texts["kv_cache"] = _PAGED_KV[config.cache or "fp8"]
    else:
        texts["kv"] = _KV[config.cache or "fp8"]
    return _texts(scenario, config, texts, rows=rows)


def _texts(
    scenario: Scenario, config: RouteConfig, texts: Mapping[str, str], *, rows: int | None
) -> dict[str, Described]:
    values = tuple(_value(name, text) for name, text in texts.items())
    settings = scenario.route.model_copy(update={"values": values})
    given = given_for(settings, config, last_chunk(config, rows=rows))
    return {name: _described(value) for name, value in given.anywhere.items()}


def _kind(config: RouteConfig) -> tuple[str, str]:
    return config.cache or "fp8", config.phase


_NOTHING = object()


def _described(value: AnyValue) -> Described:
    match value:
        case Known():
            return value.value
        case Span():
            return value.high
        case Tensor(shape=shape, dtype=dtype) if shape is not None and dtype is not None:
            sizes = [_described(size) for size in shape]
            return {"tensor": [dtype.removeprefix("torch."), sizes]} if _NOTHING not in sizes else _NOTHING
        case Items(items=items):
            parts = [_described(item) for item in items]
            return {"tuple": parts} if _NOTHING not in parts else _NOTHING
        case Some():
            return {"list": [{"thing": True}]}
        case Typed(type_name="dict"):
            return {"by_layer": True}
        case Typed():
            return {"thing": True}
        case _:
            return _NOTHING


def _entry_modules(scenario: Scenario) -> tuple[str, ...]:
    return tuple(module for watched in scenario.watch if watched.role == "entry" for module in watched.modules)
