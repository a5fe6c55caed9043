"""What the machine has against what a run needs: memory, cores, disk, shared memory, limits, clock. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from sparkdiag.doctor.finding import Finding
from sparkdiag.evidence.base import Value
from sparkdiag.evidence.timeline import BUSY_SHARE
from sparkdiag.serving.shared_memory import SHM

MIB, GIB = 2**20, 2**30

LAB_MEMORY_BASE_BYTES = int(0.95 * GIB)
LAB_MEMORY_RANK_BYTES = int(0.61 * GIB)
"""Measured (proportional set size, vLLM 0.32.0 on CPU, TP 2, 16,384 tokens): API server 0.46, EngineCore 0.44, each
worker 0.60 GiB; 2.1 GiB in all."""
SPARE_MEMORY = 1.3
MEMORY_UNKNOWN_BYTES = 4 * GIB
"""Where nobody measured the server: less than this is worth a word."""

SHM_QUEUES_BYTES = 700 * MIB
"""Measured: vLLM's message queues reserve 664 MiB in four segments at TP 2 (VLLM_MQ_MAX_CHUNK_BYTES_MB), and use less
than 1 MiB of it while the messages are small. A message that does not fit ends a worker by SIGBUS."""
SHM_LEAST_BYTES = 32 * MIB

RUNS_LEAST_BYTES, RUNS_SPARE_BYTES = 50 * 10**6, 500 * 10**6
"""A run folder of the lab is below 10 MB; an hour of a real server's log and stacks is not."""
TMP_LEAST_BYTES, TMP_SPARE_BYTES = 20 * 10**6, 200 * 10**6
CACHE_LEAST_BYTES, CACHE_SPARE_BYTES = 20 * 10**6, 200 * 10**6
OPEN_FILES_FAIL, OPEN_FILES_WARN = 512, 4096
"""vLLM asks for 65,535 itself and goes on with less (vllm/utils/system_utils.py, set_ulimit)."""


class Memory(Value):
    """Main memory, in bytes."""

    available_bytes: int
    cgroup_free_bytes: int | None = None
    """What the container or slice may still take; None without a limit."""

    @property
    def usable_bytes(self) -> int:
        free = self.available_bytes if self.cgroup_free_bytes is None else self.cgroup_free_bytes
        return min(self.available_bytes, free)


def lab_memory_bytes(ranks: int) -> int:
    """What the lab's server takes."""
    return LAB_MEMORY_BASE_BYTES + ranks * LAB_MEMORY_RANK_BYTES


def judge_memory(memory: Memory, *, lab: bool, ranks: int) -> Finding:
    limited = memory.cgroup_free_bytes is not None and memory.cgroup_free_bytes < memory.available_bytes
    has = f"{memory.usable_bytes / GIB:.1f} GiB available" + (" within the memory limit" if limited else "")
    raise_it = (
        "give the container more memory (docker run --memory …)" if limited else "end what takes it (top -o %MEM)"
    )
    if not lab:
        small = memory.usable_bytes < MEMORY_UNKNOWN_BYTES
        return Finding(
            name="memory",
            status="warn" if small else "ok",
            seen=f"{has}; what this scenario's model needs is not known",
            why="a server that is killed for memory looks like a crash",
            next_step=raise_it if small else None,
        )
    need = lab_memory_bytes(ranks)
    status = "fail" if memory.usable_bytes < need else "warn" if memory.usable_bytes < need * SPARE_MEMORY else "ok"
    return Finding(
        name="memory",
        status=status,
        seen=f"{has}, the lab at TP {ranks} takes {need / GIB:.1f}",
        why="a server that is killed for memory looks like a crash",
        next_step=None if status == "ok" else raise_it,
    )


class Cores(Value):
    """CPU time there is."""

    usable: int
    """Cores this process may run on."""
    quota: float | None = None
    """Cores' worth of CPU time the container may use; None without a limit."""
    busy_share: float = 0.0
    """Of the whole machine's CPU time, used now."""

    @property
    def count(self) -> float:
        return min(float(self.usable), self.quota if self.quota is not None else float(self.usable))


