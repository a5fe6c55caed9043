"""Owns one launched server's process tree, as two processes of their own: ``python -I -S guardian.py``.

Standard library only. vLLM's children survive their parent, so somebody who cannot be reached by what kills sparkdiag
or the server must end them: the *guardian* leads its own session, is the tree's *subreaper* (orphans become its
children, whatever sessions they made), and holds a pipe whose end of file means that sparkdiag is gone. Its parent,
the *keeper*, is a subreaper too and sleeps: should the guardian be killed, the tree becomes the keeper's, who ends it.
So of sparkdiag, guardian and keeper any two may be killed at once; if all three are, only the server's root is sure to
die (it asked the kernel for that).

Standard input: one JSON line (``argv``, ``env``, ``private_dir``, ``make``, ``marker``, ``vital``, ``last_words``),
later ``{"stop_grace_s": S}``, again with a smaller S where it is to go faster, or the end of the file. Standard output:
one JSON line an event (``started``, ``failed``, ``tree``, ``broken``, ``exited``, ``guardian_killed``, ``gone``). The
file descriptor named by the only argument gets the server's output as it came; when nobody reads, the newest is
dropped: the server is never held up.

The server's temporary folder ``private_dir`` is removed with the tree (``tree_folder.py``). Where ``make`` is a list,
the guardian makes it, with these folders in it: only when it and the keeper are two, and both know the path, is there
always somebody left to remove it.

A server that lost a process whose title holds one of ``vital``, or that said one of its ``last_words``, will not serve
again: it has ``ORPHAN_GRACE_S`` to end by itself.

Only descendants are ever signalled, by pidfd and after a look at their start time.
"""

# A script that starts in milliseconds imports little, so no pathlib:
# ruff: noqa: PTH120

import contextlib
import ctypes
import json
import os
import select
import signal
import sys
import time
from collections import deque
from typing import Any

if __name__ == "__main__":  # -I and -S left only the standard library; what is ours comes after it
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))))

from sparkdiag.serving.shared_memory import Segment, ShmLedger, new_entries_fd, sweep_shm
from sparkdiag.serving.tree import Proc, descendants, freeze, read_stat, send, title_of
from sparkdiag.serving.tree_folder import make_folder, sweep_folder

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
TICK_S = 0.5
LOOK_SHARE = 0.1
"""Of one core, at most, for looking while much is new in /dev/shm."""
ORPHAN_GRACE_S = 2.0
"""How long the others may tidy up once the root or a vital process is gone, before they are killed."""
ALONE_GRACE_S = 2.0
"""How long the server may take over SIGTERM when sparkdiag is gone or the guardian was told to end."""
KILL_LIMIT_S = 20.0
LOG_BACKLOG_BYTES = 8 << 20
LOG_FD = 3


