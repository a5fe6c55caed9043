"""One revision's modules, run from their sources on demand, in place of Python's own import system for them.

A module that is imported by another is not run: the names taken from it are stand-ins, looked up when the dispatch
comes to need them. So the platform dispatch of a 17,000-file project runs from the few files it really touches. What is
outside the project stays outside: torch and the standard library are real, everything else is a stand-in.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping
from types import CodeType, ModuleType
from typing import Any

from sparkdiag.executing.inside.platforms import Platform
from sparkdiag.executing.inside.stubs import MARK, AnyKey, Context, Enough, NotKnown, Op, Opaque, Quiet, Thing, Triton

MOST_EVENTS = 400
ENOUGH_PASSES = 600
"""Of the same operation in the same place within a kernel: what it is, is known."""
REAL = frozenset(("torch", "numpy", "typing_extensions", "packaging"))
EXTENSIONS = frozenset(("_C", "_C_stable_libtorch", "_moe_C", "_rocm_C", "_flashmla_C", "cumem_allocator"))
"""Compiled modules, imported for the operators that they register."""
PLATFORM_FILES = {"cuda": "cuda", "rocm": "rocm", "xpu": "xpu", "cpu": "cpu"}
Ask = Callable[[str], str | None]


class Names(dict[str, Any]):
    """A module's globals: a stand-in that was imported becomes the thing itself when the dispatch loads it."""

    def __init__(self, world: World, start: Mapping[str, Any]) -> None:
        super().__init__(start)
        self.world = world

    def __getitem__(self, name: str) -> Any:
        value = super().__getitem__(name)
        if self.world.dispatching and type(value) is Opaque and value._find is not None:
            value = value._found()
            self[name] = value
        return value