def judge_cores(cores: Cores, *, lab: bool, ranks: int) -> Finding:
    quota = f" (a quota of {cores.quota:g})" if cores.quota is not None and cores.quota < cores.usable else ""
    seen = f"{cores.usable} core{'s' * (cores.usable != 1)}{quota}, {cores.busy_share:.0%} busy now"
    if lab and cores.count < ranks:
        return Finding(
            name="cores",
            status="warn",
            seen=f"{seen}; the lab computes on {ranks} ranks",
            why="ranks that share a core are slower together, DCP 1 as well: estimates of time are too short",
            next_step=f"give the container {ranks} CPUs, or take the healthy time first: sparkdiag repro --control",
        )
    if cores.busy_share > BUSY_SHARE:
        return Finding(
            name="cores",
            status="warn",
            seen=seen,
            why="beside a busy machine samples come late, and a slow prefill may be the others' doing",
            next_step="end what uses the cores (top), then: sparkdiag doctor",
        )
    return Finding(name="cores", status="ok", seen=seen, why="the server and the samplers share them")


class Room(Value):
    """A folder that will be written to."""

    what: str
    """``run folders``, ``environments``, ``temporary files``."""
    label: str
    """The same in a word."""
    folder: str
    free_bytes: int
    problem: str | None = None
    """Why a file could not be written there; None where one was."""
    least_bytes: int
    spare_bytes: int
    elsewhere: str
    """How to put it somewhere else."""


def judge_rooms(rooms: Sequence[Room]) -> tuple[Finding, ...]:
    """One finding for all that is well, one more for each folder that is not."""
    bad = tuple(_bad_room(room) for room in rooms if room.problem or room.free_bytes < room.spare_bytes)
    if bad:
        return bad
    seen = ", ".join(f"{room.label} {room.free_bytes / 1e9:.0f} GB" for room in rooms)
    return (Finding(name="disk", status="ok", seen=f"free: {seen}", why="a full disk cuts the evidence short"),)


def _bad_room(room: Room) -> Finding:
    if room.problem is not None:
        return Finding(
            name="disk",
            status="fail",
            seen=f"{room.folder} ({room.what}) cannot be written: {room.problem}",
            why=f"{room.what} go there",
            next_step=room.elsewhere,
        )
    status = "fail" if room.free_bytes < room.least_bytes else "warn"
    wanted = room.least_bytes if status == "fail" else room.spare_bytes
    return Finding(
        name="disk",
        status=status,
        seen=f"{room.folder} ({room.what}) has {amount(room.free_bytes)} free, {amount(wanted)} are wanted",
        why="a full disk cuts the evidence short",
        next_step=f"df -h {room.folder}; or {room.elsewhere}",
    )


def amount(count: int) -> str:
    """``3.7 GB``, ``52 MB``."""
    return f"{count / 1e9:.1f} GB" if count >= 10**9 else f"{count / 1e6:.0f} MB"


class SharedMemory(Value):
    """The folder of shared memory segments, tried out."""

    total_bytes: int = 0
    free_bytes: int = 0
    problem: str | None = None
    """Why a segment could not be made, filled or removed."""


def judge_shared_memory(shm: SharedMemory, *, ranks: int) -> Finding:
    why = "vLLM's processes talk through it: a message that does not fit ends a worker by SIGBUS"
    larger = f"docker run --shm-size 2g … (or --ipc host); outside a container: sudo mount -o remount,size=2G {SHM}"
    if shm.problem is not None:
        return Finding(
            name="shared-memory",
            status="fail",
            seen=f"{SHM}: {shm.problem}",
            why=why,
            next_step=f"ls -ld {SHM}; df -h {SHM}; {larger}",
        )
    seen = f"{amount(shm.free_bytes)} of {amount(shm.total_bytes)} free; a segment made and removed"
    wanted = SHM_QUEUES_BYTES * max(ranks, 2) // 2
    status = "fail" if shm.free_bytes < SHM_LEAST_BYTES else "warn" if shm.free_bytes < wanted else "ok"
    if status != "ok":
        seen = f"{SHM} has {amount(shm.free_bytes)} free, vLLM's queues at TP {ranks} reserve {amount(wanted)}"
    return Finding(
        name="shared-memory", status=status, seen=seen, why=why, next_step=None if status == "ok" else larger
    )


