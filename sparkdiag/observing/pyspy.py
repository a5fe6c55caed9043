"""The one owner of py-spy: find it, run it on one process, bound it in time and output, kill it when it hangs.

Always ``--nonblocking``: py-spy's default stops every thread of the target, which has itself caused stalls
(https://github.com/benfred/py-spy/issues/872). Never ``--subprocesses``: with ``--json`` it returns the root process
only (https://github.com/benfred/py-spy/issues/601).
"""

import os
import selectors
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sparkdiag.evidence.stacks import StackSample
from sparkdiag.observing.dump_json import DumpFormatError, parse_dump
from sparkdiag.observing.faults import (
    PermissionFinding,
    SamplingFault,
    cancelled,
    classify_stderr,
    flooded,
    not_started,
    timed_out,
    unreadable,
)

OUTPUT_LIMIT_BYTES = 8 * 2**20
_STDERR_LIMIT_BYTES = 64 * 2**10
_LOOK_UP_S = 0.1
"""How soon a running dump notices that sampling was stopped."""
_EXIT_GRACE_S = 1.0
"""A child that closed its output is given this long to exit."""
_KILL_GRACE_S = 5.0
"""A killed child is waited for this long; one that the kernel holds longer is left to it."""


@dataclass(frozen=True, kw_only=True)
class Dump:
    """What one run of py-spy gave: a sample (with ``error`` and no threads when it failed) and what it cost."""

    sample: StackSample
    fault: SamplingFault | None
    cpu_s: float


@dataclass(frozen=True, kw_only=True)
class _Ended:
    stdout: bytes
    stderr: str
    exit_code: int | None
    cpu_s: float
    fault: SamplingFault | None


def find_pyspy() -> Path | None:
    """The py-spy beside this interpreter, else the one on PATH, else None."""
    beside = (Path(sys.executable).parent, Path(sysconfig.get_path("scripts")))
    for folder in beside:
        candidate = folder / "py-spy"
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return candidate
    on_path = shutil.which("py-spy")
    return Path(on_path) if on_path else None