class Guardian:
    def __init__(self, order: dict[str, Any]) -> None:
        self.order = order
        self.shm = ShmLedger()
        self.next_look = self.last_look = 0.0
        self.look_cost_s = 0.0
        self.tree: list[Proc] = []
        self.ever: set[int] = set()
        self.root: Proc | None = None
        self.root_gone_at: float | None = None
        self.vital: dict[Proc, str] = {}
        self.broken_at: float | None = None
        self.broken_by = ""
        self.log_fd = -1
        self.keeper_fd = -1
        self.asked_for = b""
        self.alone = False
        self.backlog: deque[bytes] = deque()
        self.backlog_bytes = self.dropped_bytes = 0
        self.reader_gone = False

    def say(self, **event: Any) -> None:
        line = json.dumps(event).encode() + b"\n"
        for fd in (1, self.keeper_fd):
            with contextlib.suppress(OSError):
                os.write(fd, line)

    def make_folder(self) -> bool:
        """Make the server's folder where that was ordered; False when it cannot be made."""
        folder, inside = self.order.get("private_dir", ""), self.order.get("make")
        if inside is None:
            return True
        try:
            make_folder(folder, self.order["marker"], inside)
        except OSError as error:
            self.forget_folder()  # what is there now was not made here
            why = f"its temporary folder {folder} could not be made: {error.strerror or error}"
            self.say(event="failed", of="folder", error=why)
            return False
        return True

    def forget_folder(self) -> None:
        self.order["private_dir"] = ""

    def sweep_folder(self) -> list[str]:
        order = self.order
        return sweep_folder(order.get("private_dir", ""), order.get("marker", ""), made=order.get("make") is not None)

    def start(self) -> bool:
        """Start the server; False when its program cannot be executed."""
        log_read, log_write = os.pipe()
        error_read, error_write = os.pipe()
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            self._become_server(log_write, error_write, parent)
        os.close(log_write)
        os.close(error_write)
        failed = os.read(error_read, 4096)
        os.close(error_read)
        self.log_fd = log_read
        os.set_blocking(log_read, False)
        if failed:
            os.waitpid(pid, 0)
            self.sweep_folder()
            self.say(event="failed", of="program", error=failed.decode(errors="replace"))
            return False
        found, own = read_stat(pid), read_stat(parent)
        self.root = Proc(pid, found[1] if found else 0)
        self.say(event="started", root=self.root, guardian=Proc(parent, own[1] if own else 0))
        return True

    def _become_server(self, log_fd: int, error_fd: int, parent: int) -> None:
        """In the child. The root dies with the guardian; the others are then the keeper's."""
        try:
            os.setsid()
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != parent:
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
                if any(words.encode() in data for words in self.order.get("last_words", ())):
                    self.break_off("server, by its own last words,")
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
        """Who is in the tree, what shared memory it uses; when it is time, however much is logged."""
        if not last and time.monotonic() < self.next_look:
            return
        began = time.process_time()  # not what others take of the machine meanwhile
        tree = descendants({os.getpid()})
        added = self.shm.look(tree, last=last)
        if tree != self.tree or added:
            self.tree = tree
            self.ever |= {proc.pid for proc in tree}
            self.say(event="tree", processes=tree, shm=sorted(self.shm.owned))
        self.look_at_vital(tree)
        self.last_look = time.monotonic()
        self.look_cost_s = time.process_time() - began
        self.next_look = self.last_look + TICK_S

    def look_at_vital(self, tree: list[Proc]) -> None:
        """Titles come late in a process's life, so the untitled are asked again; a title that is taken is a fork's,
        which may end."""
        marks = self.order.get("vital", ())
        for proc in tree:  # parents first: the title is the parent's
            title = "" if proc in self.vital else title_of(proc.pid)
            if title not in self.vital.values() and any(mark in title for mark in marks):
                self.vital[proc] = title
        for proc in self.vital.keys() - set(tree):
            self.break_off(self.vital[proc])

    def break_off(self, name: str) -> None:
        if self.broken_at is None:
            self.broken_at, self.broken_by = time.monotonic(), name

    def look_soon(self) -> None:
        """Something is new in /dev/shm, and its maker may not hold it for long."""
        self.next_look = min(self.next_look, self.last_look + self.look_cost_s / LOOK_SHARE)

    def asked(self) -> float | None:
        """The grace in seconds that sparkdiag asks for, or that its end leaves; None while it says nothing."""
        if self.alone or not select.select([0], [], [], 0)[0]:
            return None
        data = os.read(0, 4096)
        if not data:
            self.alone = True
            return ALONE_GRACE_S
        *lines, self.asked_for = (self.asked_for + data).split(b"\n")
        return min((float(json.loads(line)["stop_grace_s"]) for line in lines), default=None)

    def watch(self) -> float:
        """Until somebody wants the end. Returns the grace for SIGTERM in seconds."""
        wakeup, news = _wakeup(), new_entries_fd()
        while True:
            wanted = [0, self.log_fd, wakeup, *([] if news is None else [news])]
            wait_s = min(TICK_S, max(0.0, self.next_look - time.monotonic()))
            ready = select.select(wanted, [LOG_FD] if self.backlog else [], [], wait_s)[0]
            if wakeup in ready and signal.SIGTERM in os.read(wakeup, 4096):
                return ALONE_GRACE_S
            if news in ready:
                os.read(news, 1 << 16)
                self.look_soon()
            self.pump()
            if self.reap() or (self.root_gone_at and time.monotonic() - self.root_gone_at > ORPHAN_GRACE_S):
                return 0.0
            if self.broken_at and time.monotonic() - self.broken_at > ORPHAN_GRACE_S:
                self.say(event="broken", part=self.broken_by)
                return 0.0
            if (grace_s := self.asked()) is not None:
                return grace_s
            self.look()

    def end(self, grace_s: float) -> None:
        began = time.monotonic()
        self.look(last=True)
        if self.root and self.root_gone_at is None:
            for proc in self.tree:
                send(proc, signal.SIGCONT)
            send(self.root, signal.SIGTERM)
        self._wait_for_tidying(began + grace_s)
        freeze({os.getpid()})
        self.look(last=True)  # at what cannot change any more
        killed: set[int] = set()
        deadline = time.monotonic() + KILL_LIMIT_S
        while not self.reap() and time.monotonic() < deadline:
            for proc in descendants({os.getpid()}):
                if send(proc, signal.SIGKILL):
                    killed.add(proc.pid)
            self.pump()
            time.sleep(0.02)
        self.pump()
        self.shm.look((), last=True)
        left = [proc.pid for proc in descendants({os.getpid()})]
        removed, kept = sweep_shm(self.shm.owned, tree=self.ever)
        removed += self.sweep_folder() if not left else []
        self.say(
            event="gone",
            took_s=round(time.monotonic() - began, 3),
            killed=sorted(killed),
            left=left,
            removed=removed,
            kept=kept,
            log_dropped_bytes=self.dropped_bytes,
        )

    def _wait_for_tidying(self, deadline: float) -> None:
        """Until the tree is gone or has had its time; who asks again wants it faster, never slower."""
        while not self.reap() and time.monotonic() < deadline:
            if self.root_gone_at and time.monotonic() - self.root_gone_at > ORPHAN_GRACE_S:
                break
            self.pump()
            self.look(last=True)
            time.sleep(0.05)
            if (grace_s := self.asked()) is not None:
                deadline = min(deadline, time.monotonic() + grace_s)