def judge_open_files(soft: int, hard: int) -> Finding:
    """``hard`` counts: vLLM raises the soft limit itself."""
    status = "fail" if hard < OPEN_FILES_FAIL else "warn" if hard < OPEN_FILES_WARN else "ok"
    return Finding(
        name="open-files",
        status=status,
        seen=f"soft limit {soft}, hard limit {hard}",
        why="every rank, request and log holds files open; a server that runs out of them hangs or dies",
        next_step=None
        if status == "ok"
        else f"ulimit -Hn {OPEN_FILES_WARN * 4} as root, or docker run --ulimit nofile=65535",
    )


class ClockLook(NamedTuple):
    """Two readings of both clocks."""

    wall_passed_s: float
    monotonic_passed_s: float
    wall_s: float
    """Seconds since the epoch."""
    installed_s: float
    """When sparkdiag's own files were written: no correct clock shows less."""


def judge_clock(look: ClockLook) -> Finding:
    why = "run folders are named and sorted by the wall clock, and samples are dated by the monotonic one"
    set_it = "timedatectl set-ntp true (or: sudo date -s …)"
    if look.monotonic_passed_s <= 0:
        seen = "the monotonic clock does not advance"
    elif abs(look.wall_passed_s - look.monotonic_passed_s) > 1:
        seen = f"the wall clock jumped by {look.wall_passed_s - look.monotonic_passed_s:+.1f} s while it was watched"
    elif look.wall_s < look.installed_s - 86400:
        days = (look.installed_s - look.wall_s) / 86400
        seen = f"the wall clock is {days:.0f} days behind sparkdiag's own files"
    else:
        return Finding(name="clock", status="ok", seen="wall and monotonic clock advance alike", why=why)
    return Finding(name="clock", status="warn", seen=seen, why=why, next_step=set_it)


class Priority(Value):
    """What came of lowering the priority of a child in a session of its own."""

    own_nice: int
    child_nice: int | None = None
    """Read back after +10 was asked for; None where that was refused."""
    autogroup_enabled: bool | None = None
    """None: this kernel has no autogroups."""
    grouped: bool = True
    """False: sessions are in no group here although autogroups are enabled."""
    autogroup_nice: int | None = None
    """Read back from the child's /proc/PID/autogroup after 10 was written; None where that was refused."""
    refusal: str = ""


def judge_autogroup(found: Priority) -> Finding:
    """https://man7.org/linux/man-pages/man7/sched.7.html, "The autogroup feature"."""
    why = "on saturated cores a sampler waits for its turn: 33 s at worst, 42 ms once the server's group is lowered"
    if not found.autogroup_enabled or not found.grouped:
        off = "not part of this kernel" if found.autogroup_enabled is None else "switched off"
        state = "enabled, but a session of its own gets no group" if found.autogroup_enabled else off
        return Finding(name="autogroup", status="ok", seen=f"{state}: sessions share CPU time by process", why=why)
    if found.autogroup_nice == 10:
        return Finding(name="autogroup", status="ok", seen="enabled; the own group of a child took +10", why=why)
    return Finding(
        name="autogroup",
        status="warn",
        seen=f"enabled, but a child's own group stays as it is: {found.refusal or f'nice {found.autogroup_nice}'}",
        why=why,
        next_step="leave the machine a free core during a run, or: sudo sysctl kernel.sched_autogroup_enabled=0",
    )


def judge_nice(found: Priority) -> Finding:
    why = "a sampler with less priority than the server comes too late when the server computes"
    if found.own_nice > 0:
        return Finding(
            name="nice",
            status="warn",
            seen=f"sparkdiag itself runs at nice {found.own_nice}, and so does all that it starts",
            why=why,
            next_step="start it without nice, from a shell of priority 0",
        )
    if found.child_nice is None:
        return Finding(
            name="nice", status="warn", seen="a child's nice value cannot be raised", why=why, next_step="ulimit -e; id"
        )
    return Finding(
        name="nice", status="ok", seen=f"own nice {found.own_nice}; a child was set to {found.child_nice}", why=why
    )
