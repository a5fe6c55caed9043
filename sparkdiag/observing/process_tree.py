"""The server's process tree, remembered: who was there, who still is.

vLLM's workers outlive their parents (after a kill -9 of the API server the rest was alive a minute later), so a tree
walked from the root alone loses them. This one walks from the root and from every process it has seen, and knows a
process by pid *and* start time, because a pid is reused.
"""

import os
from collections.abc import Iterable
from pathlib import PurePosixPath

import psutil

from sparkdiag.evidence.processes import ProcessInfo
from sparkdiag.harmless.excerpt import excerpt
from sparkdiag.observing.titles import classify, is_sparkdiag, shown_title

MOST_PROCESSES = 1000
ALL_EVERY = 8
"""Scans of /proc; the scans between look only at processes that are new."""

ProcessKey = tuple[int, float]
"""(pid, psutil's create_time): the identity of a process."""


def key_of(process: ProcessInfo) -> ProcessKey:
    """The identity of a process."""
    return process.pid, process.started_at_s


def is_alive(key: ProcessKey) -> bool:
    """Whether this very process still runs (a zombie does not)."""
    try:
        process = psutil.Process(key[0])
        return process.create_time() == key[1] and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def with_api_server(processes: tuple[ProcessInfo, ...]) -> tuple[ProcessInfo, ...]:
    """Where no command line looks like vLLM's API server, the Python process above an EngineCore is taken for it. Pure.

    So a server started by a script of the user's own is found too.
    """
    if any(process.role == "api_server" for process in processes):
        return processes
    parents = {process.parent_pid for process in processes if process.role == "engine_core"}
    return tuple(
        process.model_copy(update={"role": "api_server"})
        if process.role == "other" and process.pid in parents and process.python is not None
        else process
        for process in processes
    )


class ProcessTree:
    """The living processes of one server. One thread at a time may ``look``.

    Several roots are of a server whose API server has died: what it left has no common ancestor any more. No root: a
    server of which only its port is known.
    """

    def __init__(self, *root_pids: int) -> None:
        self._root_pids = root_pids
        self._known: dict[ProcessKey, psutil.Process] = {}
        self._described: dict[ProcessKey, tuple[list[str], ProcessInfo]] = {}
        self._root_seen = False
        self._strangers: frozenset[str] = frozenset()
        """Entries of /proc that the last scan found; who is not the server's does not become so later, but for the
        rare orphan that one of the server's processes adopts."""
        self._scans = 0

    def look(self) -> tuple[ProcessInfo, ...]:
        """Every living process of the tree, parents before children; empty when nothing is left of it.

        Neither the guardian above the server nor a py-spy is part of it. A process that ends while it is looked at is
        left out; that is no error.
        """
        found: dict[ProcessKey, ProcessInfo] = {}
        for process in self._living():
            info = self._description(process)
            if info is not None:
                found[key_of(info)] = info
        self._described = {key: kept for key, kept in self._described.items() if key in found}
        return with_api_server(tuple(sorted(found.values(), key=lambda info: (info.started_at_s, info.pid))))

    def _living(self) -> Iterable[psutil.Process]:
        if not self._root_seen:
            # Once: were a root's pid reused later, the new process would not be the server's.
            for root_pid in self._root_pids:
                self._remember(_opened(root_pid))
            self._root_seen = True
        self._known = {key: process for key, process in self._known.items() if is_alive(key)}
        children = self._new_children()
        waiting = list(self._known)
        while waiting:
            parent_pid, started_at_s = waiting.pop()
            for pid in children.get(parent_pid, ()):
                child = self._remember(_opened(pid), not_before_s=started_at_s)
                waiting += [child] if child is not None else []
        return tuple(self._known.values())

    def _new_children(self) -> dict[int, list[int]]:
        """Children by parent, of the processes that were not there at the last scan; now and then of all."""
        entries = frozenset(name for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208 - as below
        known = frozenset() if self._scans % ALL_EVERY == 0 else self._strangers
        self._scans += 1
        self._strangers = entries
        return _children_by_parent(entries - known)

    def _description(self, process: psutil.Process) -> ProcessInfo | None:
        """Made anew only where the command line has changed: it is what costs, and vLLM sets its titles but once."""
        try:
            key, cmdline = (process.pid, process.create_time()), process.cmdline()
        except psutil.Error:
            return None
        before = self._described.get(key)
        if before is not None and before[0] == cmdline:
            info: ProcessInfo | None = before[1]
        else:
            info = _describe(process, cmdline=cmdline)
        if info is not None:
            parent_pid = _parent_pid(process.pid)
            info = info if parent_pid in (None, info.parent_pid) else info.model_copy(update={"parent_pid": parent_pid})
            self._described[key] = (cmdline, info)
        return info

    def _remember(self, process: psutil.Process | None, *, not_before_s: float = 0.0) -> ProcessKey | None:
        """Its key where it is new; None where it is known, gone, or one too many, or older than its parent: then the
        parent's pid has changed hands."""
        if process is None or process.pid == os.getpid() or len(self._known) >= MOST_PROCESSES:
            return None
        try:
            key = (process.pid, process.create_time())
        except psutil.Error:
            return None
        if key in self._known or key[1] < not_before_s:
            return None
        self._known[key] = process
        return key


def _opened(pid: int) -> psutil.Process | None:
    try:
        return psutil.Process(pid)
    except psutil.Error:
        return None


def _children_by_parent(entries: Iterable[str]) -> dict[int, list[int]]:
    """These processes by their parents; psutil scans all of /proc once for each process asked about."""
    found: dict[int, list[int]] = {}
    for name in entries:
        parent_pid = _parent_pid(name)
        if parent_pid is not None:
            found.setdefault(parent_pid, []).append(int(name))
    return found


def _parent_pid(pid: int | str) -> int | None:
    """None where the process has ended meanwhile."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - thousands of them, every other second
            # proc_pid_stat(5); what precedes the last parenthesis is the process's own choice.
            return int(file.read().rpartition(b")")[2].split(None, 2)[1])
    except (OSError, ValueError, IndexError):
        return None


def _describe(process: psutil.Process, *, cmdline: list[str]) -> ProcessInfo | None:
    try:
        started_at_s = process.create_time()
        parent_pid = process.ppid()
    except psutil.Error:
        return None
    if is_sparkdiag(cmdline):
        return None
    role, ranks = classify(cmdline)
    return ProcessInfo(
        pid=process.pid,
        parent_pid=parent_pid,
        started_at_s=started_at_s,
        role=role,
        ranks=ranks,
        title=shown_title(cmdline),
        python=_interpreter(process, cmdline),
    )


def _interpreter(process: psutil.Process, cmdline: list[str]) -> str | None:
    """The environment's own ``bin/python`` where the command line still shows it, else the program it links to."""
    if cmdline and cmdline[0].startswith("/") and PurePosixPath(cmdline[0]).name.startswith("python"):
        return excerpt(cmdline[0], limit=400)
    try:
        executable = process.exe()
    except psutil.Error:
        return None
    return excerpt(executable, limit=400) if PurePosixPath(executable).name.startswith("python") else None
