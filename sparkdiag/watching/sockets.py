"""Which processes listen on a port, in this network namespace and in the others that can be seen from here.

A server in a container listens in a network namespace of its own, which ``psutil.net_connections`` does not show;
``/proc/PID/net/tcp`` is the table of PID's namespace (proc_pid_net(5)), and a socket's inode leads to who holds it.
"""

import ipaddress
import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path

from sparkdiag.evidence.base import Value

PROC = Path("/proc")
_LISTEN = "0A"
_SOCKET = re.compile(r"socket:\[([0-9]+)\]")
_MOST_BYTES = 8 * 2**20
"""Of one table: some fifty thousand sockets."""


class Listener(Value):
    """One listening TCP socket."""

    address: str
    port: int
    inode: int


class Namespace(Value):
    """One network namespace: its number, as the kernel tells it, and who lives in it. ``ours``: we do, too."""

    number: str
    pids: tuple[int, ...]
    ours: bool


def listeners_in(table: str) -> tuple[Listener, ...]:
    """The listening sockets of a ``/proc/PID/net/tcp`` or ``tcp6`` table; lines that do not fit are left out. Pure."""
    found = []
    for line in table.splitlines()[1:]:
        fields = line.split()
        if len(fields) < 10 or fields[3] != _LISTEN:
            continue
        try:
            address, port = fields[1].split(":")
            found.append(Listener(address=_address(address), port=int(port, 16), inode=int(fields[9])))
        except ValueError:
            continue
    return tuple(found)


def _address(written: str) -> str:
    """The kernel prints the address as 32-bit words in the machine's byte order."""
    words = [written[place : place + 8] for place in range(0, len(written), 8)]
    if len(words) not in (1, 4) or any(len(word) != 8 for word in words):
        raise ValueError("no address")
    packed = b"".join(int(word, 16).to_bytes(4, sys.byteorder) for word in words)
    found = ipaddress.ip_address(packed)
    mapped = getattr(found, "ipv4_mapped", None)
    return str(mapped or found)


def answers_at(listener: Listener, host: str) -> bool:
    """Whether a connection to ``host`` on this machine reaches the socket; a name is taken to. Pure."""
    try:
        bound, asked = ipaddress.ip_address(listener.address), ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return True
    return bound.is_unspecified or bound == asked


def namespaces(pids: Iterable[int], *, proc: Path = PROC) -> tuple[Namespace, ...]:
    """The network namespaces of these processes, ours first. Those that may not be read are left out."""
    ours = _namespace(proc / "self")
    found: dict[str, list[int]] = {}
    for pid in pids:
        number = _namespace(proc / str(pid))
        if number is not None:
            found.setdefault(number, []).append(pid)
    made = [Namespace(number=number, pids=tuple(members), ours=number == ours) for number, members in found.items()]
    return tuple(sorted(made, key=lambda one: (not one.ours, one.number)))


def _namespace(folder: Path) -> str | None:
    try:
        return str((folder / "ns" / "net").readlink())
    except OSError:
        return None


def listeners_of(namespace: Namespace, *, proc: Path = PROC) -> tuple[Listener, ...]:
    """What listens in a namespace, read through the first of its processes that still lives."""
    for pid in namespace.pids:
        tables = [_table(proc / str(pid) / "net" / name) for name in ("tcp", "tcp6")]
        if any(tables):
            return tuple(listener for table in tables for listener in listeners_in(table))
    return ()


def _table(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_MOST_BYTES).decode("ascii", "replace")
    except OSError:
        return ""


def holders_of(inodes: frozenset[int], pids: Iterable[int], *, proc: Path = PROC) -> tuple[int, ...]:
    """Those of ``pids`` that hold one of these sockets; a process whose files may not be read is not among them."""
    wanted = {str(inode) for inode in inodes}
    return tuple(pid for pid in pids if wanted & _sockets(proc / str(pid) / "fd"))


def inodes_of(pids: Iterable[int], *, proc: Path = PROC) -> frozenset[int]:
    """The sockets that these processes hold."""
    return frozenset(int(inode) for pid in pids for inode in _sockets(proc / str(pid) / "fd"))


def _sockets(folder: Path) -> set[str]:
    found = set()
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                try:
                    match = _SOCKET.fullmatch(os.readlink(entry.path))  # noqa: PTH115 - thousands of them
                except OSError:
                    continue
                if match is not None:
                    found.add(match[1])
    except OSError:
        return set()
    return found
