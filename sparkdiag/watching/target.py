"""From a URL or a process id to the server that is to be watched: its processes, and where it speaks HTTP."""

from urllib.parse import urlsplit

import psutil

from sparkdiag.driving.address import checked_base_url, is_loopback
from sparkdiag.errors import NoServerFound, UsageError
from sparkdiag.evidence.base import Value
from sparkdiag.evidence.processes import ProcessInfo
from sparkdiag.harmless.excerpt import one_line
from sparkdiag.observing.process_tree import ProcessTree
from sparkdiag.watching.lineage import Server, members_of, server_of, servers, servers_holding
from sparkdiag.watching.machine import Machine, inner_pid, look_at_machine
from sparkdiag.watching.served import answers
from sparkdiag.watching.sockets import (
    Listener,
    Namespace,
    answers_at,
    holders_of,
    inodes_of,
    listeners_of,
    namespaces,
)

_MOST_PORTS = 6
_MOST_NAMED = 8


class Target(Value):
    """What was found, before anything is looked at closer."""

    roots: tuple[int, ...] = ()
    """Empty: no process of it is on this machine, or none that can be seen."""
    processes: tuple[ProcessInfo, ...] = ()
    base_url: str | None = None
    """Where it answers requests; None where that is not known, or not reachable from here."""
    metrics_url: str | None = None
    """What stands before ``/metrics``."""
    how: str
    """How it was found; one line."""
    notes: tuple[str, ...] = ()
    inner_pids: dict[int, int] = {}
    """Numbers of its processes in their own pid namespace, where that is another."""


def find_target(*, url: str | None, pid: int | None, metrics_url: str | None, remote: bool) -> Target:
    """The server behind ``url``, or the one that process ``pid`` is of; with both, the processes are those of ``pid``.

    Raises ``UsageError`` for an address that may not be talked to and for a number that is no server's, and
    ``NoServerFound`` where there is neither a process nor an answer.
    """
    if url is None and pid is None:
        raise UsageError(
            "watch needs to know which server: by its address, or by one of its processes",
            remedy="sparkdiag watch --url http://127.0.0.1:8000",
        )
    checked = checked_base_url(url, allow_remote=remote or _is_own(url)) if url is not None else None
    metrics = _metrics_base(metrics_url, remote=remote)
    machine = look_at_machine()
    found = _by_pid(pid, machine, base_url=checked) if pid is not None else _by_url(checked or "", machine)
    if metrics is not None or found.base_url is not None:
        found = found.model_copy(update={"metrics_url": metrics or found.base_url})
    inner = {process.pid: number for process in found.processes if (number := inner_pid(process.pid)) is not None}
    return found.model_copy(update={"inner_pids": inner})


def _metrics_base(url: str | None, *, remote: bool) -> str | None:
    if url is None:
        return None
    base = checked_base_url(url, allow_remote=remote or _is_own(url))
    return base.removesuffix("/metrics")


def _is_own(url: str) -> bool:
    """Whether the address is one of this machine's own network interfaces."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return False
    return host in {address.address for each in psutil.net_if_addrs().values() for address in each}


def _by_pid(pid: int, machine: Machine, *, base_url: str | None) -> Target:
    if pid not in machine.everybody:
        raise UsageError(f"there is no process {pid}, or it may not be looked at", remedy=_known_remedy(machine))
    server = server_of(pid, machine.everybody)
    if server is None:
        name = machine.everybody[pid].name
        raise UsageError(
            f"process {pid} ({name}) is of no vLLM or SGLang server, nor does it stand above just one",
            remedy=_known_remedy(machine),
        )
    found = _target(server, machine, how=f"process {pid} is of this server", base_url=base_url)
    if base_url is not None:
        return found
    return _with_address(found, server, machine)


def _with_address(found: Target, server: Server, machine: Machine) -> Target:
    """With the port that the server's own processes listen on, where one can be reached from here."""
    members = members_of(server, machine.everybody)
    inodes = inodes_of(members)
    for namespace in namespaces(members):
        heard = [listener for listener in listeners_of(namespace) if listener.inode in inodes]
        if not namespace.ours and heard:
            ports = ", ".join(str(port) for port in sorted({listener.port for listener in heard})[:_MOST_PORTS])
            note = (
                f"it listens on port {ports} in a network namespace of its own (a container): no address of it is "
                "known here, so nothing is known from /metrics; --url or --metrics-url names one"
            )
            return found.model_copy(update={"notes": (*found.notes, note)})
        for listener in _likeliest(heard, server, machine):
            base_url = _address(listener, tls=any(machine.speaks_tls(root) for root in server.roots))
            if answers(base_url):
                return found.model_copy(update={"base_url": base_url})
    note = "no port of it answers HTTP: nothing is known from /metrics"
    return found.model_copy(update={"notes": (*found.notes, note)})


def _likeliest(heard: list[Listener], server: Server, machine: Machine) -> list[Listener]:
    """Each port once, the one that the command line names first; there are others, for ranks to meet at."""
    named = {machine.port_of(root) for root in server.roots}
    ports = {listener.port: listener for listener in heard}
    return sorted(ports.values(), key=lambda one: (one.port not in named, one.port))[:_MOST_PORTS]


def _address(listener: Listener, *, tls: bool) -> str:
    address = listener.address
    if address in ("0.0.0.0", "::"):  # noqa: S104 - read, not bound
        address = "127.0.0.1"
    host = f"[{address}]" if ":" in address else address
    return f"{'https' if tls else 'http'}://{host}:{listener.port}"