def keep(guardian: Guardian, pid: int, told_fd: int) -> None:
    """Wait for the guardian's end; should it have been killed, end the tree, which is this process's now."""
    os.close(0)
    os.close(LOG_FD)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(pid, signal.SIGTERM))
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    rest = b""
    while data := os.read(told_fd, 1 << 16):
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            event = json.loads(line)
            if event["event"] == "started":
                guardian.root = Proc(*event["root"])
            elif event["event"] == "failed":
                guardian.forget_folder()
            elif event["event"] == "tree":
                guardian.ever |= {proc[0] for proc in event["processes"]}
                guardian.shm.owned = {Segment(*segment) for segment in event["shm"]}
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    status = os.waitpid(pid, 0)[1]
    if os.WIFSIGNALED(status):
        guardian.say(event="guardian_killed")
    if status != 0:
        guardian.end(0.0)


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
    guardian = Guardian(json.loads(order))
    told_fd, guardian.keeper_fd = os.pipe()
    pid = os.fork()
    if pid:
        os.close(guardian.keeper_fd)
        guardian.keeper_fd = -1
        keep(guardian, pid, told_fd)
        return
    os.close(told_fd)
    os.setsid()
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for fd in (1, LOG_FD, guardian.keeper_fd):
        os.set_blocking(fd, False)
    os.set_inheritable(LOG_FD, False)
    if guardian.make_folder() and guardian.start():
        guardian.end(guardian.watch())


if __name__ == "__main__":
    main()
