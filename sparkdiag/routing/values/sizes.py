"""Arithmetic and comparisons over constants and integer spans. Three-valued: None where it cannot be told. Pure."""

import operator
from collections.abc import Callable
from typing import Any

from sparkdiag.routing.values.domain import AnyValue, External, Items, Known, Span, Unknown, fresh, symbol_of

BYTES = {
    "float32": 4, "float64": 8, "float16": 2, "bfloat16": 2, "int64": 8, "long": 8, "int32": 4, "int": 4, "int16": 2,
    "int8": 1, "uint8": 1, "bool": 1, "float": 4, "half": 2, "float8_e4m3fn": 1, "float8_e4m3fnuz": 1, "float8_e5m2": 1,
    "float8_e8m0fnu": 1,
}  # fmt: skip
"""Bytes an element of a torch dtype (https://docs.pytorch.org/docs/stable/tensor_attributes.html)."""
_PLAIN: dict[str, Callable[[Any, Any], Any]] = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mult": operator.mul,
    "FloorDiv": operator.floordiv,
    "Div": operator.truediv,
    "Mod": operator.mod,
    "LShift": operator.lshift,
    "RShift": operator.rshift,
    "Pow": operator.pow,
    "BitAnd": operator.and_,
    "BitOr": operator.or_,
    "BitXor": operator.xor,
}
_LARGEST = 1 << 80
_COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "Lt": operator.lt,
    "LtE": operator.le,
    "Eq": operator.eq,
}


def told(*values: AnyValue) -> str:
    """What the values come from, each once."""
    return ", ".join(dict.fromkeys(value.because for value in values if value.because))


def as_span(value: AnyValue) -> Span | None:
    """An integer or a span as a span."""
    if isinstance(value, Span):
        return value
    if isinstance(value, Known) and isinstance(value.value, int):
        return Span(int(value.value), int(value.value), value.because)
    return None


def calculated(name: str, left: AnyValue, right: AnyValue) -> AnyValue:
    """``left OP right``; ``name`` is the operator's in ``ast``."""
    because = told(left, right)
    if isinstance(left, Known) and isinstance(right, Known) and name in _PLAIN:
        return _plain(name, left, right, because)
    if isinstance(left, Items) and isinstance(right, Items) and name == "Add" and left.kind == right.kind == "tuple":
        return Items(left.items + right.items)
    first, second = as_span(left), as_span(right)
    if first is not None and second is not None:
        found = _bounds(name, first, second)
        if found is not None:
            return Span(*found, because) if found[0] != found[1] else Known(found[0], because)
    return fresh("arithmetic", because or "not a constant", tensor=not (first or second))


def _plain(name: str, left: Known, right: Known, because: str) -> AnyValue:
    a, b = left.value, right.value
    numbers = isinstance(a, int | float) and isinstance(b, int | float)
    texts = name == "Add" and isinstance(a, str) and isinstance(b, str)
    if texts or (numbers and not (name in ("Pow", "LShift") and (abs(a) > 1 << 20 or abs(b) > 64))):  # type: ignore[arg-type]
        try:
            return Known(_PLAIN[name](a, b), because)
        except (ArithmeticError, TypeError, ValueError):
            pass
    return fresh("arithmetic", "not a number", tensor=False)


