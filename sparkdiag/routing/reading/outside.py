"""What lies outside the repository: Python's builtins, the environment, torch. Pure."""

from collections.abc import Mapping, Sequence

from sparkdiag.routing.reading.events import COMPUTING
from sparkdiag.routing.values import tensors
from sparkdiag.routing.values.domain import (
    AnyValue,
    External,
    Function,
    Items,
    Known,
    Some,
    Span,
    Tensor,
    Typed,
    Unknown,
    fresh,
    may_hold_tensor,
    symbol_of,
    truth_of,
)
from sparkdiag.routing.values.sizes import calculated, least, told

HARMLESS = frozenset({
    "builtins", "math", "functools", "itertools", "operator", "collections", "contextlib", "copy", "dataclasses",
    "enum", "importlib", "inspect", "json", "logging", "os", "re", "sys", "threading", "time", "types", "typing",
    "typing_extensions", "warnings", "weakref", "numpy", "triton", "random", "string", "pathlib", "abc",
    "traceback", "gc", "platform", "tempfile",
})  # fmt: skip
"""Packages whose functions run no kernel of the model."""
NOT_SET = "is not set"
"""How the reason for an environment flag's default ends."""
OPS = "_custom_ops"
"""vllm/_custom_ops.py: one thin wrapper an op."""
_TENSOR_METHODS = frozenset({
    "view", "reshape", "to", "float", "half", "int", "long", "contiguous", "unsqueeze", "squeeze", "transpose",
    "permute", "flatten", "dim", "size", "stride", "numel", "item", "expand", "clone", "detach", "cpu", "cuda",
    "type", "mean", "sum", "max", "min", "masked_fill", "index_select", "gather", "new_empty", "new_zeros",
    "element_size", "tolist", "repeat", "split", "chunk", "unbind", "amax", "amin", "any", "all", "abs", "bool",
    "t", "argmax",
})  # fmt: skip
_CAST = {"int": int, "bool": bool, "float": float, "str": str}
_TYPES = {"int": int, "bool": bool, "float": float, "str": str, "tuple": tuple, "dict": dict, "list": list}


def wraps_ops(module: str) -> bool:
    """Whether a module of the repository holds wrappers of compiled ops only, which need no reading."""
    return module.rpartition(".")[2] == OPS


def is_tensor_method(name: str) -> bool:
    """Whether a method's name is one that tensors have: of an unknown object it is taken for that."""
    return name in _TENSOR_METHODS or (name.endswith("_") and not name.endswith("__"))


def is_kernel(name: str, has_tensor: bool) -> bool:
    """Whether a call outside the repository runs a kernel: an op, a computing function of torch, another library's
    function that gets a tensor."""
    top, tail = name.split(".")[0], name.rpartition(".")[2]
    if top == "torch":
        return name.startswith("torch.ops.") or tail in COMPUTING
    return has_tensor and top not in HARMLESS


def capability_number(capability: Items) -> AnyValue:
    """``DeviceCapability.to_int()``: (12, 1) is 121."""
    return calculated("Add", calculated("Mult", capability.items[0], Known(10)), capability.items[1])


def answered(
    insisted: Mapping[str, AnyValue], name: str, arguments: Sequence[AnyValue], keywords: Mapping[str, AnyValue]
) -> AnyValue | None:
    """What a function outside gives where that can be told; None else."""
    if name in ("os.getenv", "os.environ.get", "environ.get"):
        return _environment(insisted, arguments, keywords)
    top, _, tail = name.rpartition(".")
    if tail == "cdiv" and len(arguments) == 2:
        upper = calculated("Sub", calculated("Add", *arguments), Known(1))
        return calculated("FloorDiv", upper, arguments[1])
    return _builtin(tail, arguments) if top == "builtins" else None


def _environment(
    insisted: Mapping[str, AnyValue], arguments: Sequence[AnyValue], keywords: Mapping[str, AnyValue]
) -> AnyValue | None:
    """A variable that is not set: its default. The environment of the server under question is not known here."""
    if not arguments or not isinstance(arguments[0], Known):
        return None
    name = str(arguments[0].value)
    if name in insisted:
        return insisted[name]
    default = arguments[1] if len(arguments) > 1 else keywords.get("default", Known(None))
    return Known(default.value, f"{name} is not set") if isinstance(default, Known) else default


