"""What may be told of a value: sizes, dtypes, small plain values, and of everything else the name of its class.

No code of the server's is run: types are compared by identity, and a tensor's shape and dtype are all that is asked.
"""

import math
import sys
from collections.abc import Callable
from typing import Any

LONGEST_TEXT = 200
LONGEST_NAME = 100
MOST_ITEMS = 16
MOST_DEPTH = 3
MOST_REMEMBERED = 1000
LARGEST_INTEGER = 10**12
"""Below: sizes, not keys, addresses or a card's number."""

_class_name = type.__dict__["__name__"].__get__


class Summaries:
    """Summaries of values. Tensors are known once torch is imported by the server; nothing is imported for them."""

    def __init__(self) -> None:
        # Compared by identity: a class's own hash may be code of the server's.
        self._tensor_class: Any = Summaries
        self._parameter_class: Any = Summaries
        self._dtypes: dict[Any, str] = {}
        self.answers: dict[Any, str] = {None: "None", True: "True", False: "False"}
        """Short forms that are known: of the values above, and of classes."""
        self._told: dict[tuple[Any, Any], str] = {}
        self.tracing: Callable[[], object] = _no_torch
        """Whether ``torch.jit.trace`` is at work in this thread: a size that is asked for would get into its graph."""

    def learn_torch(self) -> None:
        """Look whether torch is there by now."""
        if self._tensor_class is not Summaries:
            return
        torch = sys.modules.get("torch")
        tensor = vars(torch).get("Tensor") if torch is not None else None
        if isinstance(tensor, type):
            parameter = vars(vars(torch).get("nn", object)).get("Parameter")
            # These exactly: a subclass may run code of its own when asked for its shape.
            self._tensor_class, self._parameter_class = tensor, parameter
            asks = vars(sys.modules.get("torch._C", object)).get("_is_tracing")
            if asks is not None:
                self.tracing = asks

    def is_tensor(self, value: object) -> bool:
        """Whether it is one whose shape may be asked for."""
        kind = type(value)
        return kind is self._tensor_class or kind is self._parameter_class

    def value(self, value: object, *, text: bool = False, depth: int = 0) -> Any:
        """JSON: ``float32[256, 4]`` for a tensor, plain scalars as they are, tuples as lists, ``<Class>`` for the rest.

        ``text``: whether a string may be told.
        """
        kind = type(value)
        if value is None or kind is bool:
            return value
        if kind is int:
            return value if -LARGEST_INTEGER < value < LARGEST_INTEGER else "<int>"  # type: ignore[operator]
        if kind is self._tensor_class or kind is self._parameter_class:
            return self._tensor(value)
        if kind is float:
            return value if math.isfinite(value) else str(value)  # type: ignore[arg-type]
        if kind is str and text:
            return value[:LONGEST_TEXT]  # type: ignore[index]
        if kind is tuple or kind is list:
            return self._items(value, text=text, depth=depth)  # type: ignore[arg-type]
        return f"<{class_name(kind)}>"

    def answer(self, value: object) -> str:
        """The short form by which answers are counted."""
        if value is None or value is True or value is False:
            return str(value)
        kind = type(value)
        if kind is self._tensor_class or kind is self._parameter_class:
            return self._dtype(value.dtype)  # type: ignore[attr-defined]
        answer = f"<{class_name(kind)}>"
        if type(kind) is type and len(self.answers) < MOST_REMEMBERED:
            self.answers[kind] = answer
        return answer

    def _items(self, values: "list[object]", *, text: bool, depth: int) -> Any:
        if depth >= MOST_DEPTH:
            return f"<{class_name(type(values))}>"
        found = [self.value(one, text=text, depth=depth + 1) for one in values[:MOST_ITEMS]]
        if len(values) > MOST_ITEMS:
            found.append(f"<{len(values) - MOST_ITEMS} more>")
        return found

    def shape(self, value: object) -> "tuple[int, ...]":
        """Of a tensor, or of the first of a tuple's; empty for anything else."""
        if type(value) is tuple and value:
            value = value[0]
        kind = type(value)
        if kind is self._tensor_class or kind is self._parameter_class:
            return value.shape  # type: ignore[attr-defined, no-any-return]
        return ()

    def _tensor(self, tensor: Any) -> str:
        key = (tensor.dtype, tensor.shape)
        told = self._told.get(key)
        if told is None:
            sizes = [str(size) if type(size) is int else "?" for size in key[1]]
            told = f"{self._dtype(key[0])}[{', '.join(sizes)}]"
            if len(self._told) >= MOST_REMEMBERED:
                self._told.clear()
            self._told[key] = told
        return told

    def _dtype(self, dtype: Any) -> str:
        name = self._dtypes.get(dtype)
        if name is None:
            name = self._dtypes[dtype] = str(dtype).rpartition(".")[2][:LONGEST_NAME]
        return name


def _no_torch() -> bool:
    return False


def class_name(kind: type) -> str:
    """Name of a class, whatever its metaclass says."""
    name = _class_name(kind)
    return name[:LONGEST_NAME] if name.isprintable() else "?"
