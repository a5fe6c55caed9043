"""The truth about a small tree: it is run, over stubs for torch and the platform, and says which kernels it ran.

Only for programs that this project wrote or generated. Everything is undone afterwards: ``sys.modules`` and the import
system are as they were.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from types import CodeType, ModuleType
from typing import Any

Observed = dict[tuple[str, int, str], set[bool]]
"""What a guard's expression was, by path, line and normalised source."""


@dataclass
class Outcome:
    """What one run of a program did."""

    kernels: list[str] = field(default_factory=list)
    """In the order in which they ran."""
    raised: str | None = None
    guards: Observed = field(default_factory=dict)


@dataclass(frozen=True)
class Device:
    """The platform that a program runs on; ``capability`` None: it has none (xpu, cpu)."""

    kind: str = "cuda"
    capability: tuple[int, int] | None = (12, 1)


class StubTensor:
    """A tensor's shape and type, and an operator that counts as a kernel of the function that uses it."""

    def __init__(self, record: Callable[[str], None], shape: Sequence[int] = (8, 4, 2), itemsize: int = 1) -> None:
        self._record = record
        self.shape = tuple(shape)
        self.dtype = StubType(itemsize)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def dim(self) -> int:
        return len(self.shape)

    def size(self, axis: int) -> int:
        return self.shape[axis]

    def numel(self) -> int:
        count = 1
        for length in self.shape:
            count *= length
        return count

    def __matmul__(self, other: object) -> StubTensor:
        self._record(sys._getframe(1).f_code.co_name)
        return self

    def __getitem__(self, key: object) -> StubTensor:
        return self

    def __getattr__(self, name: str) -> Callable[..., StubTensor]:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._itself

    def _itself(self, *args: object, **kwargs: object) -> StubTensor:
        return self


@dataclass(frozen=True)
class StubType:
    itemsize: int


class StubPlatform:
    """The methods of vLLM's platform object that guards ask."""

    def __init__(self, device: Device) -> None:
        self._device = device

    def is_cuda(self) -> bool:
        return self._device.kind == "cuda"

    def is_rocm(self) -> bool:
        return self._device.kind == "rocm"

    def is_xpu(self) -> bool:
        return self._device.kind == "xpu"

    def is_cpu(self) -> bool:
        return self._device.kind == "cpu"

    def is_cuda_alike(self) -> bool:
        return self._device.kind in ("cuda", "rocm")

    def get_device_capability(self, device_id: int = 0) -> tuple[int, int] | None:
        return self._device.capability

    def is_device_capability(self, wanted: int | tuple[int, int]) -> bool:
        found = self._device.capability
        return found is not None and found == _pair(wanted)

    def has_device_capability(self, wanted: int | tuple[int, int]) -> bool:
        found = self._device.capability
        return found is not None and found >= _pair(wanted)

    def is_device_capability_family(self, wanted: int) -> bool:
        found = self._device.capability
        return found is not None and found[0] == wanted // 10


def _pair(wanted: int | tuple[int, int]) -> tuple[int, int]:
    return wanted if isinstance(wanted, tuple) else divmod(wanted, 10)


class _Op:
    """``torch.matmul``, ``torch.ops.a.b``: a call counts as a kernel of the function that makes it."""

    def __init__(self, record: Callable[[str], None]) -> None:
        self._record = record

    def __getattr__(self, name: str) -> _Op:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *args: object, **kwargs: object) -> StubTensor:
        self._record(sys._getframe(1).f_code.co_name)
        return StubTensor(self._record)


