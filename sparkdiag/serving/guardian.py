"""Owns one launched server's process tree, as a process of its own: ``python -I -S guardian.py``.

Standard library only, and importable (``sparkdiag.serving.orphans`` uses the same functions when the guardian itself
was killed). vLLM's children survive their parent, so somebody who cannot be reached by what kills sparkdiag or the
server must end them: this process leads its own session, is the tree's *subreaper* (orphans become its children,
whatever sessions they made), and holds a pipe whose end of file means that sparkdiag is gone.

Standard input: one JSON line (``argv``, ``env``, ``private_dir``, ``marker``), later ``{"stop_grace_s": S}`` or the end
of the file. Standard output: one JSON line an event (``started``, ``failed``, ``tree``, ``exited``, ``gone``). The file
descriptor named by the only argument gets the server's output as it came; when nobody reads, the newest is dropped:
the server is never held up.

Only descendants are ever signalled, by pidfd and after a look at their start time.
"""

# A script that starts in milliseconds imports little, so no pathlib:
# ruff: noqa: PTH108, PTH112, PTH113, PTH115, PTH116, PTH118, PTH123, PTH208

import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import stat
import sys
import time
from collections import deque
from typing import Any, NamedTuple

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
SHM = "/dev/shm"  # noqa: S108 - the folder itself, not a temporary file
TICK_S = 0.5
ORPHAN_GRACE_S = 2.0
"""How long the others may tidy up once the root is gone, before they are killed."""
KILL_LIMIT_S = 20.0
LOG_BACKLOG_BYTES = 8 << 20
LOG_FD = 3


class Proc(NamedTuple):
    pid: int
    started_ticks: int


class Segment(NamedTuple):
    """An entry of /dev/shm; the inode tells a later entry of the same name apart."""

    name: str
    inode: int


def read_stat(pid: int) -> tuple[int, int, str] | None:
    """(parent, start time in clock ticks, state) of a process; state ``Z`` only when no thread of it lives."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rsplit(b")", 1)[1].split()
    except (OSError, IndexError):
        return None
    state = fields[0].decode() if int(fields[17]) <= 1 else "R"
    return int(fields[1]), int(fields[19]), state


def descendants(roots: set[int]) -> list[Proc]:
    """Living processes below ``roots`` (which are left out), zombies left out, parents first."""
    parents: dict[int, tuple[int, Proc]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (found := read_stat(int(name))) and found[2] not in "ZX":
            parents[int(name)] = (found[0], Proc(int(name), found[1]))
    below: list[Proc] = []
    wave = roots
    while wave:
        children = [proc for parent, proc in parents.values() if parent in wave and proc.pid not in roots]
        below += children
        wave = {proc.pid for proc in children}
    return below


def send(proc: Proc, number: int) -> bool:
    """Signal exactly this process: by pidfd, and only if it still has the remembered start time."""
    try:
        fd = os.pidfd_open(proc.pid)
    except OSError:
        return False
    try:
        found = read_stat(proc.pid)
        if found is None or found[1] != proc.started_ticks:
            return False
        signal.pidfd_send_signal(fd, number)
    except OSError:
        return False
    finally:
        os.close(fd)
    return True


def segments() -> set[Segment]:
    found = set()
    with contextlib.suppress(OSError), os.scandir(SHM) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                if entry.is_file(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_uid == os.getuid():
                    found.add(Segment(entry.name, entry.inode()))
    return found


def holds(pid: int) -> set[Segment]:
    """Shared memory that a process maps or has open."""
    found = set()
    with contextlib.suppress(OSError), open(f"/proc/{pid}/maps", errors="replace") as file:
        for line in file:
            if SHM in line and len(fields := line.split(None, 5)) == 6:
                path = fields[5].rstrip("\n")
                if path.startswith(SHM + "/") and "/" not in path[len(SHM) + 1 :]:
                    found.add(Segment(path[len(SHM) + 1 :], int(fields[4])))
    with contextlib.suppress(OSError):
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                path = os.readlink(f"/proc/{pid}/fd/{fd}")
                if path.startswith(SHM + "/"):
                    found.add(Segment(path[len(SHM) + 1 :], os.stat(f"/proc/{pid}/fd/{fd}").st_ino))
    return found


def sweep_shm(owned: set[Segment], *, tree: set[int]) -> tuple[list[str], list[str]]:
    """Unlink what only the tree used. Returns (removed, left because somebody else still holds it)."""
    here = owned & segments()
    if not here:
        return [], []
    others: set[Segment] = set()
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) not in tree:
            others |= holds(int(name))
    removed = []
    for segment in here - others:
        with contextlib.suppress(OSError):
            os.unlink(f"{SHM}/{segment.name}")
            removed.append(segment.name)
    return sorted(removed), sorted(segment.name for segment in here & others)


def sweep_private(folder: str, marker: str) -> list[str]:
    """Remove the server's temporary folder when it carries our marker, else only the sockets in it."""
    if not folder or not os.path.isdir(folder):
        return []
    if marker and os.path.isfile(os.path.join(folder, marker)):
        shutil.rmtree(folder, ignore_errors=True)
        return [folder]
    removed = []
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        with contextlib.suppress(OSError):
            if stat.S_ISSOCK(os.lstat(path).st_mode):
                os.unlink(path)
                removed.append(path)
    return removed


