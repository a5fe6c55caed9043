"""What this machine and who runs sparkdiag are called: names that no public report may tell. Cheap, and never fails.

Nothing is asked over a network: a name service that does not answer would hold up every report.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from sparkdiag.harmless.identities import Identities

_LONGEST_FILE = 256 * 1024
_USER_VARIABLES = ("USER", "LOGNAME", "USERNAME", "SUDO_USER")
_HOST_VARIABLES = ("HOSTNAME", "SLURMD_NODENAME", "NODE_NAME")


def identities_here() -> Identities:
    """This machine's host names and the login names of whoever runs this."""
    return Identities(hosts=frozenset(filter(None, _hosts())), users=frozenset(filter(None, _users())))


def _hosts() -> Iterator[str]:
    names = {os.uname().nodename, *(os.environ.get(name, "") for name in _HOST_VARIABLES)}
    names.update(_read("/proc/sys/kernel/hostname").split() + _read("/etc/hostname").split())
    names = {name.rstrip(".") for name in names if name}
    for line in _read("/etc/hosts").splitlines():  # where a full name stands beside the short one
        words = line.partition("#")[0].split()[1:]
        if names.intersection(words):
            names.update(words)
    for name in names:
        yield name
        yield name.partition(".")[0]


def _users() -> Iterator[str]:
    yield from (os.environ.get(name, "") for name in _USER_VARIABLES)
    own = {str(os.getuid()), str(os.geteuid())}
    for line in _read("/etc/passwd").splitlines():  # not through the name service, which may be a network's
        fields = line.split(":")
        if len(fields) > 2 and fields[2] in own:
            yield fields[0]
    home = os.environ.get("HOME", "")
    if Path(home).parent.name in ("home", "homes", "users", "Users"):
        yield Path(home).name


def _read(path: str) -> str:
    with suppress(OSError), Path(path).open("rb") as file:
        return file.read(_LONGEST_FILE).decode(errors="replace")
    return ""
