"""Tensors of the real shapes without contents (torch's meta device), and a watch over what is done with them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from sparkdiag.executing.inside.stubs import MARK, Context, NotKnown, Op, Quiet

# fmt: off
COMPUTES = frozenset((
    "matmul", "__matmul__", "__rmatmul__", "mm", "bmm", "addmm", "baddbmm", "einsum", "dot", "mv", "linear",
    "tensordot", "_scaled_mm", "scaled_dot_product_attention", "conv1d", "conv2d",
))
"""Called outside any of the scenario's kernels, these make their function one."""
WORKS = COMPUTES | frozenset((
    "empty", "zeros", "full", "ones", "arange", "empty_like", "zeros_like", "full_like", "fill_", "zero_", "copy_",
    "to", "float", "half", "contiguous", "item", "tolist", "topk", "gather", "clamp", "masked_fill", "masked_fill_",
    "mul_", "add_", "sum", "__getitem__", "__setitem__",
))
"""Inside one of the scenario's kernels, these show that it runs."""
READS = frozenset((
    "item", "tolist", "numpy", "__bool__", "__int__", "__index__", "__float__", "__array__", "equal", "allclose",
    "nonzero",
))
"""Need contents."""
SAME = frozenset((
    "__getitem__", "contiguous", "view", "reshape", "squeeze", "unsqueeze", "flatten", "to", "int", "long", "max",
    "min",
))
"""What they give holds the same number as a tensor that holds one number only."""
# fmt: on
REAL_OPS = ("aten", "prim", "prims")
STAYS = frozenset(["cuda", "cpu", "pin_memory", "npu", "xpu"])


def warmed(torch: Any) -> None:
    """Have torch load what its meta device needs, while it may still load anything."""
    values = torch.zeros((2, 4), device="meta")
    torch.topk(torch.clamp(values - 1, min=0), 2, dim=1)
    values.masked_fill_(~torch.isfinite(values), -1)
    torch.matmul(values, values.transpose(0, 1)).sum(dim=0)


def prepared(torch: Any, context_of: Callable[[], Context]) -> Any:
    """Have torch's doors to compilers, libraries and devices closed. Returns the mode to run the dispatch under."""
    torch.compile = Door(torch.compile)
    for name in (
        "custom_op",
        "register_fake",
        "register_kernel",
        "register_autograd",
        "impl",
        "define",
        "impl_abstract",
    ):
        if hasattr(torch.library, name):
            setattr(torch.library, name, Door(getattr(torch.library, name)))
    torch.library.Library = Door(torch.library.Library)
    opaque = sys.modules.get("torch._library.opaque_object")
    for name in ("register_opaque_type", "register_custom_class"):
        if hasattr(opaque, name):
            setattr(opaque, name, Door(getattr(opaque, name)))
    torch.ops = _Ops(torch.ops, context_of)
    for name in ("synchronize", "current_stream", "stream", "Stream", "Event", "set_device", "device"):
        setattr(torch.cuda, name, Quiet())
    return _watch(torch, context_of)


def _watch(torch: Any, context_of: Callable[[], Context]) -> Any:
    makers = frozenset(torch.utils._device._device_constructors())
    tensor = torch.Tensor

    class Watch(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
        """A device of ``kind`` as far as tensors tell; no tensor with contents is ever made."""

        told: dict[Any, Any] = {}

        def become(self, kind: str | None) -> None:
            gpu = kind in ("cuda", "rocm", None)
            torch.cuda.is_available = lambda: gpu
            self.told = {
                tensor.device.__get__: torch.device("cuda:0" if gpu else kind),
                tensor.is_cuda.__get__: gpu,
                tensor.is_meta.__get__: False,
                tensor.is_xpu.__get__: kind == "xpu",
                tensor.is_cpu.__get__: kind == "cpu",
            }

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func in self.told:
                return self.told[func]
            name = getattr(func, "__name__", "")
            if name in WORKS:
                context_of().record("torch" if name in COMPUTES else "work", name)
            if name in READS:
                if hasattr(args[0], "filled") and name in ("item", "__int__", "__index__", "tolist"):
                    return _contents(args[0]) if name == "tolist" else args[0].filled
                raise NotKnown(f"a tensor's contents (.{name}())")
            if name in STAYS:
                return args[0]
            kwargs = dict(kwargs or {})
            if func in makers:
                kwargs["device"] = "meta"
                kwargs.pop("pin_memory", None)
            elif name == "to":
                args, kwargs = _without_device(torch, args, kwargs)
            elif name in ("__getitem__", "__setitem__"):
                args = (args[0], _plain_key(args[1]), *args[2:])
            try:
                made = func(*args, **kwargs)
            except (RuntimeError, NotImplementedError) as error:
                if "meta" not in str(error):
                    raise
                raise NotKnown(f"a tensor's contents (.{name}())") from error
            if name in SAME and hasattr(args[0], "filled"):
                made.filled = args[0].filled
            return made

    return Watch()


def _plain_key(key: Any) -> Any:
    """An index with numbers in place of the tensors that hold one."""
    if isinstance(key, tuple):
        return tuple(_plain_key(part) for part in key)
    return key.filled if hasattr(key, "filled") and not key.shape else key


def _contents(tensor: Any) -> Any:
    """Of a tensor that holds one number only, as ``tolist`` gives it."""
    found: Any = tensor.filled
    for size in reversed(tuple(tensor.shape)):
        found = [found] * size
    return found


def _without_device(
    torch: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of ``Tensor.to`` with its device left as it is."""
    kept = tuple(arg for arg in args[1:] if not isinstance(arg, (str, torch.device)))
    kwargs = {name: value for name, value in kwargs.items() if name != "device"}
    if not kept and not kwargs:
        return (args[0], args[0].dtype), {}
    return (args[0], *kept), kwargs


class Door:
    """``real`` for torch itself, which uses it while it loads more of itself; for a revision's code, nothing."""

    def __init__(self, real: Any) -> None:
        self.real = real

    def __call__(self, *args: Any, **more: Any) -> Any:
        if sys._getframe(1).f_code.co_filename.startswith(MARK):
            return Quiet()(*args, **more)
        return self.real(*args, **more)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def __or__(self, other: Any) -> Any:
        return self

    __ror__ = __or__


class _Ops:
    """``torch.ops``: torch's own namespaces, and recorders for every other."""

    def __init__(self, real: Any, context_of: Callable[[], Context]) -> None:
        self.real, self.context_of = real, context_of

    def __getattr__(self, name: str) -> Any:
        own = not sys._getframe(1).f_code.co_filename.startswith(MARK)
        if own or name in REAL_OPS or name.startswith("__"):
            return getattr(self.real, name)
        if name in ("load_library", "loaded_libraries"):
            return Quiet()
        return _Namespace(name, self.context_of)


class _Namespace:
    def __init__(self, name: str, context_of: Callable[[], Context]) -> None:
        self.name, self.context_of = name, context_of

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Op(self.context_of(), "op", f"torch.ops.{self.name}.{name}")
