"""Lets samplers get their turn on a machine that the server saturates. Only for a server that was launched here."""

import errno
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from sparkdiag.evidence.run import ServerPriority
from sparkdiag.evidence.timeline import BUSY_SHARE

NICE = 10
LOOK_S = 0.5
LOOKS_TO_BE_SURE = 2
WRITE_AGAIN_S = 0.15
"""Without privilege the kernel takes one write to any autogroup in 100 ms (kernel/sched/autogroup.c)."""
COST = (
    "on a machine that is otherwise idle this costs the server nothing; it is put back when other programs come to "
    "need the machine (--keep-priority leaves it alone)"
)
LEFT = "the server's priority was left as it is"
NO_GROUP = "its session has no scheduling group"
MOST_ANCESTORS = 64
_WAIT_FOR_US = "import sys; sys.stdin.read()"


def why_no_way_back() -> str | None:
    """Lower and raise the group of a child made for this; None when that works. What a kernel lets an unprivileged
    process take back is better tried than guessed from capabilities."""
    argv = [sys.executable, "-I", "-S", "-c", _WAIT_FOR_US]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, start_new_session=True) as child:
        try:
            path = Path(f"/proc/{child.pid}/autogroup")
            write_group_nice(path, NICE)
            write_group_nice(path, 0)
            group = read_group(path)
            return None if group is not None and group[1] == 0 else "it could not be put back later"
        except (PermissionError, BlockingIOError) as error:
            return f"it could not be put back later ({type(error).__name__})"
        finally:
            child.kill()


def lower_priority(
    root_pid: int,
    *,
    proc: Path = Path("/proc"),
    look_s: float = LOOK_S,
    way_back: Callable[[], str | None] = why_no_way_back,
) -> ServerPriority:
    """Write nice +10 to an idle server's own autogroup; says what happened and what it may cost.

    The kernel shares CPU time between sessions before it looks at processes (sched(7), "The autogroup feature"), so the
    nice value of a sampler in another session does not help it. A launched server leads its own session: its group
    holds nothing else. Measured on two saturated cores: the longest of the stack dumps went from 33 s to 42 ms.

    Not done to a server that this process did not start, nor to one whose group holds more than it; nor where it could
    not be taken back; nor on a machine that others keep busy: there the lowered server would get a tenth of its share,
    and look like a stall of sparkdiag's own making. Who comes later is ``put_back_due``'s business.
    """
    path = proc / str(root_pid) / "autogroup"
    try:
        kept = _why_not(root_pid, proc=proc)
        if kept is None:
            before = (proc / "stat").read_text()
            time.sleep(look_s)
            share = busy_share(before, (proc / "stat").read_text())
            kept = f"other programs use {share:.0%} of this machine's CPU time" if share > BUSY_SHARE else None
        if kept is None:
            kept = way_back()
        if kept is not None:
            return ServerPriority(because=f"{LEFT}: {kept}")
        group = read_group(path)
        write_group_nice(path, NICE)
    except FileNotFoundError:
        return ServerPriority(because=f"{LEFT}: this kernel has no autogroups")
    except (OSError, IndexError, ValueError) as error:
        return ServerPriority(because=f"{LEFT}: {type(error).__name__}")
    name = group[0] if group is not None else ""
    said = f"the server's own scheduling group ({name.lstrip('/')}) is now at nice {NICE}"
    return ServerPriority(nice=NICE, because=f"{said}, so that samplers get their turn; {COST}")


def put_back_due(others_shares: Sequence[float]) -> bool:
    """Whether others have needed the machine for ``LOOKS_TO_BE_SURE`` looks in a row, the newest last. Pure."""
    newest = others_shares[-LOOKS_TO_BE_SURE:]
    return len(newest) == LOOKS_TO_BE_SURE and all(share > BUSY_SHARE for share in newest)


def restore_priority(root_pid: int, *, proc: Path = Path("/proc")) -> None:
    """Put the group of a server lowered by ``lower_priority`` back to nice 0. Raises ``OSError`` where it cannot."""
    write_group_nice(proc / str(root_pid) / "autogroup", 0)


def read_group(path: Path) -> tuple[str, int] | None:
    """(group, nice) of a process from its /proc/PID/autogroup; None where its session has no group, and shares CPU time
    by process: the kernel then answers with nothing, also while autogroups are enabled (kernel/sched/autogroup.c,
    ``proc_sched_autogroup_show_task``). Raises ``OSError`` where it cannot be read."""
    fields = path.read_text().split()
    return (fields[0], int(fields[-1])) if fields else None


def write_group_nice(path: Path, nice: int) -> None:
    """Set a scheduling group's nice value; ``path`` is some /proc/PID/autogroup. Raises ``OSError`` where refused."""
    try:
        path.write_text(str(nice))
    except OSError as error:
        if error.errno != errno.EAGAIN:
            raise
        time.sleep(WRITE_AGAIN_S)
        path.write_text(str(nice))


def busy_share(before: str, after: str) -> float:
    """Share of CPU time spent neither idle nor waiting for I/O between two readings of /proc/stat (proc_stat(5))."""
    first, second = ([int(field) for field in text.split("\n", 1)[0].split()[1:9]] for text in (before, after))
    spent = [b - a for a, b in zip(first, second, strict=True)]
    total = sum(spent)
    return (total - spent[3] - spent[4]) / total if total > 0 else 0.0


def _why_not(root_pid: int, *, proc: Path) -> str | None:
    """Why this process is not to be touched; None when it is ours, and alone in its group."""
    if not _started_here(root_pid, proc=proc):
        return "sparkdiag did not start it"
    _parent, session = _parent_and_session(root_pid, proc=proc)
    group = read_group(proc / str(root_pid) / "autogroup")
    if group is None:
        return NO_GROUP
    own = read_group(proc / "self" / "autogroup")
    if session != root_pid or (own is not None and group[0] == own[0]):
        return "it shares its scheduling group with others"
    return None


def _started_here(pid: int, *, proc: Path) -> bool:
    for _ in range(MOST_ANCESTORS):
        if pid <= 1:
            return False
        pid, _session = _parent_and_session(pid, proc=proc)
        if pid == os.getpid():
            return True
    return False


def _parent_and_session(pid: int, *, proc: Path) -> tuple[int, int]:
    """From /proc/PID/stat (proc_pid_stat(5)); what precedes the last ``)`` is the process's own choice."""
    fields = (proc / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    return int(fields[1]), int(fields[3])
