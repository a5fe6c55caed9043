"""The one thread the probe adds to a process: it watches for what the other modules act on."""

import contextlib
import ctypes
import json
import os
import threading
import time
from typing import Any

from . import identity, stacks

CONTROL_FILE = "sample.on"
EARLY_S = 120.0
"""Modules are imported and groups formed in the first minutes: look often then."""
PR_SET_PTRACER = 0x59616D61

_thread: "threading.Thread | None" = None
_pid = 0
_fork_hook = False


def start() -> None:
    """Start once a process; a forked child starts its own (threads do not survive a fork)."""
    global _thread, _pid, _fork_hook
    if _pid == os.getpid():
        return
    _pid = os.getpid()
    _allow_sampling()
    _thread = threading.Thread(target=_run, name="sparkdiag-probe", daemon=True)
    _thread.start()
    if not _fork_hook:
        _fork_hook = True
        os.register_at_fork(after_in_child=_after_fork)


def _after_fork() -> None:
    with contextlib.suppress(Exception):
        start()


def _run() -> None:
    try:
        folder = os.environ["SPARKDIAG_PROBE_DIR"]
        teller = identity.Teller(folder, names("SPARKDIAG_PROBE_WATCH"))
        sampler = stacks.Sampler(
            folder,
            kept_locals=frozenset(names("SPARKDIAG_PROBE_LOCALS")),
            functions=frozenset(names("SPARKDIAG_PROBE_FUNCTIONS")),
        )
        control = os.path.join(folder, CONTROL_FILE)  # noqa: PTH118
        began = time.monotonic()
        while os.path.isdir(folder):  # noqa: PTH112 - the run is over once its folder is gone
            with contextlib.suppress(Exception):
                teller.tell()
            period_s = 0.5 if time.monotonic() - began < EARLY_S else 1.0
            with contextlib.suppress(Exception):
                while (asked := _asked_period_s(control)) is not None and sampler.sample():
                    period_s = asked
                    time.sleep(asked)
                    teller.tell()
            time.sleep(period_s)
    except Exception:  # noqa: S110 - see the package's docstring
        pass


def _asked_period_s(control: str) -> "float | None":
    """None while nobody asks for samples."""
    try:
        with open(control) as file:  # noqa: PTH123
            text = file.read(1000)
    except OSError:
        return None
    with contextlib.suppress(Exception):
        return min(60.0, max(0.05, float(json.loads(text)["period_s"])))
    return 0.5


def names(variable: str) -> "list[str]":
    """A JSON list of strings from the environment; empty when it is anything else."""
    with contextlib.suppress(Exception):
        found: Any = json.loads(os.environ.get(variable, "[]"))
        if isinstance(found, list):
            return [name for name in found if isinstance(name, str)]
    return []


def _allow_sampling() -> None:
    """Under Yama (ptrace_scope 1) let sparkdiag and its descendants sample this process, and nobody else.

    https://www.kernel.org/doc/html/latest/admin-guide/LSM/Yama.html
    """
    with contextlib.suppress(Exception):
        pid = int(os.environ.get("SPARKDIAG_PROBE_PTRACER", ""))
        if pid > 1:
            ctypes.CDLL(None).prctl(PR_SET_PTRACER, ctypes.c_ulong(pid), 0, 0, 0)
