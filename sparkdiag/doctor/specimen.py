"""Processes to look at: our own, with a function and a local that are known, and gone when we are.

A specimen reads its standard input and exits at its end, which comes when sparkdiag closes it or dies in whatever way.
"""

import contextlib
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from sparkdiag.errors import EnvironmentFault
from sparkdiag.evidence.base import Value
from sparkdiag.serving.tree import Proc, read_stat, send

FUNCTION = "sparkdiag_doctor_specimen"
LOCAL = "stop"
LOCAL_VALUE = 112_640
START_TIMEOUT_S = 5.0
END_TIMEOUT_S = 2.0
LONGEST_LIFE_S = 60

SOURCE = f"""
import os, signal, sys, threading

def {FUNCTION}(step, {LOCAL}):
    while True:
        for position in range(0, {LOCAL}, step):
            done = position + step

def declare():
    # As the probe does in a launched server: where Yama asks, sparkdiag and its py-spy may read this process.
    try:
        import ctypes
        ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_ulong(os.getppid()), 0, 0, 0)
    except (ImportError, OSError, AttributeError):
        pass

def follow():
    while os.read(0, 4096):
        pass
    os._exit(0)

signal.alarm({LONGEST_LIFE_S})
kind, parent = sys.argv[1], os.getpid()
if kind == "child":
    declare()
elif os.fork():
    os._exit(0)
else:
    signal.alarm({LONGEST_LIFE_S})
    while os.getppid() == parent:
        pass
threading.Thread(target=follow, daemon=True).start()
print(os.getpid(), os.getppid(), flush=True)
{FUNCTION}(1, {LOCAL_VALUE})
"""


class Specimen(Value):
    """A process to look at, busy in ``FUNCTION``."""

    pid: int
    parent_pid: int


class SpecimenError(EnvironmentFault):
    """A Python child could not be started; the message says why."""

    def __init__(self, python: str, why: str) -> None:
        super().__init__(f"{python} {why}", remedy=f"ls -lL {python}; {python} -I -S -c 'print(1)'")


@contextmanager
def child(python: str = sys.executable, *, source: str = SOURCE, own_session: bool = False) -> Iterator[Specimen]:
    """A child of ours on the interpreter ``python``. Raises ``SpecimenError``."""
    with _started(python, "child", source=source, own_session=own_session) as specimen:
        yield specimen


@contextmanager
def stranger(*, source: str = SOURCE) -> Iterator[Specimen]:
    """A process that is ours and no child any more: its parent is gone. Raises ``SpecimenError``."""
    known: Proc | None = None
    try:
        with _started(sys.executable, "stranger", source=source, own_session=False) as specimen:
            found = read_stat(specimen.pid)
            known = Proc(specimen.pid, found[1]) if found is not None else None
            yield specimen
    finally:
        if known is not None:
            _end(known)


@contextmanager
def _started(python: str, kind: str, *, source: str, own_session: bool) -> Iterator[Specimen]:
    # -I and -S: nothing of the environment but the interpreter itself runs.
    try:
        process = subprocess.Popen(
            [python, "-I", "-S", "-c", source, kind],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=own_session,
        )
    except OSError as error:
        raise SpecimenError(python, f"could not be started: {error.strerror}") from error
    try:
        yield _introduced(process, python)
    finally:
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(END_TIMEOUT_S)
        if process.poll() is None:
            process.kill()
            process.wait(END_TIMEOUT_S)


def _introduced(process: "subprocess.Popen[bytes]", python: str) -> Specimen:
    """Its first line: who it is."""
    if process.stdout is None:
        raise SpecimenError(python, "has no output")
    deadline_s, said = time.monotonic() + START_TIMEOUT_S, b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while b"\n" not in said:
            if not selector.select(max(0.0, deadline_s - time.monotonic())):
                raise SpecimenError(python, f"did not start within {START_TIMEOUT_S:.0f} s")
            data = os.read(process.stdout.fileno(), 4096)
            if not data:
                raise SpecimenError(python, "ended at once when started")
            said += data
    try:
        pid, parent_pid = said.split()[:2]
        return Specimen(pid=int(pid), parent_pid=int(parent_pid))
    except ValueError as error:
        raise SpecimenError(python, "does not answer as Python does") from error


def _end(proc: Proc) -> None:
    """Wait for a process that is no child of ours and kill it where it does not end; reap it where we are its init."""
    deadline_s = time.monotonic() + END_TIMEOUT_S
    with contextlib.suppress(ChildProcessError):
        os.waitpid(proc.pid, os.WNOHANG)
    while (found := read_stat(proc.pid)) is not None and found[1] == proc.started_ticks and found[2] not in "ZX":
        if time.monotonic() > deadline_s:
            send(proc, 9)
            return
        time.sleep(0.01)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(proc.pid, os.WNOHANG)
