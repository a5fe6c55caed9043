"""What vLLM's platform says of itself: what guards ask it for. Asked in the probe's thread, after the first call."""

import contextlib
import sys
from typing import Any

LONGEST_TEXT = 100


def platform_facts() -> "dict[str, Any]":
    """Each question that has an answer; nothing is imported, and no device is initialised, for any."""
    module = sys.modules.get("vllm.platforms")
    names = vars(module) if module is not None else {}
    # Not by getattr: the module makes its platform when it is first asked for it.
    platform = names.get("_current_platform") or names.get("current_platform")
    if platform is None:
        return {}
    found: dict[str, Any] = {}
    for name in ("is_cuda", "is_rocm", "is_xpu", "is_cpu"):
        with contextlib.suppress(Exception):
            answer = getattr(platform, name)()
            if type(answer) is bool:
                found[name] = answer
    if found.get("is_cpu") or _device_is_up():
        with contextlib.suppress(Exception):
            capability = platform.get_device_capability()
            if capability is not None:
                found["capability"] = f"{int(capability[0])}.{int(capability[1])}"
        with contextlib.suppress(Exception):
            name = platform.get_device_name()
            if type(name) is str:
                found["device"] = name[:LONGEST_TEXT]
    return found


def _device_is_up() -> bool:
    for name in ("torch.cuda", "torch.xpu"):
        module = sys.modules.get(name)
        if module is not None and vars(module).get("_initialized") is True:
            return True
    return False
