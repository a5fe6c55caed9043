"""The one thread the probe adds to a process: it watches for what the other modules act on."""

import atexit
import contextlib
import ctypes
import json
import os
import threading
import time
from typing import Any

from . import identity, ledger, stacks

CONTROL_FILE = "sample.on"
EARLY_S = 120.0
"""Modules are imported and groups formed in the first minutes: look often then."""
LEDGER_EVERY_S = 0.5
PR_SET_PTRACER = 0x59616D61

_thread: "threading.Thread | None" = None
_pid = 0
_fork_hook = False
_ledger: "ledger.Ledger | None" = None


def start() -> None:
    """Start once a process; a forked child starts its own (threads do not survive a fork)."""
    global _thread, _pid, _fork_hook
    if _pid == os.getpid():
        return
    _pid = os.getpid()
    _allow_sampling()
    with contextlib.suppress(Exception):
        _start_ledger()
    _thread = threading.Thread(target=_run, name="sparkdiag-probe", daemon=True)
    _thread.start()
    if not _fork_hook:
        _fork_hook = True
        os.register_at_fork(after_in_child=_after_fork)


def _start_ledger() -> None:
    """Before the thread: functions are wrapped when this returns."""
    global _ledger
    if _ledger is not None:
        _ledger.forked()
        return
    texts = frozenset(names("SPARKDIAG_PROBE_LOCALS"))
    _ledger = ledger.from_environment(os.environ["SPARKDIAG_PROBE_DIR"], texts=texts)
    if _ledger is not None:
        _ledger.start()
        atexit.register(_ledger.at_exit)


def _tend() -> None:
    if _ledger is not None:
        with contextlib.suppress(Exception):
            _ledger.tend()


def _sleep(period_s: float) -> None:
    """Writing goes on meanwhile."""
    until = time.monotonic() + period_s
    while (left := until - time.monotonic()) > 0:
        time.sleep(min(LEDGER_EVERY_S, left))
        _tend()


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
                    _sleep(asked)
                    teller.tell()
            _sleep(period_s)
    except Exception:  # noqa: S110 - see the package's docstring
        pass
    finally:
        if _ledger is not None:
            _ledger.stop()


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
