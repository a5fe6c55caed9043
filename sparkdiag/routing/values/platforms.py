"""What vLLM's ``current_platform`` answers for a platform and a capability, by the meaning of its methods.

Not by its source: the questions have kept their meaning while the classes behind them moved
(vllm/platforms/interface.py, ``is_device_capability_family``: the capability divided by ten).
"""

import re

from sparkdiag.errors import UsageError
from sparkdiag.evidence.route import RouteConfig
from sparkdiag.routing.values.domain import AnyValue, External, Items, Known, Unknown, symbol_of
from sparkdiag.routing.values.sizes import as_span

_ARCH = re.compile(r"sm_?([0-9]{2,3})[af]?")
_KINDS = {"is_cuda": "cuda", "is_rocm": "rocm", "is_xpu": "xpu", "is_cpu": "cpu"}


def capability_of(arch: str) -> tuple[int, int]:
    """``sm121`` → (12, 1). Raises ``UsageError`` for anything else."""
    found = _ARCH.fullmatch(arch.lower())
    if found is None:
        raise UsageError(f"no CUDA architecture: {arch}", remedy="sparkdiag route --arch sm121")
    number = int(found[1])
    return number // 10, number % 10


def asked(config: RouteConfig, method: str, arguments: tuple[AnyValue, ...]) -> AnyValue:
    """The answer of ``current_platform.METHOD(*arguments)``; unknown, by the question's symbol, where we cannot say."""
    question = f"current_platform.{method}({', '.join(symbol_of(argument) for argument in arguments)})"
    if method in _KINDS or method == "is_cuda_alike":
        return _kind(config, method, question)
    if method == "fp8_dtype" and config.platform == "cuda":
        return External("torch.float8_e4m3fn", "--platform cuda")
    if config.platform in ("cpu", "xpu") and "device_capability" in method and arguments:
        return Known(False, f"--platform {config.platform}")  # they have none
    if config.arch is None or config.platform not in ("cuda", None):
        return Unknown(question, "the architecture is not given (--arch)", tensor=False)
    return _capability(config, method, arguments, question)


def _kind(config: RouteConfig, method: str, question: str) -> AnyValue:
    if config.platform is None:
        return Unknown(question, "the platform is not given (--platform)", tensor=False)
    kinds = ("cuda", "rocm") if method == "is_cuda_alike" else (_KINDS[method],)
    return Known(config.platform in kinds, f"--platform {config.platform}")


def _capability(config: RouteConfig, method: str, arguments: tuple[AnyValue, ...], question: str) -> AnyValue:
    major, minor = capability_of(str(config.arch))
    because = f"--arch {config.arch}"
    if method == "get_device_capability":
        return Items((Known(major, because), Known(minor, because)), "capability", because)
    asked_for = _number(arguments[0]) if arguments else None
    own = major * 10 + minor
    match method:
        case "is_device_capability" if asked_for is not None:
            return Known(own == asked_for, because)
        case "has_device_capability" if asked_for is not None:
            return Known(own >= asked_for, because)
        case "is_device_capability_family" if asked_for is not None:
            return Known(own // 10 == asked_for // 10, because)
        case _:
            return Unknown(question, f"what current_platform.{method} answers is not known", tensor=False)


def _number(value: AnyValue) -> int | None:
    """A capability as vLLM takes it: 121, or (12, 1)."""
    if isinstance(value, Known) and isinstance(value.value, int):
        return value.value
    if isinstance(value, Items) and len(value.items) == 2:
        parts = [as_span(item) for item in value.items]
        if all(part is not None and part.low == part.high for part in parts):
            return parts[0].low * 10 + parts[1].low  # type: ignore[union-attr]
    return None
