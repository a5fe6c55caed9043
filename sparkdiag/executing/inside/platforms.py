"""``current_platform`` of the configuration that is asked about, in place of the machine's own."""

# The parameters are vLLM's, whether they matter here or not:
# ruff: noqa: ARG002

from __future__ import annotations

from collections.abc import Callable
from functools import total_ordering
from typing import Any

from sparkdiag.executing.inside.stubs import NotKnown

KINDS = ("cuda", "rocm", "xpu", "cpu", "tpu", "hpu", "neuron", "out_of_tree", "unspecified")
DISPATCH_KEYS = {"cuda": "CUDA", "rocm": "CUDA", "xpu": "XPU", "cpu": "CPU"}


@total_ordering
class Capability:
    """As vLLM's ``DeviceCapability``: a tuple of two with the same helpers."""

    def __init__(self, major: int, minor: int) -> None:
        self.major, self.minor = major, minor

    def to_int(self) -> int:
        return self.major * 10 + self.minor

    def as_version_str(self) -> str:
        return f"{self.major}.{self.minor}"

    def __iter__(self) -> Any:
        return iter((self.major, self.minor))

    def __getitem__(self, index: int) -> int:
        return (self.major, self.minor)[index]

    def __eq__(self, other: object) -> bool:
        return tuple(self) == _pair(other)

    def __lt__(self, other: object) -> bool:
        return tuple(self) < _pair(other)

    def __hash__(self) -> int:
        return hash(tuple(self))


class Platform:
    """Answers from the configuration; what it does not know, the revision's own platform class may."""

    def __init__(self, kind: str | None, arch: str | None, own: Callable[[Any, str], Any]) -> None:
        self._kind = kind
        self._capability = capability_of(arch) if kind in ("cuda", None) else None
        self._arch_said = arch is not None or kind not in ("cuda", None)
        self._own = own

    def get_device_capability(self, device_id: int = 0) -> Capability | None:
        if not self._arch_said:
            raise NotKnown("the device's capability (--arch was not given)")
        return self._capability

    def is_device_capability(self, capability: Any, device_id: int = 0) -> bool:
        found = self.get_device_capability()
        return found is not None and _matches(found, capability)

    def has_device_capability(self, capability: Any, device_id: int = 0) -> bool:
        found = self.get_device_capability()
        if found is None:
            return False
        return found.to_int() >= capability if isinstance(capability, int) else found >= capability

    def is_device_capability_family(self, capability: int, device_id: int = 0) -> bool:
        found = self.get_device_capability()
        return found is not None and found.to_int() // 10 == capability // 10

    def is_cuda_alike(self) -> bool:
        return self._said("is_cuda_alike") in ("cuda", "rocm")

    def _said(self, what: str) -> str:
        if self._kind is None:
            raise NotKnown(f"current_platform.{what}() (--platform was not given)")
        return self._kind

    def __getattr__(self, name: str) -> Any:
        if name.startswith("is_") and name[3:] in KINDS:
            return lambda: self._said(name) == name[3:]
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "dispatch_key":
            return DISPATCH_KEYS.get(self._said(name), "CPU")
        if name == "device_type":
            return "cuda" if self._said(name) == "rocm" else self._said(name)
        return self._own(self, name)


def capability_of(arch: str | None) -> Capability | None:
    """``sm121`` → 12.1; None where there is none."""
    digits = (arch or "").lower().removeprefix("sm").rstrip("af").replace("_", "")
    return Capability(int(digits[:-1]), int(digits[-1])) if len(digits) > 1 and digits.isdigit() else None


def _matches(found: Capability, wanted: Any) -> bool:
    return found.to_int() == wanted if isinstance(wanted, int) else found == wanted


def _pair(value: Any) -> tuple[int, ...]:
    return (value // 10, value % 10) if isinstance(value, int) else tuple(value)
