"""Find the watched functions wherever they are defined today, and put the stand-ins into them."""

import sys
from types import FunctionType, ModuleType
from typing import Any

from . import refusing, trampoline
from .calls import Recorded, Recorder
from .summaries import class_name

MOST_REFUSED = 100
_module_dict = type.__dict__["__dict__"].__get__(ModuleType)["__dict__"].__get__


class Wrapper:
    """By bare name, in every module of the packages and in the classes that such a module defines."""

    def __init__(self, recorder: Recorder, *, roles: "dict[str, str]", packages: "frozenset[str]") -> None:
        self.recorder = recorder
        self.roles = roles
        self.packages = packages
        self.wrapped: list[tuple[Recorded, int]] = []
        self.refused: dict[tuple[str, str], str] = {}
        self._stand_ins: set[Any] = set()
        self._waiting_for_torch: list[tuple[dict[str, Any], str]] = []
        self._classes_seen: set[str] = set()

    def scan(self) -> None:
        """Look through what is imported so far."""
        for name in list(sys.modules):
            if name.partition(".")[0] in self.packages:
                self.look(sys.modules.get(name))
        self._torch_is_there()

    def look(self, module: object) -> None:
        """Look through one module; more than once does no harm."""
        names = namespace(module)
        if names is None:
            return
        title = names.get("__name__")
        where = title if type(title) is str else "?"
        for name, role in self.roles.items():
            if name in names:
                self._one(name, role, names[name], where)
        if where not in self._classes_seen:
            self._look_into_classes(names, where)

    def done(self, module: object) -> None:
        """A module has just been executed."""
        names = namespace(module) or {}
        self._classes_seen.discard(names.get("__name__", ""))
        self.look(module)
        self._torch_is_there()

    def never_found(self) -> "list[str]":
        """Names that no module had so far."""
        found = {recorded.name for recorded, _ in self.wrapped} | {name for name, _ in self.refused}
        return [name for name in self.roles if name not in found]

    def _look_into_classes(self, names: "dict[str, Any]", where: str) -> None:
        self._classes_seen.add(where)
        for value in list(names.values()):
            if not issubclass(type(value), type):
                continue
            own = type.__dict__["__dict__"].__get__(value)
            if own.get("__module__") == where:
                for name in self.roles.keys() & own.keys():
                    self._one(name, self.roles[name], own[name], where)

    def _one(self, name: str, role: str, value: object, where: str) -> None:
        function = _underlying(value)
        if function is None:
            if not issubclass(type(value), ModuleType):
                self._refuse(name, where, _what(value))
        elif function.__code__ not in self._stand_ins:
            why = trampoline.why_not(function)
            if why is None:
                try:
                    self._swap(name, role, function, where)
                except Exception as error:
                    why = f"no stand-in could be made: {class_name(type(error))}"
            if why is not None:
                self._refuse(name, where, why)

    def _refuse(self, name: str, where: str, why: str) -> None:
        if len(self.refused) < MOST_REFUSED:
            self.refused.setdefault((name, where), why)

    def _swap(self, name: str, role: str, function: FunctionType, where: str) -> None:
        original, code = trampoline.clone(function), function.__code__
        module = function.__module__ if type(function.__module__) is str else where
        number = len(self.recorder.functions)
        new = trampoline.stand_in(code, number)
        recorded = Recorded(
            self.recorder,
            name=name,
            module=module,
            role=role,
            parameters=trampoline.parameters(code),
            stars=trampoline.stars(code),
            inner_names=_inner_names(function),
        )
        asks = _asks_torch()
        compiling = f"{refusing.PREFIX}compiling{number}"
        function.__globals__.update(
            {
                compiling: asks or _never,
                f"{refusing.PREFIX}original{number}": original,
                f"{refusing.PREFIX}begin{number}": recorded.begin,
                f"{refusing.PREFIX}returned{number}": recorded.returned,
                f"{refusing.PREFIX}raised{number}": recorded.raised,
                f"{refusing.PREFIX}exception{number}": Exception,
            }
        )
        if asks is None:
            self._waiting_for_torch.append((function.__globals__, compiling))
        self._stand_ins.add(new)
        function.__code__ = new
        self.wrapped.append((recorded, code.co_firstlineno))

    def _torch_is_there(self) -> None:
        self.recorder.summaries.learn_torch()
        if self._waiting_for_torch and (asks := _asks_torch()) is not None:
            for names, name in self._waiting_for_torch:
                names[name] = asks
            self._waiting_for_torch.clear()


def namespace(module: object) -> "dict[str, Any] | None":
    """A module's own dict, without asking the module."""
    if not issubclass(type(module), ModuleType):
        return None
    found = _module_dict(module)
    return found if type(found) is dict else None


def _never() -> bool:
    """While there is no torch, nothing is compiled."""
    return False


def _asks_torch() -> Any:
    """``torch.compiler.is_compiling``: dynamo knows it for True while it traces."""
    found = namespace(sys.modules.get("torch.compiler"))
    return found.get("is_compiling") if found else None


def _underlying(value: object) -> "FunctionType | None":
    """The Python function that runs when ``value`` is called, where nothing but that happens."""
    kind = type(value)
    if kind is FunctionType:
        return value  # type: ignore[return-value]
    if kind is staticmethod or kind is classmethod:
        return _underlying(value.__func__)  # type: ignore[attr-defined]
    if kind.__name__ == "CustomOpDef" and kind.__module__ == "torch._library.custom_ops":
        return _underlying(vars(value).get("_init_fn"))
    return None


def _inner_names(function: FunctionType) -> "tuple[str, ...]":
    """Positional parameters of the function this one wraps, by ``functools.wraps``; its own where there is none."""
    *_, innermost = refusing.chain(function)
    code = innermost.__code__
    return code.co_varnames[: code.co_argcount]


def _what(value: object) -> str:
    """Why a value that is no Python function is not recorded."""
    kind = type(value)
    name = class_name(kind)
    if name == "_lru_cache_wrapper":
        return "functools.lru_cache: it answers from its cache"
    if issubclass(kind, type):
        return "a class"
    if value is None:
        return "None"
    return f"no Python function but {name}"
