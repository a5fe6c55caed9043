"""What names hold for a configuration: the scenario's ``[[route.value]]``, the user's ``--set``, the sizes. Pure."""

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from sparkdiag.errors import UsageError
from sparkdiag.evidence.route import RouteConfig
from sparkdiag.routing.values.domain import AnyValue, Items, Known, Some, Span, Tensor, Typed, Unknown
from sparkdiag.routing.values.sizes import calculated
from sparkdiag.scenario.route import RouteSettings, RouteValue

DTYPES = {"fp8": "torch.float8_e4m3fn", "fp4": "torch.uint8"}


@dataclass(frozen=True)
class Given:
    """Values by name: of the entry function, of every function, and those the user insists on."""

    entry: Mapping[str, AnyValue]
    anywhere: Mapping[str, AnyValue]
    insisted: Mapping[str, AnyValue]

    def of(self, name: str, *, entry: bool) -> AnyValue | None:
        """What a name holds where its own source does not tell."""
        return self.insisted.get(name) or (self.entry.get(name) if entry else None) or self.anywhere.get(name)

    @cached_property
    def whole(self) -> Mapping[str, AnyValue]:
        """What is given of whole expressions, ``get_dcp_group().world_size``; what is insisted on comes first."""
        both = {**self.anywhere, **self.insisted}
        return {name: both[name] for name in (*self.insisted, *self.anywhere) if "." in name}

    def of_text(self, text: str) -> AnyValue | None:
        """What an expression holds that is given as a whole, however its first name is imported."""
        for name, value in self.whole.items():
            if text == name or text.endswith(f".{name}"):
                return value
        return None

    def has_object(self, text: str) -> bool:
        """Whether something is given of the object whose attribute ``text`` names: then it can be had."""
        return text.rpartition(".")[0] in {name.rpartition(".")[0] for name in self.whole}


@dataclass(frozen=True, slots=True)
class Sizes:
    """Bounds of what the sizes are over the part of the prompt that is looked at, each inclusive."""

    rows: tuple[int, int]
    """Query tokens of an indexer call."""
    keys: tuple[int, int]
    """Indexer keys of the whole prompt so far."""
    local_keys: tuple[int, int]
    """Of one rank."""
    split: str = ""
    """What splits a chunk's rows, in words."""
    most_scores: int | None = None
    """Most that rows x keys is where rows are split."""


