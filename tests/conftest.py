"""Unit tests can neither spawn nor connect: a test that needs either belongs in ``tests/integration``."""

import os
import signal
import socket
import subprocess
from pathlib import Path
from typing import NoReturn

import hypothesis
import pytest

# A busy machine is no defect of the code under test.
hypothesis.settings.register_profile("sparkdiag", deadline=None)
hypothesis.settings.load_profile("sparkdiag")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell's background job, such as a CI's, starts with SIGINT ignored, and so would every child of a test.
    signal.signal(signal.SIGINT, signal.default_int_handler)

UNIT = Path(__file__).parent / "unit"


def _forbidden(*_args: object, **_kwargs: object) -> NoReturn:
    raise AssertionError("a unit test tried to start a process or open a connection; move it to tests/integration")


@pytest.fixture(autouse=True)
def _no_outside_world(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if UNIT not in Path(str(request.path)).parents:
        return
    monkeypatch.setattr(subprocess.Popen, "__init__", _forbidden)
    monkeypatch.setattr(socket.socket, "connect", _forbidden)
    monkeypatch.setattr(socket.socket, "bind", _forbidden)
    for name in ("fork", "posix_spawn", "system", "execv", "execve"):
        monkeypatch.setattr(os, name, _forbidden)