class PySpy:
    """Runs py-spy. ``dump`` may be called from several threads at once; ``cancel`` ends all of them."""

    def __init__(
        self,
        binary: Path,
        *,
        clock: Callable[[], float],
        timeout_s: float,
        kept_names: frozenset[str] = frozenset(),
        output_limit_bytes: int = OUTPUT_LIMIT_BYTES,
    ) -> None:
        self._binary = binary
        self._clock = clock
        self._timeout_s = timeout_s
        self._kept_names = kept_names
        self._output_limit_bytes = output_limit_bytes
        self._cancelled = threading.Event()

    @property
    def binary(self) -> Path:
        """The program that is run."""
        return self._binary

    def cancel(self) -> None:
        """Kill what runs, within a moment, and let nothing more start."""
        self._cancelled.set()

    def dump(self, pid: int) -> Dump:
        """One look at one process; never raises for what py-spy or the process do."""
        started_s = self._clock()
        ended = self._run(pid)
        ended_s = self._clock()
        fault = ended.fault
        if fault is None and ended.exit_code != 0:
            fault = classify_stderr(ended.stderr, pid=pid, exit_code=ended.exit_code)
        if fault is None:
            try:
                sample = parse_dump(
                    ended.stdout, pid=pid, started_s=started_s, ended_s=ended_s, kept_names=self._kept_names
                )
                return Dump(sample=sample, fault=None, cpu_s=ended.cpu_s)
            except DumpFormatError as error:
                fault = unreadable(str(error), pid=pid)
        sample = StackSample(pid=pid, started_s=started_s, ended_s=ended_s, error=fault.line)
        return Dump(sample=sample, fault=fault, cpu_s=ended.cpu_s)

    def _run(self, pid: int) -> _Ended:
        if self._cancelled.is_set():
            return _Ended(stdout=b"", stderr="", exit_code=None, cpu_s=0.0, fault=cancelled(pid=pid))
        argv = [str(self._binary), "dump", "--json", "--nonblocking", "--locals", "--pid", str(pid)]
        try:
            # A session of its own: one signal reaches whatever it starts, and the kernel's autogroup scheduling gives
            # it a share of its own instead of one shared with the saturated server.
            child = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8"},
            )
        except OSError as error:
            fault = not_started(str(error), pid=pid, missing=isinstance(error, FileNotFoundError | PermissionError))
            return _Ended(stdout=b"", stderr="", exit_code=None, cpu_s=0.0, fault=fault)
        return self._attend(child, pid=pid)

    def _attend(self, child: "subprocess.Popen[bytes]", *, pid: int) -> _Ended:
        deadline_s = time.monotonic() + self._timeout_s
        out, err = bytearray(), bytearray()
        fault: SamplingFault | None = cancelled(pid=pid)
        try:
            fault = self._read(child, out=out, err=err, pid=pid, deadline_s=deadline_s)
        finally:
            exit_code, cpu_s = _reap(child, kill=fault is not None)
        return _Ended(
            stdout=bytes(out),
            stderr=err.decode("utf-8", "replace"),
            exit_code=exit_code,
            cpu_s=cpu_s,
            fault=fault,
        )

    def _read(
        self, child: "subprocess.Popen[bytes]", *, out: bytearray, err: bytearray, pid: int, deadline_s: float
    ) -> SamplingFault | None:
        """Read until both pipes end; a fault when that took too long, was too much, or was stopped."""
        with selectors.DefaultSelector() as selector:
            for stream, buffer in ((child.stdout, out), (child.stderr, err)):
                if stream is not None:
                    selector.register(stream, selectors.EVENT_READ, buffer)
            while selector.get_map():
                left_s = deadline_s - time.monotonic()
                if left_s <= 0:
                    return timed_out(pid=pid, timeout_s=self._timeout_s)
                for key, _events in selector.select(min(left_s, _LOOK_UP_S)):
                    data = os.read(key.fd, 1 << 16)
                    if not data:
                        selector.unregister(key.fileobj)
                    elif key.data is out or len(err) < _STDERR_LIMIT_BYTES:
                        key.data.extend(data)
                if len(out) > self._output_limit_bytes:
                    return flooded(pid=pid, limit_bytes=self._output_limit_bytes)
                if self._cancelled.is_set():
                    return cancelled(pid=pid)
        return None


def can_sample(pyspy: PySpy, pid: int) -> PermissionFinding:
    """Whether this user may sample the process: found out by doing it once."""
    fault = pyspy.dump(pid).fault
    if fault is None:
        return PermissionFinding(allowed=True)
    return PermissionFinding(allowed=False if fault.cause in ("permission", "no-py-spy") else None, fault=fault)


def _reap(child: "subprocess.Popen[bytes]", *, kill: bool) -> tuple[int | None, float]:
    """Exit code and CPU seconds. Kills the whole group at once, or when the child does not end by itself."""
    for stream in (child.stdout, child.stderr):
        if stream is not None:
            stream.close()
    ended = not kill and _has_ended(child.pid, within_s=_EXIT_GRACE_S)
    # Before the child is reaped its group cannot belong to anybody else.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    if not ended and not _has_ended(child.pid, within_s=_KILL_GRACE_S):
        return None, 0.0
    try:
        _pid, status, usage = os.wait4(child.pid, 0)
    except ChildProcessError:
        return None, 0.0
    child.returncode = os.waitstatus_to_exitcode(status)
    return child.returncode, usage.ru_utime + usage.ru_stime


def _has_ended(pid: int, *, within_s: float) -> bool:
    """Whether the child exits in time; it is not reaped."""
    deadline_s = time.monotonic() + within_s
    while True:
        try:
            if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
                return True
        except ChildProcessError:
            return True
        if time.monotonic() > deadline_s:
            return False
        time.sleep(0.005)
