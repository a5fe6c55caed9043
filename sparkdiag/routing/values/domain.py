"""What a name of the source may hold, as far as it can be told without running it."""

import ast
from dataclasses import dataclass, field
from itertools import count
from typing import Literal


@dataclass(frozen=True, slots=True)
class Known:
    """A constant: a number, a truth value, a string, None."""

    value: object
    because: str = field(default="", compare=False)
    """What it comes from, in words for the guard that it decides; empty for a literal."""


@dataclass(frozen=True, slots=True)
class Span:
    """An integer of which only the bounds are known, both inclusive."""

    low: int
    high: int
    because: str = field(default="", compare=False)
    name: str = field(default="", compare=False)
    """Which size of the request it is, untouched: ``rows``, ``keys``."""
    most_product: tuple[str, int] | None = field(default=None, compare=False)
    """(name of another size, most that the product of both is): rows are split so that rows x keys stay below it."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor: its shape (None where its rank is unknown) and its dtype as ``torch.uint8``."""

    shape: "tuple[AnyValue, ...] | None" = None
    dtype: str | None = None
    because: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Items:
    """A tuple, or a display whose elements are known while it is used where it stands."""

    items: "tuple[AnyValue, ...]"
    kind: Literal["tuple", "display", "capability", "keywords"] = "tuple"
    because: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the repository."""

    module: str
    name: str
    node: "ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda" = field(compare=False)
    closure: "tuple[tuple[str, AnyValue], ...]" = field(default=(), compare=False)
    because: str = field(default="", compare=False)

    @property
    def symbol(self) -> str:
        return f"{self.module}.{self.name}"


@dataclass(frozen=True, slots=True)
class ModuleRef:
    """A module of the repository."""

    name: str
    because: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class PlatformRef:
    """vLLM's ``current_platform``."""

    because: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class External:
    """Something outside the repository, by its dotted name: ``torch.float32``, ``torch.ops._C.topk``."""

    name: str
    because: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Typed:
    """An object of which the type is known: ``dict``."""

    type_name: str
    symbol: str = ""
    because: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Some:
    """An iterable that has at least one element."""

    symbol: str
    because: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Unknown:
    """Not known, and why. Equal symbols are the same value: what is assumed of one is assumed of the other."""

    symbol: str
    because: str = field(default="", compare=False)
    negated: bool = False
    """Of a truth value: the opposite of what the symbol says."""
    tensor: bool = field(default=True, compare=False)
    """Whether it may be or hold a tensor."""
    by_span: bool = field(default=False, compare=False)
    """A comparison that only the bounds of a size leave open."""
    slot: str = field(default="", compare=False)
    """Name of the module-level variable it stands in: a callable that is put there at run time."""


AnyValue = Known | Span | Tensor | Items | Function | ModuleRef | PlatformRef | External | Typed | Some | Unknown
NONE = Known(None)
_numbers = count()


def fresh(what: str, because: str = "", *, tensor: bool = True) -> Unknown:
    """An unknown that equals nothing else."""
    return Unknown(f"{what}#{next(_numbers)}", because or what, tensor=tensor)


def symbol_of(value: AnyValue) -> str:
    """A text that is equal for equal values, for the symbols of comparisons."""
    match value:
        case Known():
            return repr(value.value)
        case Span():
            return f"[{value.low}..{value.high}]#{value.because}"
        case Items():
            return f"({', '.join(symbol_of(item) for item in value.items)})"
        case Unknown():
            return f"not {value.symbol}" if value.negated else value.symbol
        case ModuleRef() | External():
            return value.name
        case Typed() | Some() | Function():
            return value.symbol
        case PlatformRef():
            return "current_platform"
        case Tensor():
            return f"tensor{value.because}{next(_numbers)}"


def truth_of(value: AnyValue) -> bool | None:
    """Whether it is true in an ``if``; None where that is unknown."""
    match value:
        case Known():
            return bool(value.value)
        case Span(low=low, high=high):
            if low > 0 or high < 0:
                return True
            return False if low == high == 0 else None
        case Items():
            return bool(value.items)
        case Function() | ModuleRef() | PlatformRef() | Some():
            return True
        case _:
            return None


def is_none(value: AnyValue) -> bool | None:
    """Whether it is None; None where that is unknown."""
    match value:
        case Known():
            return value.value is None
        case Unknown() | External():
            return None
        case _:
            return False


def may_hold_tensor(value: AnyValue) -> bool:
    """Whether a function that gets it may run a kernel on it."""
    match value:
        case Tensor():
            return True
        case Unknown():
            return value.tensor
        case Items():
            return any(may_hold_tensor(item) for item in value.items)
        case Some() | Typed():
            return True
        case _:
            return False


def joined(first: AnyValue, second: AnyValue, *, force: bool = False) -> AnyValue | None:
    """One value that stands for either; None where that would lose what a guard may ask for, unless ``force``."""
    if first == second:
        return first
    if isinstance(first, Tensor) and isinstance(second, Tensor):
        return _joined_tensors(first, second)
    if isinstance(first, Items) and isinstance(second, Items) and len(first.items) == len(second.items):
        items = [joined(a, b, force=force) for a, b in zip(first.items, second.items, strict=True)]
        if all(item is not None for item in items):
            return Items(tuple(item for item in items if item is not None), first.kind)
    loose = (Unknown, Typed, Some, External)
    if force or (isinstance(first, loose) and isinstance(second, loose)):
        return fresh(
            "either", "it depends on what came before", tensor=may_hold_tensor(first) or may_hold_tensor(second)
        )
    return None


def _joined_tensors(first: Tensor, second: Tensor) -> Tensor:
    dtype = first.dtype if first.dtype == second.dtype else None
    if first.shape is None or second.shape is None or len(first.shape) != len(second.shape):
        return Tensor(None, dtype)
    sizes = tuple(a if a == b else fresh("size", tensor=False) for a, b in zip(first.shape, second.shape, strict=True))
    return Tensor(sizes, dtype)
