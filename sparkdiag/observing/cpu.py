"""Who has the machine's CPU time: the server's tree, sparkdiag itself, or others. A few small files a look."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from sparkdiag.evidence.timeline import CpuPoint


@dataclass(frozen=True, slots=True)
class CpuReading:
    """Clock ticks since boot, or since a process's start, at one moment."""

    t_s: float
    total: int
    idle: int
    """Waiting for I/O included."""
    own: int
    server: Mapping[tuple[int, int], int]
    """By pid and start, with the ended children each has waited for."""


def read_cpu(server_pids: Iterable[int], *, t_s: float, proc: Path = Path("/proc")) -> CpuReading:
    """One reading. Raises ``OSError`` or ``ValueError`` where /proc cannot be read; a process that is gone is left out.

    https://man7.org/linux/man-pages/man5/proc_stat.5.html; the guest times are part of the user times.
    """
    fields = [int(field) for field in (proc / "stat").read_text().split("\n", 1)[0].split()[1:9]]
    processes = (_ticks(proc / str(pid)) for pid in server_pids)
    own = _ticks(proc / "self")
    return CpuReading(
        t_s=t_s,
        total=sum(fields),
        idle=fields[3] + fields[4],
        own=own[1] if own is not None else 0,
        server=dict(found for found in processes if found is not None),
    )


def cpu_point(before: CpuReading, after: CpuReading, *, server_nice: int) -> CpuPoint | None:
    """How the time between two readings was shared; None where none passed. Pure.

    A server process that is new counts from its start, and one that has ended counts no more: what it used last is
    others' then, for this one look.
    """
    total = after.total - before.total
    if total <= 0 or after.t_s <= before.t_s:
        return None
    server = sum(max(0, ticks - before.server.get(key, 0)) for key, ticks in after.server.items())
    own = max(0, after.own - before.own)
    busy = max(0, total - max(0, after.idle - before.idle))
    return CpuPoint(
        t_s=after.t_s,
        span_s=after.t_s - before.t_s,
        others_share=max(0, busy - server - own) / total,
        server_share=min(1.0, server / total),
        server_nice=server_nice,
    )


def _ticks(folder: Path) -> tuple[tuple[int, int], int] | None:
    """((pid, start), user and system time) from /proc/PID/stat; what precedes the last ``)`` is the process's own
    choice (proc_pid_stat(5))."""
    try:
        pid, _, rest = (folder / "stat").read_text(errors="replace").partition(" ")
        fields = rest.rpartition(")")[2].split()
        return (int(pid), int(fields[19])), sum(int(field) for field in fields[11:15])
    except (OSError, ValueError, IndexError):
        return None
