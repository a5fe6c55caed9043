"""Running one step (uv, or the new interpreter): in its own process group, bounded, gone when we are interrupted."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

from sparkdiag.environment.explain import explain
from sparkdiag.environment.plan import Step
from sparkdiag.errors import EnvironmentFault
from sparkdiag.harmless.printable import printable, without_sequences
from sparkdiag.harmless.secrets import LineRedactor, without_queries

POLL_S = 0.2
TERMINATE_S = 5.0
LAST_LINES = 15
TAIL_BYTES = 64 * 1024
LOG_BYTES = 16 * 1024 * 1024
"""Kept of what one step said: its end."""
LONGEST_LINE = 500

DROPPED = frozenset(
    {
        "VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE",
        "UV_SYSTEM_PYTHON", "UV_PYTHON", "UV_PROJECT", "UV_PROJECT_ENVIRONMENT", "UV_WORKING_DIR", "UV_TARGET",
        "UV_CONSTRAINT", "UV_OVERRIDE", "UV_EXCLUDE", "UV_BUILD_CONSTRAINT", "UV_REQUIRE_HASHES", "UV_TORCH_BACKEND",
        "UV_VENV_CLEAR", "UV_VENV_SEED", "UV_BREAK_SYSTEM_PACKAGES",
    }
)  # fmt: skip
"""Variables that would send uv to another environment than the one being built, or change what the lock says."""

ENDS_WITH_US = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9)
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""
"""Becomes the step after asking the kernel to kill it when we die (PR_SET_PDEATHSIG = 1, SIGKILL = 9): after a kill -9
of sparkdiag uv would go on downloading for nobody. The parent is compared because it may be gone by then."""


class StepFailed(EnvironmentFault):
    """A step failed; ``details`` holds the last lines of its output."""


def child_environ(added: dict[str, str]) -> dict[str, str]:
    """uv's environment: ours without what would lead it astray, no Python downloads, no colours."""
    kept = {name: value for name, value in os.environ.items() if name not in DROPPED}
    return {**kept, "UV_PYTHON_DOWNLOADS": "never", "NO_COLOR": "1", "UV_NO_PROGRESS": "1", **added}


def run_step(step: Step, *, folder: Path, log: Path, on_tick: Callable[[int], None]) -> None:
    """Run one step in ``folder``, falling back where it says so; ``on_tick`` gets uv's pid several times a second.

    From the main thread: the kernel ends the step when the thread that started it ends.

    Raises ``StepFailed``, from an ``OSError`` where disk or network are at fault. Whatever ends the call early (Ctrl-C,
    an error in ``on_tick``), no child is left.
    """
    failed = _run(step.argv, step=step, folder=folder, log=log, on_tick=on_tick)
    if failed and step.fallback_argv is not None:
        again = _run(step.fallback_argv, step=step, folder=folder, log=log, on_tick=on_tick)
        failed = (*failed, f"then {step.fallback_title}:", *again) if again else ()
    if failed:
        why = explain(step, failed, environ=os.environ)
        cause = OSError(why.message) if why.elsewhere else None
        raise StepFailed(why.message, details=failed, remedy=why.remedy) from cause


def _run(
    argv: tuple[str, ...], *, step: Step, folder: Path, log: Path, on_tick: Callable[[int], None]
) -> tuple[str, ...]:
    """Uv's last lines where it failed, nothing where it did not."""
    deadline = time.monotonic() + step.timeout_s
    # uv's own words go to a file without a name, and from there redacted to the log: it says which index it asked.
    with tempfile.TemporaryFile() as output:
        child = subprocess.Popen(
            (sys.executable, "-I", "-S", "-c", ENDS_WITH_US, str(os.getpid()), *argv),
            cwd=folder,  # never the user's folder: a pyproject.toml or uv.toml there would have its say
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=child_environ(step.env),
            start_new_session=True,
        )
        try:
            while child.poll() is None:
                if time.monotonic() > deadline:
                    return (*_last(output), f"(given up after {step.timeout_s:.0f} s)")
                on_tick(child.pid)
                _wait(child)
        finally:
            end_group(child)
            _keep(output, log=log)
        if child.returncode == 0:
            return ()
        return _last(output) or (f"(no output, exit status {child.returncode})",)


def _wait(child: subprocess.Popen[bytes]) -> None:
    try:
        child.wait(POLL_S)
    except subprocess.TimeoutExpired:
        return


def end_group(child: subprocess.Popen[bytes]) -> None:
    """Terminate the child's process group, kill it where that does not help; both again if interrupted meanwhile."""
    if child.poll() is not None:
        return
    try:
        os.killpg(child.pid, signal.SIGTERM)
        child.wait(TERMINATE_S)
    except subprocess.TimeoutExpired:
        pass
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait(TERMINATE_S)


def _keep(output: IO[bytes], *, log: Path) -> None:
    """Append what a step said to its log, line by line, redacted. A full disk costs the log, not the build."""
    size = output.seek(0, os.SEEK_END)
    output.seek(max(0, size - LOG_BYTES))
    redact = LineRedactor()
    with suppress(OSError), log.open("a", encoding="utf-8") as file:
        for line in output:
            file.write(redact(without_queries(line.decode(errors="replace"))))


def _last(output: IO[bytes]) -> tuple[str, ...]:
    size = output.seek(0, os.SEEK_END)
    start = max(0, size - TAIL_BYTES)
    output.seek(start)
    return last_lines(output.read(TAIL_BYTES), torn=start > 0)


def last_lines(output: bytes, *, torn: bool = False) -> tuple[str, ...]:
    """The last lines of a step's output, redacted; the first is left out where it is ``torn``. Pure."""
    lines = without_sequences(output.decode(errors="replace")).splitlines()[1 if torn else 0 :]
    redact = LineRedactor()
    told = (redact(without_queries(line.rstrip())) for line in lines)
    return tuple(printable(line, limit=LONGEST_LINE) for line in told if line)[-LAST_LINES:]
