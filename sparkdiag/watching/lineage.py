"""Which processes belong to one server: the topmost that is still the engine's, and what a dead one has left. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from sparkdiag.evidence.processes import Role

_ENGINE: frozenset[Role] = frozenset({"api_server", "engine_core", "worker", "dp_coordinator"})


@dataclass(frozen=True, slots=True)
class Relative:
    """One process of the machine, as far as kinship needs it."""

    pid: int
    parent_pid: int
    started_at_s: float
    role: Role
    group: tuple[int, int] = (0, 0)
    """Session and process group: those of a server's processes stay the same when its API server dies."""
    python: bool = False
    spawning: bool = False
    """One of multiprocessing's own: it has no title of the engine's yet, or never gets one."""
    ours: bool = False
    """sparkdiag itself, or what it starts."""
    name: str = ""
    """For people."""


Relatives: TypeAlias = Mapping[int, Relative]


@dataclass(frozen=True, slots=True)
class Server:
    """One server: the roots of what lives of it, the API server's first where it lives."""

    roots: tuple[int, ...]
    orphaned: bool = False
    """No API server lives above these."""


def belongs(one: Relative, everybody: Relatives) -> bool:
    """Whether a process is an engine's: by its title, or as the Python program that started an EngineCore.

    A process that adopts orphans (an init, a supervisor) has started none: it is of another process group.
    """
    if one.ours:
        return False
    if one.role in _ENGINE:
        return True
    return (
        one.role == "other"
        and one.python
        and not one.spawning
        and any(
            child.parent_pid == one.pid
            and child.role == "engine_core"
            and child.group == one.group
            and child.started_at_s >= one.started_at_s
            for child in everybody.values()
        )
    )


def top_of(pid: int, everybody: Relatives) -> int | None:
    """The topmost engine process at or above ``pid``; None where there is none. Never what stands above a server."""
    best: int | None = None
    passed: set[int] = set()
    one = everybody.get(pid)
    while one is not None and one.pid not in passed:
        passed.add(one.pid)
        if belongs(one, everybody):
            best = one.pid
        elif one.pid != pid and not one.spawning:
            break
        parent = everybody.get(one.parent_pid)
        one = parent if parent is not None and parent.started_at_s <= one.started_at_s else None
    return best


def servers(everybody: Relatives) -> tuple[Server, ...]:
    """Every server of the machine, oldest first; orphans of one process group are of one server.

    Orphans whose group holds exactly one living server, older than they are, are that server's: its EngineCore has
    died, and its workers have not.
    """
    tops = sorted(
        {top for pid in everybody if (top := top_of(pid, everybody)) is not None},
        key=lambda pid: (everybody[pid].started_at_s, pid),
    )
    whole = [pid for pid in tops if not _orphan(everybody[pid])]
    left: dict[int | tuple[int, int], list[int]] = {}
    for pid in tops:
        one = everybody[pid]
        if _orphan(one):
            above = [root for root in whole if everybody[root].group == one.group]
            fits = len(above) == 1 and everybody[above[0]].started_at_s <= one.started_at_s
            left.setdefault(above[0] if fits else one.group, []).append(pid)
    found = [Server(roots=(pid, *left.get(pid, ()))) for pid in whole]
    found += [Server(roots=tuple(pids), orphaned=True) for key, pids in left.items() if isinstance(key, tuple)]
    return tuple(sorted(found, key=lambda server: everybody[server.roots[0]].started_at_s))


def _orphan(one: Relative) -> bool:
    return one.role in ("engine_core", "worker", "dp_coordinator")


def server_of(pid: int, everybody: Relatives) -> Server | None:
    """The server that ``pid`` belongs to, stands above (a shell, a launcher), or runs inside of; None: to none, or it
    stands above several."""
    known = servers(everybody)
    top = top_of(pid, everybody)
    if top is None:
        below = _below(pid, everybody)
        found = [server for server in known if below & set(server.roots)]
    else:
        found = [server for server in known if top in server.roots]
    return found[0] if len(found) == 1 else None


def servers_holding(pids: Iterable[int], everybody: Relatives) -> tuple[Server, ...]:
    """The servers that these processes are of."""
    tops = {top for pid in pids if (top := top_of(pid, everybody)) is not None}
    return tuple(server for server in servers(everybody) if tops & set(server.roots))


def members_of(server: Server, everybody: Relatives) -> tuple[int, ...]:
    """Every process of the server, and what it has started."""
    found = set(server.roots)
    for root in server.roots:
        found |= _below(root, everybody)
    return tuple(sorted(found))


def _below(pid: int, everybody: Relatives) -> set[int]:
    children: dict[int, list[Relative]] = {}
    for one in everybody.values():
        children.setdefault(one.parent_pid, []).append(one)
    found: set[int] = set()
    waiting = [pid]
    while waiting:
        parent = everybody.get(waiting.pop())
        for child in children.get(parent.pid, ()) if parent is not None else ():
            if child.pid not in found and child.pid != pid:
                found.add(child.pid)
                waiting.append(child.pid)
    return found
