"""Attributes of the server's objects, read without running any of its code.

From ``__dict__``, slots, named tuples and plain class attributes. A property is not run; where it does nothing but
read (``return self.key_slots.shape[0]``), its own steps are taken here, by the same rules.
"""

import dis
from collections import namedtuple
from types import FunctionType, GetSetDescriptorType, MemberDescriptorType
from typing import Any

from .summaries import Summaries

MISSING = object()
"""No such attribute, or none that can be read without running code."""
MOST_REMEMBERED = 256
MOST_DEPTH = 4
NO_STEP = frozenset({"RESUME", "NOP", "CACHE"})

_class_mro = type.__dict__["__mro__"].__get__
_class_dict = type.__dict__["__dict__"].__get__
_named_tuple_field = type(namedtuple("_Any", "field").__dict__["field"])


class Reader:
    """How one attribute of one class is read."""

    def __init__(self, kind: type, name: str) -> None:
        self.kind = kind
        self.slot: Any = None
        self.namespace: Any = None
        self.default: object = MISSING
        self.steps: list[str | int] | None = None
        for base in _class_mro(kind):
            own = _class_dict(base)
            if base is not object and "__getattribute__" in own:  # what it would answer, only its code knows
                self.namespace, self.default = None, MISSING
                return
            if name in own and self._found(own[name]):
                return
            if self.namespace is None and type(own.get("__dict__")) is GetSetDescriptorType:
                self.namespace = own["__dict__"].__get__

    def _found(self, value: object) -> bool:
        """What a class holds under the name; True where that alone answers."""
        if self.default is not MISSING:
            return False
        if type(value) is MemberDescriptorType or type(value) is _named_tuple_field:
            self.slot = value.__get__  # type: ignore[attr-defined]
            return True
        if type(value) is property:
            self.namespace, self.steps = None, _steps(value.fget)
            return True
        if "__get__" in {name for base in _class_mro(type(value)) for name in _class_dict(base)}:
            self.namespace = None
            return True
        self.default = value
        return False


class Attributes:
    def __init__(self, summaries: Summaries) -> None:
        self._summaries = summaries
        self._readers: dict[tuple[int, str], Reader] = {}
        """By the id of the class, which the reader keeps alive: its hash may be code of the server's."""

    def read(self, owner: object, name: str, *, depth: int = 0) -> object:
        """``MISSING`` where it cannot be had without running code."""
        if self._summaries.is_tensor(owner):
            return tuple(owner.shape) if name == "shape" else MISSING  # type: ignore[attr-defined]
        kind = type(owner)
        reader = self._readers.get((id(kind), name))
        if reader is None:
            if len(self._readers) >= MOST_REMEMBERED:
                self._readers.clear()
            reader = self._readers[id(kind), name] = Reader(kind, name)
        if reader.steps is not None:
            return self._follow(owner, reader.steps, depth=depth + 1)
        if reader.slot is not None:
            try:
                found: object = reader.slot(owner, kind)
            except AttributeError:
                return MISSING
            return found
        if reader.namespace is not None:
            return dict.get(reader.namespace(owner, kind), name, reader.default)
        return reader.default

    def _follow(self, value: object, steps: "list[str | int]", *, depth: int) -> object:
        for step in steps:
            if value is MISSING or depth > MOST_DEPTH:
                return MISSING
            if isinstance(step, str):
                value = self.read(value, step, depth=depth)
            elif type(value) in (tuple, list) and -len(value) <= step < len(value):  # type: ignore[arg-type]
                value = value[step]  # type: ignore[index]
            else:
                return MISSING
        return value


def _steps(getter: object) -> "list[str | int] | None":
    """The attributes and indices that a getter reads one after another; None where it does anything else."""
    if type(getter) is not FunctionType or getter.__code__.co_argcount != 1:
        return None
    steps: list[str | int] = []
    constants: list[int] = []
    begun = False
    for one in dis.get_instructions(getter.__code__):
        name = one.opname
        if name in NO_STEP:
            continue
        if not begun:
            if name not in ("LOAD_FAST", "LOAD_FAST_BORROW") or one.argval != getter.__code__.co_varnames[0]:
                return None
            begun = True
        elif name == "LOAD_ATTR":
            steps.append(one.argval)
        elif name in ("LOAD_CONST", "LOAD_SMALL_INT") and type(one.argval) is int:
            constants.append(one.argval)
        elif (name == "BINARY_SUBSCR" or (name == "BINARY_OP" and one.argrepr == "[]")) and constants:
            steps.append(constants.pop())
        else:
            return steps if name == "RETURN_VALUE" and not constants else None
    return None
