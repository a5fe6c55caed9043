"""vLLM processes and shared memory that are on the machine before a run begins. Pure; nothing is ever touched."""

from collections.abc import Sequence

from sparkdiag.doctor.finding import Finding
from sparkdiag.evidence.base import Value
from sparkdiag.evidence.processes import Role
from sparkdiag.serving.shared_memory import SHM

INITS = frozenset({"systemd", "init", "tini", "docker-init", "dumb-init", "s6-svscan", "catatonit"})
"""Who takes in a process whose parent died."""
MOST_SHOWN = 6
_ENGINE: frozenset[Role] = frozenset({"engine_core", "worker", "dp_coordinator"})


class Resident(Value):
    """A process of some vLLM server."""

    pid: int
    role: Role
    title: str
    """Secrets removed."""
    parent_pid: int
    parent_name: str = ""
    ours: bool = False
    """Below a guardian of sparkdiag: it is looked after."""

    @property
    def orphan(self) -> bool:
        """Whether its server is dead: an engine process is always somebody's child."""
        return self.role in _ENGINE and (self.parent_pid in (0, 1) or self.parent_name in INITS)


class Segment(Value):
    """An entry of /dev/shm that no visible process holds."""

    name: str
    bytes: int


def orphaned(residents: Sequence[Resident]) -> frozenset[int]:
    """The pids of orphans and of everything below them."""
    left = {resident.pid for resident in residents if resident.orphan}
    while below := {one.pid for one in residents if one.parent_pid in left} - left:
        left |= below
    return frozenset(left)


def judge_leftovers(residents: Sequence[Resident], segments: Sequence[Segment]) -> tuple[Finding, ...]:
    """Dead servers' remains, then servers that run."""
    left = orphaned(residents)
    dead = [one for one in residents if one.pid in left and not one.ours]
    alive = [one for one in residents if one.pid not in left and not one.ours]
    found: list[Finding] = []
    if dead:
        found.append(
            Finding(
                name="leftovers",
                status="warn",
                seen=f"{_count(dead)} of a dead vLLM server: {_shown(dead)}",
                why="they may hold cores, GPU memory and ports, and make a healthy server look slow",
                next_step=f"look, then end them yourself: ps -fp {_pids(dead)}; kill {_pids(dead, separator=' ')}",
            )
        )
    if alive:
        found.append(
            Finding(
                name="leftovers",
                status="warn",
                seen=f"a vLLM server runs here: {_shown(alive)}",
                why="two servers slow each other, and each looks like a stall",
                next_step="let it end, or stop it the way it was started; sparkdiag does not touch it",
            )
        )
    if segments:
        found.append(_unheld(segments))
    ours = sum(one.ours for one in residents)
    if not found:
        running = f"only a sparkdiag run's server ({ours} processes)" if ours else "no vLLM server"
        why = "they would slow a run down"
        found.append(Finding(name="leftovers", status="ok", seen=f"{running}, no orphan segments", why=why))
    return tuple(found)


def _unheld(segments: Sequence[Segment]) -> Finding:
    names = ", ".join(segment.name for segment in segments[:MOST_SHOWN]) + ("…" if len(segments) > MOST_SHOWN else "")
    first = " ".join(f"{SHM}/{segment.name}" for segment in segments[:MOST_SHOWN])
    mib = sum(segment.bytes for segment in segments) / 2**20
    return Finding(
        name="leftovers",
        status="warn",
        seen=f"{SHM}: {len(segments)} segment(s) no visible process holds, {mib:.0f} MiB: {names}",
        why="a Python program (a killed vLLM server does) left them; they take memory until the next boot",
        next_step=f"sure that nobody needs them? rm {first}",
    )


def _count(processes: Sequence[Resident]) -> str:
    return "1 process" if len(processes) == 1 else f"{len(processes)} processes"


def _shown(processes: Sequence[Resident]) -> str:
    more = f" and {len(processes) - MOST_SHOWN} more" if len(processes) > MOST_SHOWN else ""
    return ", ".join(f"{one.pid} {_called(one)}" for one in processes[:MOST_SHOWN]) + more


def _called(process: Resident) -> str:
    """An API server keeps its command line, whose beginning says little."""
    return "API server" if process.role == "api_server" and "::" not in process.title else process.title[:40]


def _pids(processes: Sequence[Resident], *, separator: str = ",") -> str:
    return separator.join(str(one.pid) for one in processes)