def _bounds(name: str, a: Span, b: Span) -> tuple[int, int] | None:
    match name:
        case "Add":
            return a.low + b.low, a.high + b.high
        case "Sub":
            return a.low - b.high, a.high - b.low
        case "Mult":
            ends = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
            for one, other in ((a, b), (b, a)):
                if one.most_product is not None and other.name == one.most_product[0]:
                    ends = [min(end, one.most_product[1]) for end in ends]
        case "FloorDiv" if b.low > 0 or b.high < 0:
            ends = [x // y for x in (a.low, a.high) for y in (b.low, b.high)]
        case _:
            return None
    return (min(ends), max(ends)) if max(map(abs, ends)) < _LARGEST else None


def least(values: list[AnyValue], *, largest: bool = False) -> AnyValue | None:
    """``min`` or ``max`` of integers and spans; None where one of them is neither."""
    spans = [as_span(value) for value in values]
    choose = max if largest else min
    if not spans or any(span is None for span in spans):
        numbers = [value.value for value in values if isinstance(value, Known)]
        plain = len(numbers) == len(values) and all(isinstance(number, int | float) for number in numbers)
        return Known(choose(numbers), told(*values)) if numbers and plain else None  # type: ignore[type-var]
    low, high = (choose(getattr(span, end) for span in spans) for end in ("low", "high"))
    return Known(low, told(*values)) if low == high else Span(low, high, told(*values))


def compared(name: str, left: AnyValue, right: AnyValue) -> AnyValue:
    """``left OP right`` as a truth value, an unknown one with the symbol of the comparison where it cannot be told."""
    opposite = {"NotEq": "Eq", "Gt": "LtE", "GtE": "Lt"}.get(name)
    if opposite is not None:
        found = compared(opposite, left, right)
        return negated(found)
    because = told(left, right)
    answer = _compared(name, left, right)
    if answer is not None:
        return Known(answer, because)
    both = [symbol_of(left), symbol_of(right)]
    symbol = f"{both[0]} {name} {both[1]}" if name != "Eq" else " Eq ".join(sorted(both))
    by_span = as_span(left) is not None and as_span(right) is not None
    return Unknown(symbol, because, tensor=False, by_span=by_span)


def negated(value: AnyValue) -> AnyValue:
    """``not value``."""
    if isinstance(value, Known):
        return Known(not value.value, value.because)
    if isinstance(value, Unknown):
        return Unknown(
            value.symbol, value.because, negated=not value.negated, tensor=False, by_span=value.by_span, slot=value.slot
        )
    return fresh("not", value.because, tensor=False)


def _compared(name: str, left: AnyValue, right: AnyValue) -> bool | None:
    a, b = as_span(left), as_span(right)
    if a is not None and b is not None:
        return _compared_spans(name, a, b)
    if isinstance(left, Known) and isinstance(right, Known):
        try:
            return bool(_COMPARED[name](left.value, right.value))
        except TypeError:
            return None
    if isinstance(left, Items) and isinstance(right, Items) and "display" not in (left.kind, right.kind):
        return _compared_items(name, left, right)
    if name == "Eq":
        return _same(left, right)
    return None


def _same(left: AnyValue, right: AnyValue) -> bool | None:
    if isinstance(left, External) and isinstance(right, External):
        if left.name == right.name:
            return True
        dtypes = [value.name.removeprefix("torch.") in BYTES for value in (left, right)]
        return False if all(dtypes) else None
    if isinstance(left, Unknown) and left == right:
        return True
    return None


def _compared_spans(name: str, a: Span, b: Span) -> bool | None:
    match name:
        case "Lt":
            return True if a.high < b.low else False if a.low >= b.high else None
        case "LtE":
            return True if a.high <= b.low else False if a.low > b.high else None
        case _:
            if a.low == a.high == b.low == b.high:
                return True
            return False if a.high < b.low or b.high < a.low else None


def _compared_items(name: str, left: Items, right: Items) -> bool | None:
    if name == "Eq":
        if len(left.items) != len(right.items):
            return False
        answers = [_compared("Eq", a, b) for a, b in zip(left.items, right.items, strict=True)]
        if False in answers:
            return False
        return None if None in answers else True
    for a, b in zip(left.items, right.items, strict=False):
        same = _compared("Eq", a, b)
        if same is None:
            return None
        if not same:
            return _compared("Lt", a, b)
    return len(left.items) < len(right.items) if name == "Lt" else len(left.items) <= len(right.items)


def contained(item: AnyValue, holder: AnyValue) -> AnyValue:
    """``item in holder``."""
    because = told(item, holder)
    if isinstance(holder, Items) and holder.kind == "keywords":
        named = [one.items[0] for one in holder.items if isinstance(one, Items)]
        return contained(item, Items(tuple(named)))
    if isinstance(holder, Items):
        answers = [_compared("Eq", item, one) for one in holder.items]
        if True in answers:
            return Known(True, because)
        if None not in answers:
            return Known(False, because)
    if (
        isinstance(item, Known)
        and isinstance(holder, Known)
        and isinstance(item.value, str)
        and isinstance(holder.value, str)
    ):
        return Known(item.value in holder.value, because)
    return Unknown(f"{symbol_of(item)} in {symbol_of(holder)}", because, tensor=False)
