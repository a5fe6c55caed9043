"""What a scenario key may hold, said in words, read off the model itself so that it cannot drift from it."""

from collections.abc import Iterable
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

_BOUNDS = (
    ("ge", "at least {}"),
    ("gt", "greater than {}"),
    ("le", "at most {}"),
    ("lt", "less than {}"),
    ("min_length", "at least {} of them"),
    ("max_length", "at most {} of them"),
    ("pattern", "matching {}"),
)


def fields_by_key(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """The fields of ``model`` under the names that a file uses."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def element_model(annotation: Any) -> type[BaseModel] | None:
    """The table that ``annotation`` holds: itself, in an array of tables, or as an alternative to nothing."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for model in map(element_model, _parts(annotation)) if model is not None), None)


def described(field: FieldInfo) -> str:
    """``an integer, at least 64``: type and limits of one key."""
    bounds = [
        wording.format(value)
        for item in field.metadata
        for name, wording in _BOUNDS
        if (value := getattr(item, name, None)) is not None
    ]
    return ", ".join([_type_name(field.annotation), *bounds])


def described_at(root: type[BaseModel], location: Iterable[str | int]) -> str | None:
    """What is allowed at ``location`` (as pydantic gives it) below ``root``; None where the model has no such place."""
    model: type[BaseModel] | None = root
    field: FieldInfo | None = None
    inside_array = False
    for part in location:
        if isinstance(part, int):
            inside_array = True
            continue
        if model is None:
            return _type_name(get_args(field.annotation)[1]) if field and get_args(field.annotation) else None
        field = fields_by_key(model).get(part)
        if field is None:
            return None
        inside_array = False
        model = element_model(field.annotation)
    if field is None:
        return "a table" if model is not None else None
    return _type_name(_parts(field.annotation)[0]) if inside_array else described(field)


def _parts(annotation: Any) -> tuple[Any, ...]:
    return tuple(part for part in get_args(annotation) if part not in (NoneType, Ellipsis))


def _type_name(annotation: Any) -> str:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "a table"
    simple = {bool: "true or false", int: "an integer", float: "a number", str: "a string"}
    if annotation in simple:
        return simple[annotation]
    origin = get_origin(annotation)
    if origin is Literal:
        return "one of " + ", ".join(f"'{choice}'" for choice in get_args(annotation))
    if origin in (Union, UnionType):
        return " or ".join(_type_name(part) for part in _parts(annotation))
    if origin is tuple:
        return f"an array, each {_type_name(_parts(annotation)[0])}"
    if origin is dict:
        return "a table of strings"
    return "another kind of value"
