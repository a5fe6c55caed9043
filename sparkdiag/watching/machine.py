"""The processes of this machine as kinship needs them, and their numbers in their own pid namespaces."""

import os
import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

import psutil

from sparkdiag.evidence.titles import classify, is_sparkdiag, shown_title
from sparkdiag.harmless.printable import cut
from sparkdiag.watching.lineage import Relative
from sparkdiag.watching.sockets import PROC

_SPAWNING = re.compile(r"multiprocessing\.(?:spawn|forkserver)\b")
_PORT = re.compile(r"--port(?:=|\s+)([0-9]{1,5})\b")
_PROXY_PORT = re.compile(r"-container-port(?:=|\s+)([0-9]{1,5})\b")
NAME_CHARACTERS = 80


class Machine:
    """Everybody at one moment. A process that ends meanwhile, or may not be read, is left out."""

    def __init__(self, everybody: dict[int, Relative], cmdlines: dict[int, tuple[str, ...]]) -> None:
        self.everybody = everybody
        self._cmdlines = cmdlines

    def port_of(self, pid: int) -> int | None:
        """The port that the process's command line asks for: for people, and where its sockets may not be read."""
        return _number(_PORT, self._cmdlines.get(pid, ()))

    def proxied_port(self, pid: int) -> int | None:
        """The port inside of the container that this process, a ``docker-proxy``, leads to."""
        cmdline = self._cmdlines.get(pid, ())
        if not cmdline or PurePosixPath(cmdline[0]).name != "docker-proxy":
            return None
        return _number(_PROXY_PORT, cmdline)

    def speaks_tls(self, pid: int) -> bool:
        """Whether the command line names a certificate."""
        return any(word.startswith("--ssl-certfile") for word in self._cmdlines.get(pid, ()))

    def shown(self, pids: Iterable[int]) -> str:
        """``4711 (VLLM::EngineCore), 4712 (…)``, for a message."""
        known = [self.everybody[pid] for pid in pids if pid in self.everybody]
        return ", ".join(f"{one.pid} ({one.name})" for one in known)


def look_at_machine() -> Machine:
    """One scan of /proc; some milliseconds a hundred processes."""
    everybody: dict[int, Relative] = {}
    cmdlines: dict[int, tuple[str, ...]] = {}
    for pid in psutil.pids():
        try:
            process = psutil.Process(pid)
            with process.oneshot():
                cmdline = tuple(process.cmdline())
                everybody[pid] = _relative(process, cmdline)
        except (psutil.Error, OSError):
            continue
        cmdlines[pid] = cmdline
    return Machine(everybody, cmdlines)


def _relative(process: psutil.Process, cmdline: tuple[str, ...]) -> Relative:
    pid = process.pid
    return Relative(
        pid=pid,
        parent_pid=process.ppid(),
        started_at_s=process.create_time(),
        role=classify(cmdline)[0],
        group=(os.getsid(pid), os.getpgid(pid)),
        python=bool(cmdline) and PurePosixPath(cmdline[0]).name.startswith("python"),
        spawning=bool(_SPAWNING.search(" ".join(cmdline[:6]))),
        ours=pid == os.getpid() or is_sparkdiag(cmdline),
        name=cut(shown_title(cmdline), NAME_CHARACTERS) or "?",
    )


def inner_pid(pid: int, *, proc: Path = PROC) -> int | None:
    """The process's number in the innermost pid namespace, where that is another (``NSpid`` in proc_pid_status(5))."""
    try:
        lines = (proc / str(pid) / "status").read_text(encoding="ascii", errors="replace").splitlines()
        numbers = next((line.split()[1:] for line in lines if line.startswith("NSpid:")), [])
        return int(numbers[-1]) if len(numbers) > 1 else None
    except (OSError, ValueError):
        return None


def _number(pattern: re.Pattern[str], cmdline: tuple[str, ...]) -> int | None:
    found = pattern.search(" ".join(cmdline[:500]))
    return int(found[1]) if found is not None else None
