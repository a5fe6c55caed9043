"""Starts a server under its guardian and ends it again, with everything it started.

The guardian (see there) owns the tree, and has a keeper for when it is killed; this side reads their events and the
server's output, each in a thread. Should both be killed, this side ends the tree itself.
"""

import contextlib
import json
import os
import secrets
import select
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sparkdiag.errors import GuardianKilled, ServerError
from sparkdiag.evidence.base import Value
from sparkdiag.evidence.processes import ServerExit
from sparkdiag.serving import guardian, orphans, private_folder, readiness, tree
from sparkdiag.serving.command import ServerCommand
from sparkdiag.serving.server_log import LineSplitter
from sparkdiag.serving.shared_memory import Segment, ShmLedger
from sparkdiag.serving.tree_folder import sweep_folder

START_TIMEOUT_S = 20.0
LAST_LINES = 20
VITAL = ("::EngineCore", "::Worker")
"""Titles of the processes without which vLLM serves nothing more (``VLLM::Worker_TP0_DCP0``; the prefix can be set)."""
LAST_WORDS = ("[shutdown] Process manager: send sigterm to process",)
"""Logged at once by a vLLM that lost its engine while loading, which it then takes up to 10 s to end over (0.32.0)."""


class StopReport(Value):
    """How the shutdown went."""

    took_s: float
    left: tuple[int, ...] = ()
    """Pids that could not be ended: none, unless a process hangs in the kernel."""
    killed: tuple[int, ...] = ()
    """Pids that SIGTERM did not end in time."""
    removed: tuple[str, ...] = ()
    """Shared memory and temporary files of the tree."""
    kept: tuple[str, ...] = ()
    """Shared memory that a process outside the tree uses too."""
    log_dropped_bytes: int = 0
    """Output of the server that is not in the log, because sparkdiag did not read for long (it was stopped)."""
    log_problem: str | None = None
    """Why the log is not whole, where the disk refused some of it."""


def launch(
    command: ServerCommand,
    *,
    log_path: Path,
    private_dir: Path,
    make: Sequence[str] | None = None,
    redact: Callable[[str], str] = str,
    clock: Callable[[], float] = time.monotonic,
) -> "LaunchedServer":
    """Start the server. Its output goes to ``log_path`` line by line, through ``redact``.

    ``private_dir`` is made by the guardian, with the folders ``make`` in it, and removed with the tree; it must not be
    there (``unused_path``). Without ``make`` it is the caller's: removed with the tree if ``make_private_folder`` made
    it; else only the sockets in it. ``clock`` stamps the server's exit. Raises ``ServerError`` when the folder cannot
    be made or the command not be executed, ``GuardianKilled`` when the guardian was killed before it was.
    """
    token = secrets.token_hex(8)
    env = {name: value for name, value in os.environ.items() if name not in command.drop_env}
    env |= command.env | {orphans.TREE_VARIABLE: token}
    server = LaunchedServer(
        command,
        log_path=log_path,
        private_dir=private_dir,
        make=make,
        token=token,
        redact=redact,
        clock=clock,
    )
    try:
        server.start(env)
    except (ServerError, GuardianKilled):
        raise
    except BaseException:  # a signal's, perhaps while the guardian had already started the server
        server.stop(0)
        raise
    return server