def _by_url(base_url: str, machine: Machine) -> Target:
    parts = urlsplit(base_url)
    host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    if not (is_loopback(host) or _is_own(base_url)):
        how = f"{host} is another machine: its processes cannot be looked at from here, only what it says of itself"
        return Target(base_url=base_url, how=how, notes=(how,))
    places = namespaces(machine.everybody)
    ours = next((place for place in places if place.ours), None)
    heard = [one for one in listeners_of(ours) if one.port == port and answers_at(one, host)] if ours else []
    holders = holders_of(frozenset(one.inode for one in heard), ours.pids) if ours and heard else ()
    held = servers_holding(holders, machine.everybody)
    if len(held) == 1:
        return _target(held[0], machine, how=f"it listens on port {port}", base_url=base_url)
    return (
        _by_command_line(base_url, port, machine, heard=heard, holders=holders)
        or _in_container(base_url, port, machine, places=places, holders=holders)
        or _unseen(base_url, port, machine, heard=heard, holders=holders)
    )


def _by_command_line(
    base_url: str, port: int, machine: Machine, *, heard: list[Listener], holders: tuple[int, ...]
) -> Target | None:
    """Whose socket it is may not be seen (another user's): then the server that was told to use that port."""
    if holders or not heard:
        return None
    asked = [server for server in servers(machine.everybody) if machine.port_of(server.roots[0]) == port]
    if len(asked) != 1:
        return None
    note = f"whose socket on port {port} it is may not be seen; this server's command line names that port"
    return _target(asked[0], machine, how=f"its command line names port {port}", base_url=base_url, notes=(note,))


def _in_container(
    base_url: str, port: int, machine: Machine, *, places: tuple[Namespace, ...], holders: tuple[int, ...]
) -> Target | None:
    """A server in another network namespace on that port, or on the one that a docker-proxy leads to."""
    led = [inner for pid in holders if (inner := machine.proxied_port(pid)) is not None]
    if holders and not led:
        return None  # somebody else's program listens here: it is not for us to guess where it leads
    inside = led[0] if led else port
    found: list[Server] = []
    for place in places:
        if not place.ours:
            inodes = frozenset(one.inode for one in listeners_of(place) if one.port == inside)
            found += list(servers_holding(holders_of(inodes, place.pids), machine.everybody)) if inodes else []
    if not found:
        return None
    if len(found) > 1:
        roots = [server.roots[0] for server in found]
        raise UsageError(
            f"servers in several containers listen on port {inside}: {machine.shown(roots[:_MOST_NAMED])}",
            remedy=f"sparkdiag watch --pid {roots[0]}",
        )
    where = f"it listens on port {inside} in another network namespace (a container)"
    how = f"port {inside} in a container"
    if not answers(base_url):
        note = f"{where}; {base_url} itself does not answer here, so nothing is known from /metrics (--metrics-url)"
        return _target(found[0], machine, how=how, base_url=None, notes=(note,))
    by = "told by docker-proxy" if led else "taken from the port alone"
    note = f"{where}; that {base_url} leads to it is {by}"
    return _target(found[0], machine, how=how, base_url=base_url, notes=(note,))


def _unseen(base_url: str, port: int, machine: Machine, *, heard: list[Listener], holders: tuple[int, ...]) -> Target:
    """No process: metrics alone where it answers, else nothing at all."""
    who = machine.shown(holders[:_MOST_NAMED])
    if not answers(base_url):
        raise NoServerFound(
            f"no vLLM or SGLang process listens on port {port}, and {one_line(base_url)} does not answer"
            + (f"; it is held by {who}" if who else _left_behind(machine)),
            remedy=_known_remedy(machine),
        )
    if who:
        note = f"port {port} is held by {who}, which is no vLLM or SGLang server: a proxy, perhaps"
    elif heard:
        note = f"whose socket on port {port} it is may not be seen from here (it is another user's)"
    else:
        note = f"{one_line(base_url)} answers, but nobody here is seen to listen on port {port}"
    note += "; only what it says of itself is known; --pid names one of the server's processes"
    return Target(base_url=base_url, how=note, notes=(note,))


def _left_behind(machine: Machine) -> str:
    """What dead API servers have left: nothing ties it to a port, so it is for the user to say whether it is meant."""
    orphans = [server.roots[0] for server in servers(machine.everybody) if server.orphaned]
    if not orphans:
        return ""
    shown = machine.shown(orphans[:_MOST_NAMED])
    return f"; processes of a server whose API server has died are there, look into them by --pid: {shown}"


def _target(server: Server, machine: Machine, *, how: str, base_url: str | None, notes: tuple[str, ...] = ()) -> Target:
    processes = ProcessTree(*server.roots).look()
    if not processes:
        raise NoServerFound("the server's processes ended while they were looked for", remedy=_known_remedy(machine))
    if server.orphaned:
        notes = (*notes, "no API server lives above these processes")
    elif len(server.roots) > 1:
        left = machine.shown(server.roots[1:])
        notes = (*notes, f"their parent has died, and they are still there: {left}")
    return Target(roots=server.roots, processes=processes, base_url=base_url, how=how, notes=notes)


def _known_remedy(machine: Machine) -> str:
    """The servers that there are, to choose from: whole ones first, the newest first."""
    known = sorted(
        servers(machine.everybody),
        key=lambda server: (server.orphaned, -machine.everybody[server.roots[0]].started_at_s),
    )
    roots = [server.roots[0] for server in known][:_MOST_NAMED]
    if not roots:
        return "ps -eo pid,args | grep -E 'vllm|VLLM::|sglang'    # nothing of it is seen on this machine"
    return f"sparkdiag watch --pid {roots[0]}    # servers here: {machine.shown(roots)}"