def _builtin(name: str, arguments: Sequence[AnyValue]) -> AnyValue | None:
    one = arguments[0] if arguments else None
    match name:
        case "len" if isinstance(one, Items):
            return Known(len(one.items), one.because)
        case "len" if isinstance(one, Tensor) and one.shape:
            return one.shape[0]
        case "len" if isinstance(one, Some):
            return Span(1, 1 << 40, one.because)
        case "min" | "max":
            values = list(one.items) if len(arguments) == 1 and isinstance(one, Items) else list(arguments)
            return least(values, largest=name == "max") or _unknown(name, arguments)
        case "bool" if one is not None:
            truth = truth_of(one)
            if truth is not None:
                return Known(truth, one.because)
            return one if isinstance(one, Unknown) else _unknown(name, arguments)
        case "int" | "float" | "str" if isinstance(one, Known) and len(arguments) == 1:
            return _cast(name, one)
        case "int" if isinstance(one, Span):
            return one
        case "isinstance" if len(arguments) == 2:
            return _is_instance(arguments[0], arguments[1])
        case "any" | "all" if isinstance(one, Items) and len(arguments) == 1:
            return _any_all(name, one)
        case "tuple" if isinstance(one, Items):
            return Items(one.items)
        case "frozenset" | "set" | "list" if isinstance(one, Items):
            return Items(one.items, "display")
        case "callable" if isinstance(one, Function):
            return Known(True)
        case "abs" if isinstance(one, Known) and isinstance(one.value, int | float):
            return Known(abs(one.value), one.because)
        case _:
            return None


def _any_all(name: str, values: Items) -> AnyValue:
    answers = [truth_of(value) for value in values.items]
    stops = name == "any"
    if stops in answers:
        return Known(stops, told(*values.items))
    return Known(not stops, told(*values.items)) if None not in answers else _unknown(name, values.items)


def _cast(name: str, value: Known) -> AnyValue:
    try:
        return Known(_CAST[name](value.value), value.because)
    except (TypeError, ValueError, OverflowError):
        return fresh(name, f"{name}() of that fails", tensor=False)


def _unknown(name: str, arguments: Sequence[AnyValue]) -> AnyValue:
    symbol = f"{name}({', '.join(symbol_of(value) for value in arguments)})"
    return Unknown(symbol, told(*arguments) or f"what {name}() gives is not known", tensor=False)


def _is_instance(value: AnyValue, kind: AnyValue) -> AnyValue:
    names = [one.name for one in (kind.items if isinstance(kind, Items) else (kind,)) if isinstance(one, External)]
    plain = [name.removeprefix("builtins.") for name in names]
    if isinstance(value, Tensor) and names:
        return Known("torch.Tensor" in names, value.because)
    if isinstance(value, Typed) and value.type_name in plain:
        return Known(True, value.because)
    if isinstance(value, Items) and value.kind == "tuple" and plain:
        return Known("tuple" in plain, value.because)
    if isinstance(value, Known) and plain and all(name in _TYPES for name in plain):
        return Known(isinstance(value.value, tuple(_TYPES[name] for name in plain)), value.because)
    return Unknown(f"isinstance({symbol_of(value)}, {symbol_of(kind)})", value.because, tensor=False)


def torch_value(name: str, arguments: Sequence[AnyValue], keywords: Mapping[str, AnyValue]) -> AnyValue:
    """What a function of torch gives that runs no kernel we count."""
    tail = name.rpartition(".")[2]
    if tail in tensors.MADE:
        return tensors.made(arguments, dict(keywords))
    if tail in tensors.LIKE and arguments and isinstance(arguments[0], Tensor):
        return arguments[0]
    if name.startswith(
        ("torch.cuda.", "torch.backends.", "torch.distributed.", "torch.version", "torch.compiler.")
    ) or tail.startswith("is_"):
        symbol = f"{name}({', '.join(symbol_of(value) for value in arguments)})"
        return Unknown(symbol, f"what {name}() gives is not known", tensor=False)
    if arguments and not any(may_hold_tensor(value) for value in arguments):
        return Tensor()
    return Tensor()
