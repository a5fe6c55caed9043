"""Waits until a launched server answers, or says why it will not."""

import socket
import time
from collections.abc import Callable
from typing import Protocol

import httpx
import psutil

from sparkdiag.errors import GuardianKilled, ServerError
from sparkdiag.evidence.processes import GUARDIAN_KILLED, ServerExit
from sparkdiag.harmless.excerpt import one_line
from sparkdiag.serving.last_words import telling_line
from sparkdiag.serving.server_log import PORT_TAKEN, cause_of, phase_of
from sparkdiag.tls import verifies

PERIOD_S = 0.5
REQUEST_TIMEOUT_S = 2.0
LONGEST_CAUSE = 200
SHOWN_LINES = 20
EXIT_GRACE_S = 3.0
READ_ON = "read the log lines above; server.log in the run folder has all of them"


class PortTaken(ServerError):
    """Another program took the server's port between its choice and the server's bind; a second start may do."""


class Loading(Protocol):
    """A server that may not be ready yet."""

    base_url: str

    def poll(self) -> ServerExit | None: ...
    @property
    def last_lines(self) -> tuple[str, ...]: ...
    @property
    def tree_pids(self) -> frozenset[int]: ...
    def wait_gone(self, timeout_s: float) -> bool: ...


def wait_ready(
    server: Loading,
    *,
    timeout_s: float,
    on_wait: Callable[[float, str, str | None], None],
    period_s: float = PERIOD_S,
) -> float:
    """Seconds until GET /health was 200 and the answer came from the server's own tree.

    ``on_wait(elapsed_s, last_log_line, phase)`` is called about twice a second. Raises ``ServerError`` when the server
    ended or ``timeout_s`` passed, with its last lines as ``details``; ``GuardianKilled`` when that was not its doing.
    """
    began_s = time.monotonic()
    phase: str | None = None
    with httpx.Client(
        base_url=server.base_url, timeout=REQUEST_TIMEOUT_S, verify=verifies(server.base_url), trust_env=False
    ) as client:
        while True:
            elapsed_s = time.monotonic() - began_s
            lines = server.last_lines
            if (ended := server.poll()) is not None:
                server.wait_gone(5)
                raise failed_start(ended, server.last_lines)
            if _healthy(client) and _answers_itself(server):
                return time.monotonic() - began_s
            if elapsed_s > timeout_s:
                raise ServerError(
                    f"the server was not ready after {timeout_s:.0f} s" + (f" (last seen: {phase})" if phase else ""),
                    remedy="raise ready_timeout_s in the scenario's [server], or read the log lines above",
                    details=lines[-SHOWN_LINES:],
                )
            phase = next((found for line in reversed(lines) if (found := phase_of(line))), phase)
            on_wait(elapsed_s, lines[-1] if lines else "", phase)
            time.sleep(period_s)


def failed_start(
    ended: ServerExit, lines: tuple[str, ...], *, during: str = "while it was starting"
) -> ServerError | GuardianKilled:
    """The error for a server that ended while it loaded: the known cause where the log shows one."""
    if ended.guardian_killed:
        return guardian_killed(during)
    how = ended.how if ended.process in (None, "APIServer") else f"{ended.process}: {ended.how}"
    cause = cause_of(lines)
    raised = one_line(telling_line(lines) or "", limit=LONGEST_CAUSE)
    told = f"{cause.text} ({raised})" if cause and raised else cause.text if cause else raised
    why = f": {told}" if told else ""
    kind = PortTaken if cause == PORT_TAKEN else ServerError
    return kind(
        f"the server ended {during} ({how}){why}",
        remedy=cause.remedy if cause else READ_ON,
        details=lines[-SHOWN_LINES:],
    )


def guardian_killed(during: str) -> GuardianKilled:
    """The error for a server that was ended because its guardian was killed, not by sparkdiag."""
    return GuardianKilled(
        f"{GUARDIAN_KILLED} {during}",
        remedy="run it again; what killed it may be the kernel, out of memory: dmesg | grep -i 'killed process'",
    )


def failed_request(error: ServerError, server: Loading) -> ServerError | GuardianKilled:
    """``error`` of a request before the prompt, with the server's last words, and how it ended where it did.

    A broken connection is often the first sign of that: the exit is waited for, a few seconds.
    """
    deadline_s = time.monotonic() + EXIT_GRACE_S
    while (ended := server.poll()) is None and time.monotonic() < deadline_s:
        time.sleep(0.1)
    if ended is None:
        return ServerError(error.message, remedy=READ_ON, details=server.last_lines[-SHOWN_LINES:])
    server.wait_gone(5)
    return failed_start(ended, server.last_lines, during="before the prompt was sent")


def _healthy(client: httpx.Client) -> bool:
    try:
        return client.get("/health").status_code == httpx.codes.OK
    except httpx.HTTPError:
        return False


def _answers_itself(server: Loading) -> bool:
    """False when the port belongs to a process outside the tree; True also where the system does not tell."""
    port = httpx.URL(server.base_url).port
    refused = False
    for pid in server.tree_pids:
        try:
            connections = psutil.Process(pid).net_connections(kind="tcp")
        except psutil.NoSuchProcess:
            continue  # it has just died: whoever answered, it was not this one
        except psutil.Error:
            refused = True
            continue
        if any(item.status == psutil.CONN_LISTEN and item.laddr and item.laddr.port == port for item in connections):
            return True
    return refused


def free_port() -> int:
    """A loopback port that is free at this moment (another program may still take it: then the start fails clearly)."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
