"""Starts one sparkdiag for a trial of ``kill_moments.py``: a program, or a fork that has everything imported."""

import importlib
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Protocol

WARM = (
    "anyio._backends._asyncio",
    "httpcore",
    "sparkdiag.cli.app",
    "sparkdiag.environment.config",
    "sparkdiag.environment.prepare",
    "sparkdiag.recording.read",
    "sparkdiag.reporting.document",
    "sparkdiag.reporting.live",
    "sparkdiag.reporting.markdown",
    "sparkdiag.reporting.summary",
    "sparkdiag.reproducing.choice",
    "sparkdiag.reproducing.session",
    "sparkdiag.scenario.load",
    "sparkdiag.scenario.overrides",
)


class Started(Protocol):
    """What a trial needs of it; ``subprocess.Popen`` has that."""

    @property
    def pid(self) -> int: ...
    def poll(self) -> int | None: ...
    def kill(self) -> None: ...


class Forked:
    """``sparkdiag`` in a fork of this process: seconds of imports are saved, so that many trials fit into a test."""

    def __init__(self, argv: list[str], *, output: Path, env: dict[str, str]) -> None:
        for name in WARM:
            importlib.import_module(name)
        self.code: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            self._become(argv, output, env)

    def _become(self, argv: list[str], output: Path, env: dict[str, str]) -> None:
        """In the child; never returns."""
        code = 70
        try:
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
            written = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            for target, source in enumerate((os.open(os.devnull, os.O_RDONLY), written, written)):
                os.dup2(source, target)
            os.environ.clear()
            os.environ.update(env)
            sys.argv, tempfile.tempdir = argv, None
            sys.stdout, sys.stderr = (os.fdopen(fd, "w", buffering=1) for fd in (1, 2))
            from sparkdiag.cli.app import main

            main()
        except SystemExit as leave:
            code = leave.code if isinstance(leave.code, int) else 1
        finally:
            os._exit(code)

    def poll(self) -> int | None:
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.code = os.waitstatus_to_exitcode(status) if pid else None
        return self.code

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


def start(argv: list[str], *, output: Path, env: dict[str, str], warm: bool) -> Started:
    """Start it with its output in a file."""
    if warm:
        return Forked(argv, output=output, env=env)
    with output.open("wb") as file:
        return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, env=env)
