"""Looks at memory, cores, disk, shared memory, limits, clock, port and priority, by doing what a run would do."""

import contextlib
import mmap
import os
import resource
import secrets
import shutil
import socket
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import psutil

from sparkdiag.doctor import machine, specimen
from sparkdiag.doctor.finding import Finding
from sparkdiag.doctor.limits import cpu_quota, memory_free_bytes
from sparkdiag.doctor.machine import ClockLook, Cores, Memory, Priority, Room, SharedMemory
from sparkdiag.environment.cache import VARIABLE, cache_root
from sparkdiag.errors import SparkdiagError
from sparkdiag.recording.folder import RunFolder
from sparkdiag.serving.priority import NICE, busy_share, read_group, write_group_nice
from sparkdiag.serving.private_folder import make_private_folder, remove
from sparkdiag.serving.readiness import free_port
from sparkdiag.serving.shared_memory import SHM

LOOK_S = 0.3
"""How long CPU time and clocks are watched."""
SEGMENT_BYTES = 2**20


def memory(*, lab: bool, ranks: int) -> tuple[Finding, ...]:
    found = Memory(available_bytes=psutil.virtual_memory().available, cgroup_free_bytes=memory_free_bytes())
    return (machine.judge_memory(found, lab=lab, ranks=ranks),)


def cores(*, lab: bool, ranks: int) -> tuple[Finding, ...]:
    stat = Path("/proc/stat")
    before = stat.read_text()
    time.sleep(LOOK_S)
    found = Cores(
        usable=len(os.sched_getaffinity(0)), quota=cpu_quota(), busy_share=busy_share(before, stat.read_text())
    )
    return (machine.judge_cores(found, lab=lab, ranks=ranks),)


def disk(*, runs_dir: Path, build_bytes: int) -> tuple[Finding, ...]:
    """The cache, the run folders and the temporary files, each by writing there what sparkdiag writes."""
    return machine.judge_rooms(
        (
            _room(
                "run folders",
                "runs",
                runs_dir,
                try_folder=_try_run_folder,
                least_bytes=machine.RUNS_LEAST_BYTES,
                spare_bytes=machine.RUNS_SPARE_BYTES,
                elsewhere="put them elsewhere: sparkdiag repro --out DIR",
            ),
            _room(
                "environments",
                "cache",
                cache_root(),
                try_folder=_try_file,
                least_bytes=max(build_bytes, machine.CACHE_LEAST_BYTES),
                spare_bytes=max(build_bytes, machine.CACHE_SPARE_BYTES),
                elsewhere=f"put the cache elsewhere: export {VARIABLE}=/a/larger/disk",
            ),
            _room(
                "temporary files",
                "TMPDIR",
                Path(tempfile.gettempdir()),
                try_folder=_try_private_folder,
                least_bytes=machine.TMP_LEAST_BYTES,
                spare_bytes=machine.TMP_SPARE_BYTES,
                elsewhere="export TMPDIR=/a/short/path/with/room",
            ),
        )
    )


def _room(
    what: str,
    label: str,
    folder: Path,
    *,
    try_folder: Callable[[Path], None],
    least_bytes: int,
    spare_bytes: int,
    elsewhere: str,
) -> Room:
    there = existing(folder)
    problem = None
    try:
        try_folder(there)
    except SparkdiagError as error:
        problem = error.message
    except OSError as error:
        problem = error.strerror or str(error)
    return Room(
        what=what,
        label=label,
        folder=str(there),
        free_bytes=shutil.disk_usage(there).free,
        problem=problem,
        least_bytes=least_bytes,
        spare_bytes=spare_bytes,
        elsewhere=elsewhere,
    )


def existing(folder: Path) -> Path:
    """The folder itself, else the nearest one above that is there already: nothing is made for good."""
    candidates = (folder.absolute(), *folder.absolute().parents)
    return next(path for path in candidates if path.exists())


def _try_file(folder: Path) -> None:
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".sparkdiag-doctor-") as file:
        file.write(b"\0" * SEGMENT_BYTES)
        file.flush()


def _try_run_folder(folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder, prefix=".sparkdiag-doctor-") as inside:
        run = RunFolder.create(Path(inside), scenario_name="doctor", short_sha=None, dcp=1, now=datetime.now(UTC))
        run.write_report("doctor.txt", "x" * SEGMENT_BYTES)
        run.close()
        if run.problems:
            raise OSError(0, run.problems[0])


def _try_private_folder(_folder: Path) -> None:
    private = make_private_folder()
    try:
        with socket.socket(socket.AF_UNIX) as ipc:
            ipc.bind(str(private / f"{secrets.token_hex(16)}.ipc"))
    finally:
        remove(private)


