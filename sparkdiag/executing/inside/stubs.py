"""Stand-ins for what a revision's dispatch touches and does not need: permissive, until a decision asks for truth.

Deciding on a stand-in ends the call with ``NotKnown``: the twin never invents the branch that real hardware, a real
server or real contents would take.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

MARK = "revision:"
"""What the file name of the revision's code begins with, in frames and tracebacks."""


class NotKnown(BaseException):
    """A decision hangs on something that is not there. No ``Exception``: the revision's code would swallow that."""


class Enough(BaseException):
    """A kernel runs, and goes on for thousands of passes over nothing: what it reaches is known."""


class Context:
    """What stand-ins ask of the world they live in."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {}
        self.dispatching = False
        """False while a module is imported: nothing is looked up then that nobody asked for."""
        self.record: Callable[..., None] = lambda *_args, **_more: None


class Opaque:
    """Something that is not known, by the words that lead to it; with ``find`` it can be looked up when it matters."""

    def __init__(self, context: Context, words: str, find: Callable[[], Any] | None = None) -> None:
        self.__dict__.update(_context=context, _words=words, _find=find)

    def _found(self) -> Any:
        if self._find is None:
            raise NotKnown(self._words)
        found = self._find()
        if isinstance(found, Opaque) and found is not self:
            return found._found() if found._find is not None else found
        return found

    def _then(self, words: str, step: Callable[[Any], Any]) -> Any:
        if self._find is None:
            return Opaque(self._context, words)
        if self._context.dispatching:
            return step(self._found())
        return Opaque(self._context, words, lambda: step(self._found()))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        if self._find is None and name in self._context.names:
            return self._context.names[name]
        return self._then(f"{self._words}.{name}", lambda found: getattr(found, name))

    def __setattr__(self, name: str, value: Any) -> None:
        self.__dict__[name] = value

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self._context.dispatching and len(args) == 1 and not kwargs and _defined(args[0]):
            return args[0]  # a decorator
        if self._find is None and self._context.dispatching and "()" not in self._words and _holds_tensor(args):
            self._context.record("external", self._words)
        return self._then(f"{self._words}()", lambda found: found(*args, **kwargs))

    def __getitem__(self, key: Any) -> Any:
        return self._then(f"{self._words}[...]", lambda found: found[key])

    def __setitem__(self, key: Any, value: Any) -> None:
        return None

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        return ()

    def __instancecheck__(self, instance: Any) -> bool:
        if isinstance(instance, Thing):
            return True
        return isinstance(instance, self._found())

    def __bool__(self) -> bool:
        return bool(self._decided())

    def __len__(self) -> int:
        return len(self._decided())

    def __int__(self) -> int:
        return int(self._decided())

    def __index__(self) -> int:
        return operator.index(self._decided())

    def __float__(self) -> float:
        return float(self._decided())

    def __iter__(self) -> Iterator[Any]:
        return iter(self._decided())

    def __contains__(self, item: Any) -> bool:
        return item in self._decided()

    def __hash__(self) -> int:
        return id(self)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_error: object) -> None:
        return None

    def _decided(self) -> Any:
        context, before = self._context, self._context.dispatching
        context.dispatching = True
        try:
            found = self._found()
        finally:
            context.dispatching = before
        if isinstance(found, Opaque):
            raise NotKnown(found._words)
        return found


def _operation(name: str) -> Callable[..., Any]:
    plain = getattr(operator, name)

    def apply(self: Opaque, *others: Any) -> Any:
        return self._then(f"{self._words} {name} ...", lambda found: plain(found, *others))

    return apply


def _reflected(name: str) -> Callable[..., Any]:
    plain = getattr(operator, name)

    def apply(self: Opaque, other: Any) -> Any:
        return self._then(f"... {name} {self._words}", lambda found: plain(other, found))

    return apply


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift", "matmul"):
    setattr(Opaque, f"__{_name}__", _operation(_name))
    setattr(Opaque, f"__r{_name}__", _reflected(_name))
for _name in ("and_", "or_", "xor"):
    setattr(Opaque, f"__{_name.rstrip('_')}__", _operation(_name))
    setattr(Opaque, f"__r{_name.rstrip('_')}__", _reflected(_name))
for _name in ("eq", "ne", "lt", "le", "gt", "ge", "neg", "abs", "invert"):
    setattr(Opaque, f"__{_name}__", _operation(_name))


class Thing(Opaque):
    """An object that is there, such as the attention metadata; of what it holds, the named values are known."""

    def __bool__(self) -> bool:
        return True


class AnyKey(dict[Any, Any]):
    """Per-layer metadata: every layer's is the same."""

    def __init__(self, value: Any) -> None:
        super().__init__({"layer": value})
        self._value = value

    def __getitem__(self, key: Any) -> Any:
        return self._value

    def __contains__(self, key: Any) -> bool:
        return True

    def get(self, _key: Any, _default: Any = None) -> Any:
        return self._value


class Quiet:
    """A logger, a registry, a stream: takes everything, says nothing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *args: Any, **_more: Any) -> Any:
        return args[0] if len(args) == 1 and _defined(args[0]) else self

    def __or__(self, other: Any) -> Any:
        return self

    __ror__ = __or__

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_error: object) -> None:
        return None


def _holds_tensor(values: Any) -> bool:
    return any(
        _holds_tensor(value) if isinstance(value, (tuple, list)) else type(value).__name__ == "Tensor"
        for value in values
    )


def _defined(value: Any) -> bool:
    """Whether it is what a decorator gets: a function or a class."""
    return isinstance(value, (type, staticmethod, classmethod)) or type(value).__name__ in (
        "function",
        "Kernel",
        "_lru_cache_wrapper",
    )


class Kernel:
    """A Triton kernel: launching it is recorded."""

    def __init__(self, context: Context, function: Any) -> None:
        self.context = context
        self.fn = function
        self.__name__ = getattr(function, "__name__", "kernel")

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        return self.run

    def run(self, *_args: Any, **_more: Any) -> None:
        self.context.record("triton", self.__name__)

    __call__ = warmup = run


class Triton:
    """``triton`` and ``triton.language``: decorators make kernels, host-side helpers calculate."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def jit(self, function: Any = None, **_more: Any) -> Any:
        if function is None:
            return lambda wrapped: Kernel(self._context, wrapped)
        return Kernel(self._context, function)

    def autotune(self, *_args: Any, **_more: Any) -> Any:
        return lambda kernel: kernel

    heuristics = autotune

    @staticmethod
    def cdiv(dividend: Any, divisor: Any) -> Any:
        return -(-dividend // divisor)

    @staticmethod
    def next_power_of_2(number: int) -> int:
        return 1 << (int(number) - 1).bit_length() if number > 0 else 1

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Opaque(self._context, f"triton.{name}")


class Op:
    """An operator of ``torch.ops``, or a function of a package that is not loaded: calling it is recorded."""

    def __init__(self, context: Context, kind: str, name: str) -> None:
        self.context, self.kind, self.name = context, kind, name

    def __call__(self, *_args: Any, **_more: Any) -> Any:
        self.context.record(self.kind, self.name, given=self)
        return Opaque(self.context, f"{self.name}()")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        if name == "default":
            return self
        return Op(self.context, self.kind, f"{self.name}.{name}")
