"""Whom ``kill_moments.py`` finds in a run's process tree, by command lines and titles."""

import contextlib
from pathlib import Path

import psutil

Key = tuple[int, float]


def line_of(process: psutil.Process) -> str:
    with contextlib.suppress(psutil.Error):
        return " ".join(process.cmdline())
    return ""


def key(process: psutil.Process) -> Key:
    with contextlib.suppress(psutil.Error):
        return process.pid, process.create_time()
    return process.pid, 0.0


def parent_of(process: psutil.Process) -> int:
    with contextlib.suppress(psutil.Error):
        return process.ppid()
    return 0


def children_of(process: psutil.Process, *, deep: bool = True) -> list[psutil.Process]:
    with contextlib.suppress(psutil.Error):
        return process.children(recursive=deep)
    return []


def is_guardian(process: psutil.Process) -> bool:
    return "/serving/guardian.py" in line_of(process)


def kept_by_another(guardians: list[psutil.Process]) -> list[psutil.Process]:
    """The guardian itself, which its keeper has forked; none until then. Of one process alone it is not known which it
    is a moment later: the keeper killed just as it forks leaves a guardian behind, and the run rightly goes on."""
    pids = {one.pid for one in guardians}
    return [one for one in guardians if parent_of(one) in pids][-1:]


def is_part(process: psutil.Process, title: str) -> bool:
    """By its title, or by how vLLM starts it while it has none yet (the resource tracker is no part)."""
    line = line_of(process)
    return f"::{title}" in line or ("spawn_main" in line and "VLLM::" not in line)


def lives(process: psutil.Process) -> bool:
    """Zombies do not, unless only the main thread has ended."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE or len([*Path(f"/proc/{process.pid}/task").iterdir()]) > 1
    except (psutil.Error, OSError):
        return False
