"""What a revision's kernel modules import of vLLM, where the environment has no vLLM that would serve.

Three modules are really stood in for: ``vllm.logger``, ``vllm.platforms`` and ``vllm.triton_utils``. Of any other a
name may be imported, and using it raises ``NotHere``.
"""

from __future__ import annotations

import importlib
import logging
import types
from typing import Any

import torch

TRITON_UTILS = "vllm.triton_utils"


class NotHere(Exception):
    """The revision's code needs something of vLLM that has no stand-in."""


def stand_in(name: str) -> types.ModuleType:
    """The module ``name`` of vLLM, as far as a kernel needs it."""
    module = types.ModuleType(name)
    module.__path__ = []
    if name == "vllm.logger":
        module.__dict__.update(init_logger=_logger, logger=_logger("vllm"))
    elif name == "vllm.platforms":
        module.__dict__["current_platform"] = Platform()
    elif name == TRITON_UTILS:
        import triton
        import triton.language as language

        module.__dict__.update(triton=triton, tl=language, HAS_TRITON=True, LOG2E=1.4426950408889634)
    elif name != "vllm":
        module.__dict__["__getattr__"] = lambda attribute: _missing(name, attribute)
    return module


def with_triton() -> None:
    """Give the environment's own ``vllm.triton_utils`` the Triton that is here: it leaves it out without a GPU."""
    module = importlib.import_module(TRITON_UTILS)
    module.__dict__.update({name: stand_in(TRITON_UTILS).__dict__[name] for name in ("triton", "tl", "HAS_TRITON")})


def _logger(name: str) -> Any:
    logger = logging.getLogger(f"under-test.{name}")
    for level in ("debug", "info", "warning"):
        setattr(logger, f"{level}_once", lambda *_args, **_more: None)
    return logger


def _missing(module: str, attribute: str) -> Any:
    if attribute.startswith("__") and attribute.endswith("__"):
        raise AttributeError(attribute)
    return Missing(f"{module}.{attribute}")


class Missing:
    """A name that was imported and is not there."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and isinstance(args[0], (types.FunctionType, type)):
            return args[0]  # a decorator
        raise NotHere(f"the revision's code calls {self._name}, which this environment does not have")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Missing(f"{self._name}.{name}")

    def __bool__(self) -> bool:
        raise NotHere(f"the revision's code asks {self._name}, which this environment does not have")


class Platform:
    """``current_platform``, of the device that torch sees."""

    def is_cuda(self) -> bool:
        return torch.cuda.is_available() and torch.version.hip is None

    def is_rocm(self) -> bool:
        return torch.cuda.is_available() and torch.version.hip is not None

    def is_cuda_alike(self) -> bool:
        return torch.cuda.is_available()

    def is_cpu(self) -> bool:
        return not torch.cuda.is_available()

    def is_xpu(self) -> bool:
        return False

    def get_device_capability(self, device_id: int = 0) -> Any:
        return torch.cuda.get_device_capability(device_id) if torch.cuda.is_available() else None

    def is_device_capability(self, capability: Any, device_id: int = 0) -> bool:
        wanted = capability if isinstance(capability, tuple) else divmod(capability, 10)
        return self.get_device_capability(device_id) == tuple(wanted)

    def has_device_capability(self, capability: Any, device_id: int = 0) -> bool:
        wanted = capability if isinstance(capability, tuple) else divmod(capability, 10)
        had = self.get_device_capability(device_id)
        return had is not None and tuple(had) >= tuple(wanted)

    def is_device_capability_family(self, capability: int, device_id: int = 0) -> bool:
        had = self.get_device_capability(device_id)
        return had is not None and had[0] == capability // 10

    def fp8_dtype(self) -> Any:
        return torch.float8_e4m3fn

    def __getattr__(self, name: str) -> Any:
        return _missing("vllm.platforms.current_platform", name)