class ShmLedger:
    """Remembers which entries of /dev/shm the tree used. Processes are looked at only when an entry is new."""

    def __init__(self) -> None:
        self.before = segments()
        self.owned: set[Segment] = set()
        self.looks: dict[Segment, int] = {}

    def look(self, tree: list[Proc], *, last: bool = False) -> bool:
        """True when something was added."""
        new = {s for s in segments() - self.before - self.owned if last or self.looks.get(s, 0) < 8}
        if not new:
            return False
        for segment in new:
            self.looks[segment] = self.looks.get(segment, 0) + 1
        found: set[Segment] = set()
        for proc in tree:
            found |= holds(proc.pid)
        self.owned |= found & new
        return bool(found & new)


class Guardian:
    def __init__(self, order: dict[str, Any]) -> None:
        self.order = order
        self.pid = os.getpid()
        self.shm = ShmLedger()
        self.next_look = 0.0
        self.tree: list[Proc] = []
        self.ever: set[int] = set()
        self.root: Proc | None = None
        self.root_gone_at: float | None = None
        self.backlog: deque[bytes] = deque()
        self.backlog_bytes = self.dropped_bytes = 0
        self.reader_gone = False

    def say(self, **event: Any) -> None:
        with contextlib.suppress(OSError):
            os.write(1, json.dumps(event).encode() + b"\n")

    def start(self) -> None:
        log_read, log_write = os.pipe()
        error_read, error_write = os.pipe()
        pid = os.fork()
        if pid == 0:
            self._become_server(log_write, error_write)
        os.close(log_write)
        os.close(error_write)
        failed = os.read(error_read, 4096)
        os.close(error_read)
        self.log_fd = log_read
        os.set_blocking(log_read, False)
        if failed:
            os.waitpid(pid, 0)
            self.say(event="failed", error=failed.decode(errors="replace"))
            sys.exit(1)
        found = read_stat(pid)
        self.root = Proc(pid, found[1] if found else 0)
        self.say(event="started", pid=pid, started_ticks=self.root.started_ticks)

    def _become_server(self, log_fd: int, error_fd: int) -> None:
        """In the child. The root dies with the guardian; the others are then found by sparkdiag (orphans.py)."""
        try:
            os.setsid()
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != self.pid:
                os._exit(1)
            for number in (signal.SIGPIPE, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, ())
            null = os.open(os.devnull, os.O_RDONLY)
            for source, target in ((null, 0), (log_fd, 1), (log_fd, 2)):
                os.dup2(source, target)
            os.close(LOG_FD)
            os.execvpe(self.order["argv"][0], self.order["argv"], self.order["env"])  # noqa: S606
        except BaseException as error:
            os.write(error_fd, f"{self.order['argv'][0]}: {error}".encode())
        os._exit(127)

    def reap(self) -> bool:
        """Collect the dead; True when no child is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return True
            if pid == 0:
                return False
            if self.root and pid == self.root.pid and self.root_gone_at is None:
                self.root_gone_at = time.monotonic()
                self.pump()
                self.say(event="exited", code=os.waitstatus_to_exitcode(status))

    def pump(self) -> None:
        """Move the server's output on, as far as it goes without waiting."""
        with contextlib.suppress(BlockingIOError, OSError):
            while data := os.read(self.log_fd, 1 << 16):
                if self.backlog_bytes + len(data) > LOG_BACKLOG_BYTES:
                    self.dropped_bytes += len(data)
                elif not self.reader_gone:
                    self.backlog.append(data)
                    self.backlog_bytes += len(data)
        try:
            while self.backlog:
                written = os.write(LOG_FD, self.backlog[0])
                self.backlog_bytes -= written
                rest = self.backlog.popleft()[written:]
                if rest:
                    self.backlog.appendleft(rest)
        except BlockingIOError:
            pass
        except OSError:
            self.reader_gone = True
            self.backlog.clear()

    def look(self, *, last: bool = False) -> None:
        """Who is in the tree, what shared memory it uses; at most every ``TICK_S``, however much is logged."""
        if not last and time.monotonic() < self.next_look:
            return
        self.next_look = time.monotonic() + TICK_S
        tree = descendants({self.pid})
        added = self.shm.look(tree, last=last)
        if tree != self.tree or added:
            self.tree = tree
            self.ever |= {proc.pid for proc in tree}
            self.say(event="tree", processes=tree, shm=sorted(self.shm.owned))

    def watch(self) -> float:
        """Until somebody wants the end. Returns the grace for SIGTERM in seconds."""
        wakeup, pending = _wakeup(), b""
        while True:
            wanted = [0, self.log_fd, wakeup]
            ready = select.select(wanted, [LOG_FD] if self.backlog else [], [], TICK_S)[0]
            if wakeup in ready:
                numbers = os.read(wakeup, 4096)
                if signal.SIGTERM in numbers:
                    return 5.0
            self.pump()
            if self.reap() or (self.root_gone_at and time.monotonic() - self.root_gone_at > ORPHAN_GRACE_S):
                return 0.0
            if 0 in ready:
                data = os.read(0, 4096)
                pending += data
                if not data:
                    return 3.0
                if b"\n" in pending:
                    return float(json.loads(pending.split(b"\n", 1)[0]).get("stop_grace_s", 10))
            self.look()

    def end(self, grace_s: float) -> None:
        began = time.monotonic()
        self.look(last=True)
        if self.root and self.root_gone_at is None:
            for proc in self.tree:
                send(proc, signal.SIGCONT)
            send(self.root, signal.SIGTERM)
        while not self.reap() and time.monotonic() - began < grace_s:
            if self.root_gone_at and time.monotonic() - self.root_gone_at > ORPHAN_GRACE_S:
                break
            self.pump()
            self.look(last=True)
            time.sleep(0.05)
        killed: set[int] = set()
        deadline = time.monotonic() + KILL_LIMIT_S
        while not self.reap() and time.monotonic() < deadline:
            for proc in descendants({self.pid}):
                if send(proc, signal.SIGKILL):
                    killed.add(proc.pid)
            self.pump()
            time.sleep(0.02)
        self.pump()
        left = [proc.pid for proc in descendants({self.pid})]
        removed, kept = sweep_shm(self.shm.owned, tree=self.ever)
        removed += sweep_private(self.order.get("private_dir", ""), self.order.get("marker", "")) if not left else []
        self.say(
            event="gone",
            took_s=round(time.monotonic() - began, 3),
            killed=sorted(killed),
            left=left,
            removed=removed,
            kept=kept,
            log_dropped_bytes=self.dropped_bytes,
        )


def _wakeup() -> int:
    """A pipe that becomes readable on SIGCHLD and SIGTERM; nobody's Ctrl-C or hangup ends the guardian."""
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    os.set_blocking(write_end, False)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    return read_end


def main() -> None:
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    order = b""
    while not order.endswith(b"\n"):
        data = os.read(0, 1 << 16)
        if not data:
            return
        order += data
    given = int(sys.argv[1])
    if given != LOG_FD:
        os.dup2(given, LOG_FD)
        os.close(given)
    for fd in (1, LOG_FD):
        os.set_blocking(fd, False)
    os.set_inheritable(LOG_FD, False)
    guardian = Guardian(json.loads(order))
    guardian.start()
    guardian.end(guardian.watch())


if __name__ == "__main__":
    main()
