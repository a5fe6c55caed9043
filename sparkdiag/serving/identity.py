"""Asks a running server what it is: every witness, nothing compared yet."""

import contextlib
import time
from pathlib import Path

import httpx
import psutil
from pydantic import ValidationError

from sparkdiag.evidence.identity import ProcessIdentity, ServerIdentity
from sparkdiag.harmless.documents import redact_argv
from sparkdiag.tls import verifies

PERIOD_S = 0.25
REQUEST_TIMEOUT_S = 5.0


def read_identity(
    *,
    base_url: str | None,
    root_pid: int | None,
    probe_dir: Path | None,
    workers: int = 1,
    timeout_s: float = 10.0,
) -> ServerIdentity:
    """What the /version endpoint, the root's argv and the probe in each process say.

    Waits at most ``timeout_s`` for the probe to have spoken in ``workers`` processes that hold parallel ranks; what is
    there by then is returned. Never raises for a silent witness.
    """
    deadline_s = time.monotonic() + timeout_s
    processes: tuple[ProcessIdentity, ...] = ()
    while probe_dir is not None:
        processes = read_processes(probe_dir)
        ranks = {process.tp_rank for process in processes if process.tp_world_size is not None}
        if len(ranks) >= workers or time.monotonic() > deadline_s:
            break
        time.sleep(PERIOD_S)
    return ServerIdentity(
        version_endpoint=_version(base_url) if base_url is not None else None,
        argv=redact_argv(_argv(root_pid)),
        processes=processes,
    )


def read_processes(probe_dir: Path) -> tuple[ProcessIdentity, ...]:
    """The probe's files, by pid; those of processes that have ended, or that cannot be read, are left out."""
    found = []
    for path in probe_dir.glob("identity-*.json"):
        with contextlib.suppress(OSError, ValidationError, ValueError):
            process = ProcessIdentity.model_validate_json(path.read_text(encoding="utf-8"))
            if psutil.pid_exists(process.pid):
                found.append(process)
    return tuple(sorted(found, key=lambda process: process.pid))


def _version(base_url: str) -> str | None:
    try:
        answer = httpx.get(f"{base_url}/version", timeout=REQUEST_TIMEOUT_S, verify=verifies(base_url), trust_env=False)
        version = answer.json()["version"]
    except (httpx.HTTPError, ValueError, KeyError, TypeError):
        return None
    return version if isinstance(version, str) else None


def _argv(root_pid: int | None) -> list[str]:
    if root_pid is None:
        return []
    try:
        return psutil.Process(root_pid).cmdline()
    except psutil.Error:
        return []
