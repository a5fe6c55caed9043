"""Looks at the GPUs and at who else is on the machine. Nothing that is found is touched."""

import os
from collections.abc import Sequence

import psutil

from sparkdiag.doctor.finding import Finding
from sparkdiag.doctor.gpu import judge_gpus
from sparkdiag.doctor.leftovers import Resident, Segment, judge_leftovers
from sparkdiag.errors import BusyError
from sparkdiag.harmless.printable import printable
from sparkdiag.observing.gpu_facts import look_at_gpus
from sparkdiag.observing.titles import classify, is_sparkdiag, shown_title
from sparkdiag.scenario.model import Scenario
from sparkdiag.serving.machine_lock import machine_lock
from sparkdiag.serving.shared_memory import SHM, holds, segments

SEGMENT_PREFIX = "psm_"
"""What Python's ``multiprocessing.shared_memory`` calls its segments."""


def gpu(scenario: Scenario, *, ranks: int) -> tuple[Finding, ...]:
    server = scenario.server
    variable = server.env.get("CUDA_VISIBLE_DEVICES", os.environ.get("CUDA_VISIBLE_DEVICES"))
    return (
        judge_gpus(look_at_gpus(), variable=variable, ranks=ranks, server_args=server.args, hardware=scenario.hardware),
    )


def lock() -> tuple[Finding, ...]:
    """Takes the machine lock for a moment."""
    why = "one run at a time: two servers would slow each other, and each would look like a stall"
    try:
        with machine_lock(what="doctor", no_wait=True):
            pass
    except BusyError as error:
        return (
            Finding(
                name="machine-lock",
                status="warn",
                seen=error.message,
                why=why,
                next_step="nothing to do: sparkdiag repro waits for its end (with --no-wait it exits 4 instead)",
            ),
        )
    except OSError as error:
        return (
            Finding(
                name="machine-lock",
                status="fail",
                seen=f"the lock file cannot be written: {error.strerror or error}",
                why=why,
                next_step="export XDG_CACHE_HOME=/a/writable/folder",
            ),
        )
    return (Finding(name="machine-lock", status="ok", seen="no other run of this user", why=why),)


def leftovers() -> tuple[Finding, ...]:
    return judge_leftovers(residents(), unheld())


def residents() -> tuple[Resident, ...]:
    """Every process of a vLLM server that this user can see."""
    found: list[Resident] = []
    for process in psutil.process_iter():
        try:
            cmdline = process.cmdline()
            role, _ranks = classify(cmdline)
            if role == "other" or is_sparkdiag(cmdline):
                continue
            found.append(_resident(process, cmdline))
        except psutil.Error:
            continue
    return tuple(found)


def _resident(process: psutil.Process, cmdline: Sequence[str]) -> Resident:
    above = process.parents()
    return Resident(
        pid=process.pid,
        role=classify(cmdline)[0],
        title=shown_title(cmdline),
        parent_pid=process.ppid(),
        parent_name=printable(above[0].name(), limit=40) if above else "",
        ours=any(_is_sparkdiag(one) for one in above),
    )


def _is_sparkdiag(process: psutil.Process) -> bool:
    try:
        return is_sparkdiag(process.cmdline())
    except psutil.Error:
        return False


def unheld() -> tuple[Segment, ...]:
    """Segments of this user that no process maps or has open, as far as this user can see."""
    here = {segment for segment in segments() if segment.name.startswith(SEGMENT_PREFIX)}
    if not here:
        return ()
    for pid in psutil.pids():
        here -= holds(pid)
    return tuple(
        sorted((Segment(name=printable(one.name, limit=60), bytes=_size(one.name)) for one in here), key=_name)
    )


def _name(segment: Segment) -> str:
    return segment.name


def _size(name: str) -> int:
    try:
        return os.lstat(f"{SHM}/{name}").st_blocks * 512
    except OSError:
        return 0