def chunks_of(config: RouteConfig) -> int:
    """Prefill chunks of the prompt."""
    return -(-config.prompt_tokens // config.chunk_tokens)


def keys_at(config: RouteConfig, chunk: int) -> int:
    """Indexer keys once ``chunk`` (from 0) is in."""
    return max(1, min(config.prompt_tokens, (chunk + 1) * config.chunk_tokens) // config.compress_ratio)


def sizes_of(config: RouteConfig, first: int, last: int, *, row_limit_bytes: tuple[int, int] | None) -> Sizes:
    """Sizes over the chunks ``first`` to ``last``. ``row_limit_bytes``: bounds of the logits limit by which this
    revision splits a chunk's rows (``split_indexer_prefill_chunks``: rows x keys x 4 bytes); None where it does not."""
    low, high = keys_at(config, first), keys_at(config, last)
    dcp = config.dcp or 1
    local = (low // dcp, -(-high // dcp)) if config.dcp is not None else (1, high)
    last_rows = config.prompt_tokens - last * config.chunk_tokens
    least = min(config.chunk_tokens, last_rows) if last == chunks_of(config) - 1 else config.chunk_tokens
    most = config.chunk_tokens if first != chunks_of(config) - 1 else min(config.chunk_tokens, last_rows)
    if row_limit_bytes is not None:
        split = max(1, row_limit_bytes[1] // 4 // low)
        most, least = min(most, split), 1 if max(1, row_limit_bytes[0] // 4 // high) < most else least
    split_words = "" if row_limit_bytes is None else _split_words(row_limit_bytes)
    # One row is left however many keys there are.
    most_scores = max(row_limit_bytes[1] // 4, high) if row_limit_bytes is not None else None
    return Sizes((min(least, most), most), (low, high), local, split_words, most_scores)


def _split_words(limit_bytes: tuple[int, int]) -> str:
    if limit_bytes[0] != limit_bytes[1]:
        return " (split by a limit that is not known)"
    return f" (split at {limit_bytes[0] >> 20:,} MiB of logits)"


def given_for(settings: RouteSettings, config: RouteConfig, sizes: Sizes) -> Given:
    """The values for one configuration. Raises ``UsageError`` for a value that cannot be read."""
    names = _size_names(settings, config, sizes)
    entry: dict[str, AnyValue] = {}
    anywhere: dict[str, AnyValue] = {}
    for value in settings.values:
        if _applies(value, config):
            found = parsed(value.value, names, name=value.name, because=value.because or _said(value, config))
            (anywhere if value.anywhere else entry)[value.name] = found
    because = "--set {0.name}={0.value}".format
    insisted = {one.name: parsed(one.value, names, name=one.name, because=because(one)) for one in config.set}
    return Given(entry, anywhere, insisted)


def _applies(value: RouteValue, config: RouteConfig) -> bool:
    asked = ((value.cache, config.cache), (value.phase, config.phase), (value.platform, config.platform))
    return all(wanted is None or wanted == has for wanted, has in asked)


def _said(value: RouteValue, config: RouteConfig) -> str:
    if value.value == "dcp":
        return f"--dcp {config.dcp}" if config.dcp is not None else "the DCP size is not given (--dcp)"
    if value.cache is not None:
        return f"--cache {value.cache}"
    return f"{value.name} is {value.value} in the scenario"


def _size_names(settings: RouteSettings, config: RouteConfig, sizes: Sizes) -> dict[str, AnyValue]:
    def span(bounds: tuple[int, int], what: str) -> AnyValue:
        low, high = bounds
        more = sizes.split if what == "rows" else ""
        if low == high:
            return Known(low, f"{what} {low:,}{more}")
        product = ("keys", sizes.most_scores) if what == "rows" and sizes.most_scores is not None else None
        return Span(low, high, f"{what} {low:,} to {high:,}{more}", what, product)

    dcp: AnyValue = Unknown("dcp", "the DCP size is not given (--dcp)", tensor=False)
    return {
        "rows": span(sizes.rows, "rows"),
        "keys": span(sizes.keys, "keys"),
        "local_keys": span(sizes.local_keys, "keys of a rank"),
        "heads": Known(config.heads, f"--heads {config.heads}"),
        "head_dim": Known(settings.head_dim, f"head_dim {settings.head_dim}"),
        "topk": Known(settings.topk, f"topk {settings.topk}"),
        "dcp": Known(config.dcp, f"--dcp {config.dcp}") if config.dcp is not None else dcp,
        "batch": Known(1, "one request"),
        "longest": Span(sizes.keys[1], 1 << 40, "the model's longest prompt"),
        "chunk_tokens": Known(config.chunk_tokens, f"--chunk-tokens {config.chunk_tokens}"),
    }


def parsed(text: str, names: Mapping[str, AnyValue], *, name: str, because: str) -> AnyValue:
    """A value's text as a value. Raises ``UsageError`` with the forms that are understood."""
    if text.strip() == "unknown":
        return Unknown(name, because)
    try:
        return _read(ast.parse(text.strip(), mode="eval").body, names, name=name, because=because)
    except (SyntaxError, ValueError, KeyError, RecursionError, MemoryError):
        raise UsageError(
            f"what {name} should hold is not understood: {text[:80]}",
            remedy="NAME=None, True, 2, rows * 4, fp8[rows, heads], (fp8[keys, head_dim], None), dict, some or unknown",
        ) from None


def _read(node: ast.expr, names: Mapping[str, AnyValue], *, name: str, because: str) -> AnyValue:
    def inner(one: ast.expr) -> AnyValue:
        return _read(one, names, name=name, because=because)

    match node:
        case ast.Constant(value=bool() | int() | float() | str() | None):
            return Known(node.value, because)
        case ast.Name(id="some"):
            return Some(name, because)
        case ast.Name(id="dict"):
            return Typed("dict", name, because)
        case ast.Name(id="tensor"):
            return Tensor(None, None, because)
        case ast.Name() if node.id in names:
            return names[node.id]
        case ast.BinOp():
            return calculated(type(node.op).__name__, inner(node.left), inner(node.right))
        case ast.UnaryOp(op=ast.USub()):
            return calculated("Sub", Known(0), inner(node.operand))
        case ast.Tuple():
            return Items(tuple(inner(item) for item in node.elts), "tuple", because)
        case ast.Subscript(value=ast.Name(id=dtype)):
            sizes = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            torch_name = DTYPES.get(dtype, f"torch.{dtype}")
            return Tensor(tuple(inner(size) for size in sizes), None if dtype == "tensor" else torch_name, because)
        case _:
            raise ValueError(ast.dump(node))
