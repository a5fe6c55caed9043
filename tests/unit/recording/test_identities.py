"""This machine's names: found without a name service, and whatever is missing."""

import os
import socket

import pytest

from sparkdiag.harmless.identities import Identities
from sparkdiag.recording import identities
from sparkdiag.recording.identities import identities_here


def _asked(*_: object) -> None:
    raise AssertionError("a name service was asked")


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What stands in the system's files; nothing else of this machine is seen, and no other machine can be asked."""
    for name in ("USER", "LOGNAME", "USERNAME", "SUDO_USER", "HOSTNAME", "SLURMD_NODENAME", "NODE_NAME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "uname", lambda: os.uname_result(("Linux", "gpu7", "6", "1", "x86_64")))
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    for name in ("gethostname", "getfqdn", "gethostbyname", "getaddrinfo"):
        monkeypatch.setattr(socket, name, _asked)
    texts: dict[str, str] = {}
    monkeypatch.setattr(identities, "_read", lambda path: texts.get(path, ""))
    return texts


def test_names_come_from_the_kernel_and_the_systems_files(files: dict[str, str]) -> None:
    files["/etc/hostname"] = "gpu7.hpc.example\n"
    files["/etc/hosts"] = "127.0.0.1 localhost\n127.0.1.1 gpu7 gpu7.cs.example # ours\n10.0.0.2 gpu8\n"
    files["/etc/passwd"] = (
        "root:x:0:0::/root:/bin/sh\nalice:x:1000:1000::/home/alice:/bin/sh\nbob:x:1001:1::/:/bin/sh\n"
    )
    assert identities_here() == Identities(
        hosts=frozenset({"gpu7", "gpu7.hpc.example", "gpu7.cs.example"}), users=frozenset({"alice"})
    )


def test_names_come_from_the_environment_too(files: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"USER": "carol", "SUDO_USER": "dave", "HOME": "/home/erin", "HOSTNAME": "node3.lan"}.items():
        monkeypatch.setenv(name, value)
    assert files == {}
    assert identities_here() == Identities(
        hosts=frozenset({"gpu7", "node3.lan", "node3"}), users=frozenset({"carol", "dave", "erin"})
    )


def test_where_nothing_can_be_read_the_kernels_name_is_left(files: dict[str, str]) -> None:
    assert files == {}
    assert identities_here() == Identities(hosts=frozenset({"gpu7"}))


def test_this_machine_has_a_name() -> None:
    assert os.uname().nodename in identities_here().hosts