class _Marked(ast.NodeTransformer):
    """Reports every expression in a place where it decides."""

    def __init__(self, path: str) -> None:
        self.path = path

    def visit_If(self, node: ast.If) -> ast.AST:
        return self._tested(node)

    def visit_While(self, node: ast.While) -> ast.AST:
        return self._tested(node)

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        return self._tested(node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        return self._tested(node)

    def _tested(self, node: ast.If | ast.While | ast.Assert | ast.IfExp) -> ast.AST:
        test = self._parts(node.test)
        node.test = ast.Constant(True)
        self.generic_visit(node)
        node.test = test
        return node

    def _parts(self, node: ast.expr) -> ast.expr:
        place = ast.Tuple(
            elts=[ast.Constant(self.path), ast.Constant(node.lineno), ast.Constant(ast.unparse(node))], ctx=ast.Load()
        )
        inner: ast.expr
        if isinstance(node, ast.BoolOp):
            inner = ast.copy_location(ast.BoolOp(node.op, [self._parts(value) for value in node.values]), node)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = ast.copy_location(ast.UnaryOp(node.op, self._parts(node.operand)), node)
        else:
            inner = self.visit(node)
        return ast.copy_location(
            ast.Call(func=ast.Name("__guard__", ast.Load()), args=[place, inner], keywords=[]), node
        )

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        return ast.copy_location(ast.BoolOp(node.op, [self._parts(value) for value in node.values]), node)


@lru_cache(maxsize=256)
def _compiled(path: str, text: str) -> CodeType:
    return compile(ast.fix_missing_locations(_Marked(path).visit(ast.parse(text))), path, "exec")


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports from texts, and stubs for what they import from outside."""

    def __init__(self, files: Mapping[str, str], kernels: Sequence[str], device: Device, outcome: Outcome) -> None:
        self.files, self.kernels, self.device, self.outcome = files, frozenset(kernels), device, outcome
        self.roots = {path.split("/")[0].removesuffix(".py") for path in files} | {"torch", "vllm"}

    def find_spec(self, name: str, path: object = None, target: object = None) -> importlib.machinery.ModuleSpec | None:
        if name.split(".")[0] not in self.roots:
            return None
        if name in ("torch", "vllm.platforms"):
            return importlib.machinery.ModuleSpec(name, self, origin="stub", is_package=True)
        base = name.replace(".", "/")
        for file, package in ((f"{base}/__init__.py", True), (f"{base}.py", False)):
            if file in self.files:
                return importlib.machinery.ModuleSpec(name, self, origin=file, is_package=package)
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        origin = module.__spec__.origin if module.__spec__ else None
        if origin == "stub":
            self._stub(module)
            return
        assert origin is not None
        module.__dict__["__guard__"] = self._guard
        exec(_compiled(origin, self.files[origin]), module.__dict__)
        for name in self.kernels & set(vars(module)):
            if getattr(vars(module)[name], "__module__", None) == module.__name__:
                setattr(module, name, self._recorded(name))

    def record(self, name: str) -> None:
        self.outcome.kernels.append(name)

    def _recorded(self, name: str) -> Callable[..., StubTensor]:
        def kernel(*args: object, **kwargs: object) -> StubTensor:
            self.record(name)
            return StubTensor(self.record)

        return kernel

    def _guard(self, place: tuple[str, int, str], value: object) -> object:
        self.outcome.guards.setdefault(place, set()).add(bool(value))
        return value

    def _stub(self, module: ModuleType) -> None:
        if module.__name__ == "vllm.platforms":
            module.__dict__["current_platform"] = StubPlatform(self.device)
            return
        if module.__name__ == "torch":
            module.__dict__["float32"] = StubType(4)
            module.__dict__["uint8"] = StubType(1)
            module.__dict__["Tensor"] = StubTensor
            for name in ("empty", "zeros", "full", "arange"):
                module.__dict__[name] = self._allocated
            module.__dict__["__getattr__"] = lambda name: _Op(self.record)

    def _allocated(self, *args: object, **kwargs: object) -> StubTensor:
        return StubTensor(self.record)


@contextmanager
def imported(
    files: Mapping[str, str], *, kernels: Sequence[str], device: Device, outcome: Outcome
) -> Iterator[Callable[[str], ModuleType]]:
    """``import_module`` over ``files`` for as long as the block lasts."""
    finder = _Finder(files, kernels, device, outcome)

    def mine(name: str) -> bool:
        return name.split(".")[0] in finder.roots

    kept = {name: sys.modules.pop(name) for name in tuple(sys.modules) if mine(name)}
    sys.meta_path.insert(0, finder)
    try:
        yield importlib.import_module
    finally:
        sys.meta_path.remove(finder)
        for name in tuple(sys.modules):
            if mine(name):
                del sys.modules[name]
        sys.modules.update(kept)


@dataclass(frozen=True)
class _Shape:
    record: Callable[[str], None]
    itemsize: int

    def __getitem__(self, shape: int | tuple[int, ...]) -> StubTensor:
        return StubTensor(self.record, shape if isinstance(shape, tuple) else (shape,), self.itemsize)


def value_of(text: str, record: Callable[[str], None]) -> object:
    """A scenario's value as an object: ``True``, ``512``, ``fp8[8, 4, 2]``, ``(fp8[8, 4, 2], None)``."""

    class Shaped(dict[str, Any]):
        def __missing__(self, name: str) -> _Shape:
            itemsize = {"fp8": 1, "uint8": 1, "fp32": 4}[name]
            return _Shape(record, itemsize)

    return eval(text, {"__builtins__": builtins}, Shaped())


def run_tree(
    files: Mapping[str, str],
    arguments: Mapping[str, str],
    *,
    kernels: Sequence[str] = ("fast", "slow", "other"),
    entry: tuple[str, str] = ("vllm.dispatch", "entry"),
    device: Device = Device(),
    attributes: Mapping[tuple[str, str], object] | None = None,
) -> Outcome:
    """Run ``entry`` with ``arguments``; ``attributes`` (module, name) are set before, as other code would have."""
    outcome = Outcome()
    with imported(files, kernels=kernels, device=device, outcome=outcome) as load:
        function = getattr(load(entry[0]), entry[1])
        record = outcome.kernels.append
        for (module, name), value in (attributes or {}).items():
            setattr(load(module), name, value)
        outcome.guards.clear()
        outcome.kernels.clear()
        try:
            function(**{name: value_of(text, record) for name, text in arguments.items()})
        except Exception as error:
            outcome.raised = type(error).__name__
    return outcome
