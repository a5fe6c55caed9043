"""Arguments to parameters, as Python binds them, and what the configuration says of a name."""

import ast

from sparkdiag.routing.reading.context import Context, Frame
from sparkdiag.routing.values.domain import AnyValue, Function, Items, Known, Some, Span, Tensor, Typed, Unknown, fresh
from sparkdiag.routing.values.state import State


def settled(context: Context, frame: Frame, name: str, value: AnyValue, *, set_here: bool) -> AnyValue:
    """What ``name`` holds once ``value`` is bound to it: what is insisted on, or given where it is unknown.

    ``set_here``: the source itself says what it is bound to. Of that the configuration tells the shape at most: a local
    called ``dcp_world_size`` is not the DCP size for its name.
    """
    if name in context.given.insisted:
        return context.given.insisted[name]
    if isinstance(value, Unknown | Typed | Some) or (isinstance(value, Tensor) and _is_vague(value)):
        given = context.given.of(name, entry=frame.entry)
        return value if given is None or (set_here and isinstance(given, Known | Span)) else given
    if isinstance(value, Items) and value.kind == "display":
        return fresh(name, f"{name} may be changed")
    return value


def _is_vague(tensor: Tensor) -> bool:
    return tensor.shape is None or any(isinstance(size, Unknown) for size in tensor.shape)


def bound_parameters(
    context: Context,
    frame: Frame,
    function: Function,
    arguments: tuple[AnyValue, ...],
    keywords: dict[str, AnyValue],
) -> dict[str, AnyValue]:
    """What the parameters of ``function`` hold. ``frame``: the function's own."""
    spec = function.node.args
    plain = [*spec.posonlyargs, *spec.args]
    names: dict[str, AnyValue] = {}
    for parameter, value in zip(plain, arguments, strict=False):
        names[parameter.arg] = named(parameter.arg, value)
    if spec.vararg is not None:
        names[spec.vararg.arg] = Items(arguments[len(plain) :])
    for name, value in keywords.items():
        if name != "**":
            names[name] = named(name, value)
    if spec.kwarg is not None:
        known = {one.arg for one in (*plain, *spec.kwonlyargs)}
        rest = [name for name in names if name not in known and name != getattr(spec.vararg, "arg", None)]
        pairs = tuple(Items((Known(name), names.pop(name))) for name in rest)
        names[spec.kwarg.arg] = fresh(spec.kwarg.arg) if "**" in keywords else Items(pairs, "keywords")
    defaults = dict(zip([one.arg for one in plain[len(plain) - len(spec.defaults) :]], spec.defaults, strict=True))
    defaults |= {
        one.arg: value for one, value in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if value is not None
    }
    passed = frozenset(names)
    for parameter in (*plain, *spec.kwonlyargs):
        if parameter.arg not in names:
            names[parameter.arg] = _default(context, frame, parameter.arg, defaults, spread="**" in keywords)
    return {
        name: settled(context, frame, name, value, set_here=name in passed or not frame.entry)
        for name, value in names.items()
    }


def named(name: str, value: AnyValue, *, sign: str = "=") -> AnyValue:
    """A literal says as which parameter it was passed, or to which name assigned, when it decides a guard later."""
    if isinstance(value, Known) and not value.because:
        return Known(value.value, f"{name}{sign}{value.value!r}"[:80])
    return value


def _default(context: Context, frame: Frame, name: str, defaults: dict[str, ast.expr], *, spread: bool) -> AnyValue:
    symbol = f"{frame.function}.{name}"
    if name not in defaults or spread or _changes(frame, defaults[name]):
        return Unknown(symbol, f"{name} is a parameter of {frame.function}")
    context.quiet += 1
    try:
        found = context.evaluate(context, Frame("<module>", frame.module, -1), defaults[name], State({}))
    finally:
        context.quiet -= 1
    value = found[0][0] if len(found) == 1 else Unknown(symbol)
    return Known(value.value, f"{name}={value.value!r} by default"[:80]) if isinstance(value, Known) else value


def _changes(frame: Frame, default: ast.expr) -> bool:
    """A default is what its names held when the function was defined: not known of a name that is bound again."""
    names = [node.id for node in ast.walk(default) if isinstance(node, ast.Name)]
    return any(len(frame.module.bindings.get(name, ())) > 1 or name in frame.module.replaced for name in names)