class Module(ModuleType):
    def __init__(self, world: World, name: str, path: str) -> None:
        super().__init__(name)
        self.__dict__.update(_world=world, _path=path, _names=None, _ran=False, __path__=[], __file__=MARK + path)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_world") or name in ("__wrapped__", "__all__"):
            raise AttributeError(name)
        return self._world.attribute(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if self._names is not None:
            self._names[name] = value
        else:
            self.__dict__[name] = value


class World(Context):
    def __init__(self, order: Mapping[str, Any], *, ask: Ask, torch: Any, codes: dict[str, CodeType]) -> None:
        super().__init__()
        self.torch = torch
        self.ask = ask
        self.codes = codes
        self.package: str = order["package"]
        self.root: str = order["root"]
        self.kernels = frozenset(order["kernels"])
        self.entry: str = order["entry"]
        self.held = frozenset(order["held"])
        self.record = self.note
        self.names = {name: self.built(name, given) for name, given in order["names"].items()}
        self.modules: dict[str, Module] = {}
        self.events: list[dict[str, Any]] = []
        self.passes: dict[tuple[Any, ...], int] = {}
        self.assumed: dict[str, None] = {}
        self.platform = Platform(order.get("platform"), order.get("arch"), self.own_platform)
        self.special = self.specials()
        self.builtins = {**vars(builtins), "__import__": self.import_, "isinstance": self.isinstance}

    # --- what names hold ----------------------------------------------------------------------------------------------

    def built(self, name: str, given: Any) -> Any:
        """A value from its description: a constant as it is, else a dict with one key."""
        if not isinstance(given, dict):
            return given
        if "tensor" in given:
            dtype, shape = given["tensor"]
            made = self.torch.empty(shape, dtype=getattr(self.torch, dtype), device="meta")
            if "filled" in given:
                made.filled = given["filled"]
            return made
        if "tuple" in given:
            return tuple(self.built(name, item) for item in given["tuple"])
        if "list" in given:
            return [self.built(name, item) for item in given["list"]]
        return AnyKey(Thing(self, name)) if "by_layer" in given else Thing(self, name)

    def specials(self) -> dict[str, Any]:
        triton = Triton(self)
        there = {
            name: (lambda name=name: Thing(self, name))
            for name in ("get_forward_context", "get_dcp_group", "get_current_vllm_config", "current_workspace_manager")
        }
        return {
            **there,
            "current_platform": self.platform,
            "current_workspace_manager": lambda: Workspace(self),
            "triton": triton,
            "tl": triton,
            "tldevice": triton,
            "HAS_TRITON": self.platform._kind != "cpu",
            "logger": Quiet(),
            "init_logger": lambda *_args, **_more: Quiet(),
            "direct_register_custom_op": Quiet(),
        }

    def own_platform(self, platform: Platform, name: str) -> Any:
        """What the revision's own platform class says to ``name``, called on the stand-in."""
        kind = platform._said(name)
        for file in (PLATFORM_FILES.get(kind, kind), "interface"):
            with contextlib.suppress(ImportError):
                module = self.module(f"{self.package}.platforms.{file}")
                self.run(module)
                for value in list(module._names.values()):
                    if isinstance(value, type) and name in vars(value):
                        found = vars(value)[name]
                        function = getattr(found, "__func__", found)
                        return function.__get__(platform) if callable(function) else function
        raise NotKnown(f"current_platform.{name}")

    def isinstance(self, value: Any, kinds: Any) -> bool:
        if type(value) is Thing:
            known = (dict, list, tuple, set, str, bytes, int, float, self.torch.Tensor)
            asked = kinds if isinstance(kinds, tuple) else (kinds,)
            return not any(kind is one for kind in asked for one in known)
        if type(value) is Opaque:
            return isinstance(value._decided(), kinds)
        return isinstance(value, kinds)

    # --- importing ----------------------------------------------------------------------------------------------------

    def import_(self, name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        if level:
            package = (globals or {}).get("__package__") or self.package
            name = importlib.util.resolve_name("." * level + name, package)
        top = name.partition(".")[0]
        if top == self.package:
            if not self.dispatching and name.rpartition(".")[2] in EXTENSIONS:
                return Opaque(self, name if fromlist else top)
            module = self.module(name)
            if self.dispatching:
                self.run(module)
            return module if fromlist else self.module(top)
        if top == "importlib":
            return Importing(self)
        if top == "triton":
            return self.special["triton"]
        if top in sys.stdlib_module_names or top in REAL:
            return importlib.__import__(name, globals, locals, fromlist, level=0)
        return self.outside(top)

    def outside(self, top: str) -> Any:
        if top == "deep_gemm":
            self.assumed["DeepGEMM is installed"] = None
            return Outside(self, top)
        return Opaque(self, top)

    def module(self, name: str) -> Any:
        """The project's module, not run. Raises ``ModuleNotFoundError`` where the revision has none."""
        if name.startswith(f"{self.package}.third_party."):
            return self.outside(name.split(".")[2])
        if name in self.modules:
            return self.modules[name]
        stem = self.root + name.replace(".", "/")
        for path in (f"{stem}.py", f"{stem}/__init__.py"):
            if self.ask(path) is not None:
                break
        else:
            if name == self.package:
                path = ""  # a namespace
            else:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        module = self.modules[name] = Module(self, name, path)
        module.__dict__["__package__"] = name if path.endswith("/__init__.py") or not path else name.rpartition(".")[0]
        return module

    def inside(self, module: Module, name: str) -> Any:
        """The package's module of that name; None where it has none."""
        if module._path and not module._path.endswith("/__init__.py"):
            return None
        try:
            return self.module(f"{module.__name__}.{name}")
        except ModuleNotFoundError:
            return None

    def run(self, module: Any) -> None:
        """Run the module's code, once; what it imports stays a stand-in."""
        if not isinstance(module, Module) or module._ran or not module._path:
            return
        start = {"__name__": module.__name__, "__package__": module.__package__, "__file__": module.__file__}
        names = Names(self, {**start, "__builtins__": self.builtins, "__doc__": None, "__path__": []})
        module.__dict__.update(_names=names, _ran=True)
        before, self.dispatching = self.dispatching, False
        try:
            exec(self.code(module._path), names)  # noqa: S102 - what this process is for
        finally:
            self.dispatching = before
        for name in self.kernels & names.keys():
            names[name] = self.wrapped(name, dict.__getitem__(names, name))

    def code(self, path: str) -> CodeType:
        if path not in self.codes:
            tree = ast.parse(self.ask(path) or "", filename=MARK + path)
            held = self.held
            for node in ast.walk(tree):
                if isinstance(node, ast.FunctionDef) and node.name == self.entry and held:
                    Holding(held).visit(node)
            self.codes[path] = compile(ast.fix_missing_locations(tree), MARK + path, "exec", dont_inherit=True)
        return self.codes[path]

    def wrapped(self, name: str, function: Any) -> Any:
        if not callable(function) or type(function).__name__ != "function":
            return function

        def kernel(*args: Any, **kwargs: Any) -> Any:
            given = function(*args, **kwargs)
            if given is False:
                self.note("declined", name)
            return given

        kernel.__wrapped__ = function  # type: ignore[attr-defined]
        return kernel

    def attribute(self, module: Module, name: str) -> Any:
        if name in self.special:
            return self.special[name]
        if self.dispatching:
            self.run(module)
        if module._names is not None and name in module._names:
            return module._names[name]
        if name.startswith("__"):
            raise AttributeError(name)
        if not module._ran and not self.dispatching:
            return self.later(module, name)
        if (inner := self.inside(module, name)) is not None:
            return inner
        own = None if module._names is None else dict.get(module._names, "__getattr__")
        if own is not None:
            return own(name) if self.dispatching else self.stand_in(module, name)
        raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")

    def later(self, module: Module, name: str) -> Any:
        """A stand-in for a name of a module that has not run; the name must stand in its source."""
        if (inner := self.inside(module, name)) is not None:
            return inner
        text = (self.ask(module._path) or "") if module._path else ""
        if name not in text and "import *" not in text and "__getattr__" not in text:
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
        return self.stand_in(module, name)

    def stand_in(self, module: Module, name: str) -> Opaque:
        return Opaque(self, f"{module.__name__}.{name}", lambda: self.looked_up(module, name))

    def looked_up(self, module: Module, name: str) -> Any:
        before, self.dispatching = self.dispatching, True
        try:
            return getattr(module, name)
        finally:
            self.dispatching = before

    # --- recording ----------------------------------------------------------------------------------------------------

    def note(self, kind: str, name: str, given: Any = None) -> None:
        """Keep what ran, and in which of the revision's functions; the outermost first."""
        stack: list[str] = []
        frame: Any = sys._getframe(1)
        at, slot = None, ""
        while frame is not None:
            if frame.f_code.co_filename.startswith(MARK):
                stack.append(frame.f_code.co_name)
                if at is None:
                    at = [frame.f_code.co_filename.removeprefix(MARK), frame.f_lineno]
                    slot = _slot(frame.f_globals, given)
            frame = frame.f_back
        stack.reverse()
        if kind == "work" and not self.kernels.intersection(stack):
            return
        key = (kind, name, tuple(stack), tuple(at or ()))
        self.passes[key] = self.passes.get(key, 0) + 1
        if self.passes[key] == 1 and len(self.events) < MOST_EVENTS:
            self.events.append({"kind": kind, "name": name, "slot": slot, "stack": stack[:40], "at": at})
        if self.passes[key] > ENOUGH_PASSES and self.kernels.intersection(stack):
            raise Enough


class Importing:
    """``importlib`` as the revision sees it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.util = self

    def import_module(self, name: str, package: str | None = None) -> Any:
        name = importlib.util.resolve_name(name, package) if name.startswith(".") else name
        return self.world.import_(name, fromlist=("*",))

    def find_spec(self, name: str, _package: str | None = None) -> Any:
        top = name.partition(".")[0]
        if top in (self.world.package, "deep_gemm", "triton"):
            return Quiet()
        raise NotKnown(f"whether {top} is installed")

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib, name)


class Outside:
    """A package of kernels that is not loaded: its functions are recorded, not run."""

    def __init__(self, world: World, name: str) -> None:
        self._world, self._name = world, name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Op(self._world, "external", f"{self._name}.{name}")


class Workspace:
    """vLLM's workspace manager: buffers of the shapes that are asked for."""

    def __init__(self, world: World) -> None:
        self.world = world

    def get_simultaneous(self, *specs: Any) -> list[Any]:
        return [self.world.torch.empty(tuple(shape), dtype=dtype, device="meta") for shape, dtype in specs]

    def __getattr__(self, name: str) -> Any:
        return Opaque(self.world, f"workspace.{name}")


class Holding(ast.NodeTransformer):
    """After an assignment to a local that the configuration names, a stand-in in it becomes the named value."""

    def __init__(self, held: frozenset[str]) -> None:
        self.held = held

    def visit_Assign(self, node: ast.Assign) -> Any:
        names = [name.id for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name)]
        told = [ast.parse(f"{name} = __held__({name!r}, {name})").body[0] for name in names if name in self.held]
        for held in told:
            for part in ast.walk(held):
                ast.copy_location(part, node)
        return [node, *told]


def _slot(names: Any, given: Any) -> str:
    """The module-level name that holds what was called: ``_fp8_fp4_mqa_logits_impl``."""
    return "" if given is None else next((name for name, value in dict.items(names) if value is given), "")