def shared_memory(*, ranks: int, folder: Path = Path(SHM)) -> tuple[Finding, ...]:
    """Makes a segment as ``multiprocessing.shared_memory`` does, fills it, removes it."""
    try:
        room = os.statvfs(folder)
    except OSError as error:
        found = SharedMemory(problem=error.strerror or str(error))
        return (machine.judge_shared_memory(found, ranks=ranks),)
    path = folder / f"sparkdiag-doctor-{secrets.token_hex(8)}"
    problem = None
    try:
        _fill_segment(path)
    except OSError as error:
        problem = f"a segment of 1 MiB could not be made: {error.strerror or error}"
    try:
        path.unlink(missing_ok=True)
    except OSError as error:  # a read-only folder says so even of a file that is not there
        problem = problem or f"a segment of 1 MiB could not be removed: {error.strerror or error}"
    found = SharedMemory(
        total_bytes=room.f_blocks * room.f_frsize, free_bytes=room.f_bavail * room.f_frsize, problem=problem
    )
    return (machine.judge_shared_memory(found, ranks=ranks),)


def _fill_segment(path: Path) -> None:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        # Space first: writing into a hole that cannot be filled would kill us by SIGBUS.
        os.posix_fallocate(descriptor, 0, SEGMENT_BYTES)
        with mmap.mmap(descriptor, SEGMENT_BYTES) as mapped:
            mapped[:] = b"\1" * SEGMENT_BYTES
    finally:
        os.close(descriptor)


def port() -> tuple[Finding, ...]:
    """Listens on a loopback port and talks to it."""
    number = free_port()
    with socket.create_server(("127.0.0.1", number)) as listening:
        listening.settimeout(2)
        with socket.create_connection(("127.0.0.1", number), timeout=2) as asking:
            answering, _address = listening.accept()
            with answering:
                asking.sendall(b"?")
                answering.settimeout(2)
                echoed = answering.recv(1) == b"?"
    if not echoed:
        raise ConnectionError("a byte sent over the loopback interface did not arrive")
    return (
        Finding(
            name="port",
            status="ok",
            seen=f"127.0.0.1:{number} was bound and answered",
            why="the server listens on a free port of the loopback interface",
        ),
    )


def open_files() -> tuple[Finding, ...]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    return (
        machine.judge_open_files(
            2**31 if soft == unlimited else soft,
            2**31 if hard == unlimited else hard,
        ),
    )


def clock() -> tuple[Finding, ...]:
    wall_s, monotonic_s = time.time(), time.monotonic()
    time.sleep(0.02)
    look = ClockLook(
        wall_passed_s=time.time() - wall_s,
        monotonic_passed_s=time.monotonic() - monotonic_s,
        wall_s=time.time(),
        installed_s=Path(__file__).stat().st_mtime,
    )
    return (machine.judge_clock(look),)


def look_at_priority() -> Priority:
    """Lowers a child in a session of its own in both ways and reads back what came of it."""
    with specimen.child(own_session=True) as process:
        child_nice = None
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, process.pid, NICE)
            child_nice = os.getpriority(os.PRIO_PROCESS, process.pid)
        enabled = _autogroup_enabled()
        grouped, nice, refusal = _lower_autogroup(process.pid) if enabled else (False, None, "")
    return Priority(
        own_nice=os.getpriority(os.PRIO_PROCESS, 0),
        child_nice=child_nice,
        autogroup_enabled=enabled,
        grouped=grouped,
        autogroup_nice=nice,
        refusal=refusal,
    )


def _autogroup_enabled() -> bool | None:
    try:
        return Path("/proc/sys/kernel/sched_autogroup_enabled").read_text().strip() == "1"
    except OSError:
        return None


def _lower_autogroup(pid: int) -> tuple[bool, int | None, str]:
    """(whether it is in a group, the group's nice value afterwards, why it was refused)."""
    path = Path(f"/proc/{pid}/autogroup")
    try:
        before, own = read_group(path), read_group(Path("/proc/self/autogroup"))
        if before is None:
            return False, None, ""
        if own is not None and before[0] == own[0]:
            return True, None, "a session of its own gets no group of its own here"
        write_group_nice(path, NICE)
        after = read_group(path)
        return True, None if after is None else after[1], ""
    except (OSError, ValueError) as error:
        return True, None, f"{type(error).__name__}: {error}"[:100]


def priority() -> tuple[Finding, ...]:
    found = look_at_priority()
    return (machine.judge_autogroup(found), machine.judge_nice(found))
