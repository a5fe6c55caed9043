"""``is``, ``in`` and the comparisons of one pair. Pure."""

import ast

from sparkdiag.routing.reading.outside import NOT_SET
from sparkdiag.routing.values.domain import AnyValue, External, Known, Tensor, Unknown, is_none, symbol_of
from sparkdiag.routing.values.given import Given
from sparkdiag.routing.values.sizes import compared, contained, negated, told


def both(first: AnyValue, second: AnyValue) -> AnyValue:
    if isinstance(second, Known):
        return first
    return Unknown(f"({symbol_of(first)} and {symbol_of(second)})", told(first, second), tensor=False)


def one_comparison(operator: ast.cmpop, left: AnyValue, right: AnyValue, *, given: Given) -> AnyValue:
    """``left OP right``. ``given`` tells which environment variables are set."""
    found: AnyValue
    match operator:
        case ast.Is() | ast.IsNot():
            found = _identity(left, right)
            return negated(found) if isinstance(operator, ast.IsNot) else found
        case ast.In() | ast.NotIn():
            if isinstance(right, External) and right.name == "os.environ" and isinstance(left, Known):
                flag = given.of(str(left.value), entry=False)
                found = Known(True, flag.because) if flag is not None else Known(False, f"{left.value} {NOT_SET}")
            else:
                found = contained(left, right)
            return negated(found) if isinstance(operator, ast.NotIn) else found
        case _:
            return compared(type(operator).__name__, left, right)


def _identity(left: AnyValue, right: AnyValue) -> AnyValue:
    for value, other in ((left, right), (right, left)):
        if isinstance(other, Known) and other.value is None:
            answer = is_none(value)
            because = value.because or ("a tensor" if isinstance(value, Tensor) else "")
            if answer is not None:
                return Known(answer, because)
            return Unknown(f"{symbol_of(value)} is None", because, tensor=False, slot=getattr(value, "slot", ""))
    if (
        isinstance(left, Known)
        and isinstance(right, Known)
        and isinstance(left.value, bool)
        and isinstance(right.value, bool)
    ):
        return Known(left.value is right.value, told(left, right))
    if isinstance(left, External) and isinstance(right, External) and left.name == right.name:
        return Known(True, told(left, right))
    return Unknown(f"{symbol_of(left)} is {symbol_of(right)}", told(left, right), tensor=False)
