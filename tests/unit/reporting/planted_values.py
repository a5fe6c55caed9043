"""Values of any model of the evidence with a text of our choice in every field that can hold one."""

from collections.abc import Callable
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from sparkdiag.evidence.base import Value

Text = Callable[[str], str]


def planted(model: type[Value], text: Text, *, where: str = "") -> Any:
    """A ``model`` in which every field that may hold text holds ``text(its path)``."""
    values = {
        field.alias or name: _of(field.annotation, text, f"{where}.{name}" if where else name)
        for name, field in model.model_fields.items()
    }
    return model.model_validate(values)


def _of(annotation: Any, text: Text, where: str) -> Any:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if hasattr(annotation, "__metadata__"):
        return _of(annotation.__origin__, text, where)
    if origin is Literal:
        return arguments[0]
    if origin in (Union, UnionType):
        return _of_union([one for one in arguments if one is not type(None)], text, where)
    if origin is tuple:
        several = arguments[:1] * 2 if Ellipsis in arguments else arguments
        members = _members(several[0]) if Ellipsis in arguments else ()
        if members:
            return tuple(_of(one, text, f"{where}[{one.__name__}]") for one in members)
        return tuple(_of(one, text, where) for one in several)
    if origin is dict:
        key = text(f"{where}.key") if arguments[0] is str else _of(arguments[0], text, where)
        return {key: _of(arguments[1], text, f"{where}.value")}
    if isinstance(annotation, type) and issubclass(annotation, Value):
        return planted(annotation, text, where=where)
    if annotation is str:
        return text(where)
    if annotation in (int, float, bool):
        return annotation(1)
    return {"nested": [text(f"{where}.nested")], text(f"{where}.key"): text(f"{where}.value"), "plain": text(where)}


def _members(annotation: Any) -> tuple[Any, ...]:
    """The models of a tagged union, each of which must be there."""
    if hasattr(annotation, "__metadata__"):
        annotation = annotation.__origin__
    members = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else ()
    return tuple(one for one in members if isinstance(one, type) and issubclass(one, Value))


def _of_union(members: list[Any], text: Text, where: str) -> Any:
    """Text where it is allowed, else the first."""
    chosen = str if str in members else next((one for one in members if get_origin(one) is not Literal), members[0])
    return _of(chosen, text, where)
