"""The CUDA device, as far as the server has initialised it; never by us."""

import sys
from typing import Any


def capturing() -> bool:
    """Whether the current stream records a CUDA graph."""
    try:
        cuda = _cuda()
        return cuda is not None and bool(cuda["is_current_stream_capturing"]())
    except Exception:
        return False


def synchronized() -> bool:
    """Wait for the device. False where there is none, or where that may not be done now."""
    try:
        cuda = _cuda()
        if cuda is None or cuda["is_current_stream_capturing"]():
            return False
        cuda["synchronize"]()
    except Exception:
        return False
    return True


def _cuda() -> "dict[str, Any] | None":
    module = sys.modules.get("torch.cuda")
    names = vars(module) if module is not None else {}
    return names if names.get("_initialized") is True else None