class LaunchedServer:
    """A server that is ours to end. Also a context manager: leaving it stops the server."""

    def __init__(
        self,
        command: ServerCommand,
        *,
        log_path: Path,
        private_dir: Path,
        make: Sequence[str] | None,
        token: str,
        redact: Callable[[str], str],
        clock: Callable[[], float],
    ) -> None:
        self.command = command
        self.base_url = command.base_url
        self.root_pid = 0
        self._private_dir = private_dir
        self._make = make
        self._token = token
        self._clock = clock
        self._guardian: subprocess.Popen[bytes] | None = None
        self._inner: tree.Proc | None = None
        self._tree: set[tree.Proc] = set()
        self._shm = ShmLedger()
        self._exit: ServerExit | None = None
        self._report: StopReport | None = None
        self._failure: str | None = None
        self._remedy = "sparkdiag env list"
        self._guardian_killed = False
        self._stopping = False
        self._started = threading.Event()
        self._gone = threading.Event()
        self._output = _Output(log_path, redact)

    def start(self, env: dict[str, str]) -> None:
        """Start guardian and server; returns once the server's program runs."""
        read_end, write_end = os.pipe()
        script = Path(guardian.__file__)
        self._guardian = subprocess.Popen(
            [sys.executable, "-I", "-S", str(script), str(write_end)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=(write_end,),
            start_new_session=True,
        )
        os.close(write_end)
        self._output.follow(read_end)
        self._events = threading.Thread(target=self._read_events, name="guardian-events", daemon=True)
        self._events.start()
        order = {
            "argv": self.command.argv,
            "env": env,
            "private_dir": str(self._private_dir),
            "make": self._make,
            "marker": private_folder.MARKER,
            "vital": VITAL,
            "last_words": LAST_WORDS,
        }
        self._tell(json.dumps(order))
        if silent := not self._started.wait(START_TIMEOUT_S):
            self._guardian.kill()
            self._hang_up()
            self._gone.wait(START_TIMEOUT_S)
        if not self.root_pid:
            self._close()
            if self._guardian_killed and not silent:
                raise readiness.guardian_killed("before it ran")
            raise ServerError(
                f"the server could not be started: {self._failure or 'its guardian did not answer'}",
                remedy=self._remedy,
            )

    def poll(self) -> ServerExit | None:
        """How the server ended, where nobody had asked it to; None while it runs."""
        return self._exit

    @property
    def last_lines(self) -> tuple[str, ...]:
        """The newest log lines, oldest first."""
        return tuple(self._output.lines)

    @property
    def tree_pids(self) -> frozenset[int]:
        """The tree's processes as last seen."""
        return frozenset(proc.pid for proc in self._tree)

    def wait_ready(
        self, timeout_s: float, on_wait: Callable[[float, str, str | None], None] = lambda *_: None
    ) -> float:
        """Wait until /health answers; returns the seconds it took (see ``readiness.wait_ready``)."""
        return readiness.wait_ready(self, timeout_s=timeout_s, on_wait=on_wait)

    def wait_gone(self, timeout_s: float) -> bool:
        """True once nothing is left of the tree."""
        return self._gone.wait(timeout_s)

    def stop(self, timeout_s: float = 10.0) -> StopReport:
        """SIGTERM to the server, ``timeout_s`` of grace, then SIGKILL until no process is left.

        Again, while an earlier call was interrupted: the shorter grace counts; after its end: the same report.
        """
        began_s = time.monotonic()
        self._stopping = True
        if not self._gone.is_set():
            self._tell(json.dumps({"stop_grace_s": timeout_s}))
            if not self._gone.wait(timeout_s + guardian.KILL_LIMIT_S + 5):
                self._kill_guardians()
        self._close()
        report = self._report or StopReport(took_s=0, left=tuple(sorted(self.tree_pids)))
        took_s = round(time.monotonic() - began_s, 3)
        self._report = report.model_copy(update={"took_s": took_s, "log_problem": self._output.problem})
        return self._report

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _kill_guardians(self) -> None:
        """The guardian hangs: its keeper ends the tree; should that hang too, this process does."""
        if self._inner is not None:
            tree.send(self._inner, signal.SIGKILL)
        if not self._gone.wait(guardian.KILL_LIMIT_S + 5) and self._guardian is not None:
            self._guardian.kill()
            self._gone.wait(guardian.KILL_LIMIT_S)

    def _tell(self, line: str) -> None:
        stdin = self._guardian.stdin if self._guardian is not None else None
        if stdin is None or stdin.closed:
            return
        try:
            stdin.write(line.encode() + b"\n")
            stdin.flush()
        except OSError:
            pass  # it is gone; its end is noticed by the thread that reads its events

    def _hang_up(self) -> None:
        if self._guardian is not None and self._guardian.stdin is not None:
            with contextlib.suppress(OSError):
                self._guardian.stdin.close()

    def _close(self) -> None:
        if self._guardian is None:
            return
        try:
            self._guardian.wait(5)
        except subprocess.TimeoutExpired:
            self._guardian.kill()
            self._guardian.wait(5)
        self._events.join(5)
        self._output.close()
        self._hang_up()
        if self._failure is None:  # else the guardian has done so, or has found what is not ours
            sweep_folder(str(self._private_dir), private_folder.MARKER, made=self._make is not None)

    def _read_events(self) -> None:
        if self._guardian is not None and self._guardian.stdout is not None:
            with self._guardian.stdout as stream:
                for line in stream:
                    # A line is cut short when this process had been stopped for long.
                    with contextlib.suppress(ValueError):
                        self._take(json.loads(line))
        if self._report is None and self.root_pid:
            self._end_without_guardian()
        self._guardian_killed |= not self.root_pid and self._failure is None
        self._started.set()
        self._gone.set()

    def _take(self, event: dict[str, Any]) -> None:
        match event["event"]:
            case "started":
                self._tree = {tree.Proc(*event["root"])}
                self._inner = tree.Proc(*event["guardian"])
                self.root_pid = event["root"][0]
                self._started.set()
            case "failed":
                self._failure = event["error"]
                self._remedy = "sparkdiag doctor" if event["of"] == "folder" else self._remedy
            case "tree":
                self._tree = {tree.Proc(*proc) for proc in event["processes"]}
                self._shm.owned = {Segment(*segment) for segment in event["shm"]}
            case "broken":
                self._note_exit(None, part=event["part"])
            case "guardian_killed":
                self._note_guardian_killed()
            case "exited":
                self._note_exit(event["code"])
            case "gone":
                self._report = StopReport.model_validate(event)
                self._tree = {proc for proc in self._tree if proc.pid in event["left"]}

    def _note_exit(self, code: int | None, *, part: str = "APIServer") -> None:
        if self._stopping or self._exit is not None:
            return
        self._output.settle()
        self._exit = ServerExit(
            at_s=self._clock(),
            exit_code=code if code is not None and code >= 0 else None,
            signal=signal.Signals(-code).name if code is not None and code < 0 else None,
            process=part,
            last_log_lines=self.last_lines[-LAST_LINES:],
        )

    def _note_guardian_killed(self) -> None:
        """Somebody killed it; the kernel kills the server's root with it. Noted at once, as the request will break."""
        self._guardian_killed = True
        if not self._stopping and self._exit is None:
            self._exit = ServerExit(
                at_s=self._clock(),
                signal=signal.SIGKILL.name,
                process="APIServer",
                last_log_lines=self.last_lines[-LAST_LINES:],
                guardian_killed=True,
            )

    def _end_without_guardian(self) -> None:
        """Guardian and keeper were killed; the kernel has killed the server's root with them. End the others."""
        began_s = time.monotonic()
        self._note_guardian_killed()
        members, left = orphans.end_orphans(self._tree, token=self._token, timeout_s=10, ledger=self._shm)
        removed = orphans.sweep(
            private_dir=self._private_dir,
            marker=private_folder.MARKER,
            made=self._make is not None,
            shm=self._shm.owned,
            tree=members,
        )
        self._report = StopReport(
            took_s=time.monotonic() - began_s,
            left=left,
            killed=tuple(sorted(proc.pid for proc in members)),
            removed=removed,
        )
        self._tree = set()


SETTLED_S = 0.4
"""Output that pauses for so long has been read. Each pause wakes a thread beside the server: not more often."""


class _Output:
    """Follows the server's output: to the log file, and the newest lines in memory."""

    def __init__(self, path: Path, redact: Callable[[str], str]) -> None:
        self.path = path
        self.redact = redact
        self.lines: deque[str] = deque(maxlen=200)
        self.problem: str | None = None
        """The first thing that could not be written."""
        self._idle = threading.Event()

    def follow(self, fd: int) -> None:
        self._thread = threading.Thread(target=self._read, args=(fd,), name="server-log", daemon=True)
        self._thread.start()

    def settle(self) -> None:
        """Wait a moment until what has been written is read."""
        self._idle.clear()
        self._idle.wait(1)

    def close(self) -> None:
        self._thread.join(5)

    def _read(self, fd: int) -> None:
        splitter = LineSplitter(self.redact)
        data = b"-"
        try:
            while data:
                if not select.select([fd], [], [], SETTLED_S)[0]:
                    self._idle.set()
                    continue
                data = os.read(fd, 1 << 16)
                self._keep(splitter.feed(data))
        finally:
            self._idle.set()
            os.close(fd)

    def _keep(self, lines: list[str]) -> None:
        """What the disk refuses is lost. The server is read on all the same: its next line would break it."""
        self.lines.extend(lines)
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.writelines(line + "\n" for line in lines)
        except OSError as error:
            self.problem = self.problem or f"{self.path.name} is not whole: {error.strerror or error}"
