"""The confined child: ``python -I -S main.py FD PARENT``. Standard input: one JSON line, then answers to what it asks.

Standard library, and torch of the interpreter under test. On FD go JSON lines, each behind the order's nonce:
``ready``, ``need`` (a path, answered by ``{"text": ...}``), ``call``, ``problem``, ``end``. What the revision
prints goes nowhere. The nonce keeps chance and carelessness out of the answer, not malice: code in this process can say
whatever it likes about itself, so the parent takes the answer as data about this revision and nothing else.
"""

# A script that starts in milliseconds imports little, so no pathlib:
# ruff: noqa: PTH106, PTH109, PTH120

import contextlib
import importlib
import json
import os
import site
import sys
from typing import Any

if __name__ == "__main__":  # -I and -S left only the standard library; what is ours is found beside it, for now
    OURS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))))
    sys.path.append(OURS)

from sparkdiag.executing.inside import confine

LONGEST = 300


class Parent:
    """The other end: says lines, asks for sources."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.nonce = ""
        self.texts: dict[str, str | None] = {}

    def order(self) -> Any:
        order = json.loads(sys.stdin.buffer.readline())
        self.nonce = order["nonce"]
        return order

    def say(self, **what: Any) -> None:
        data = f"{self.nonce} {json.dumps(what)}\n".encode()
        while data:
            data = data[os.write(self.fd, data) :]

    def text(self, path: str) -> str | None:
        if path not in self.texts:
            self.say(need=path)
            self.texts[path] = json.loads(sys.stdin.buffer.readline())["text"]
        return self.texts[path]


def main() -> None:
    parent = Parent(int(sys.argv[1]))
    order = parent.order()
    confine.die_with(int(sys.argv[2]))
    had = [confine.leave_network()]
    torch = _torch()
    if torch is None:
        parent.say(problem="no torch")
        return
    from sparkdiag.executing.inside import calls, tensors

    tensors.warmed(torch)
    sys.path.remove(OURS)
    with contextlib.suppress(OSError):
        os.rmdir(
            os.getcwd()
        )  # of its own: nothing can be made in it from now on, and nothing is left should we be killed
    had += [
        confine.limit(memory_bytes=order["memory_mib"] << 20, cpu_s=order["cpu_s"]),
        confine.refuse(),
        confine.audit(),
    ]
    version = ".".join(str(part) for part in sys.version_info[:3])
    parent.say(ready={"python": version, "torch": str(torch.__version__), "sandbox": had})
    calls.run(order, torch=torch, ask=parent.text, say=parent.say)
    parent.say(end=True)


def _torch() -> Any:
    """Torch of this interpreter's own packages: no ``.pth`` file is run, no user folder is looked into."""
    prefix = os.path.dirname(os.path.dirname(sys.executable))
    sys.path += [path for path in site.getsitepackages([prefix, sys.prefix]) if path not in sys.path]
    os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")
    try:
        torch: Any = importlib.import_module("torch")
        importlib.import_module("torch.utils._device")
    except ImportError as error:
        if error.name != "torch":
            raise
        return None
    torch.set_num_threads(1)
    with contextlib.suppress(Exception):
        torch._C._jit_set_profiling_mode(False)
    return torch


if __name__ == "__main__":
    main()
