"""Why a look at a process failed: one cause, one line, one remedy. Pure."""

import re
from typing import Literal

from sparkdiag.evidence.base import Value
from sparkdiag.harmless.excerpt import excerpt

Cause = Literal[
    "permission",
    "no-such-process",
    "not-python",
    "torn",
    "timeout",
    "flooded",
    "unreadable",
    "no-py-spy",
    "cancelled",
    "other",
]

_PERMISSION = re.compile(r"permission denied|operation not permitted|\(os error (?:1|13)\)", re.IGNORECASE)
_GONE = re.compile(r"no such process|\(os error 3\)|check that the process is running", re.IGNORECASE)
_NOT_PYTHON = re.compile(
    r"failed to find python version|failed to find a python|python_process_info::get_python_version", re.IGNORECASE
)
_TORN = re.compile(r"failed to get stack traces?|\(os error 14\)", re.IGNORECASE)
_PTRACE_REMEDY = "let py-spy read other processes' memory: `docker run --cap-add SYS_PTRACE`, or run as root"


class SamplingFault(Value):
    """One failed look."""

    cause: Cause
    line: str
    remedy: str | None = None


class PermissionFinding(Value):
    """Whether this process may be sampled; ``allowed`` is None where trying did not tell."""

    allowed: bool | None
    fault: SamplingFault | None = None


def classify_stderr(stderr: str, *, pid: int, exit_code: int | None) -> SamplingFault:
    """The cause behind what a failed py-spy said.

    ``Failed to copy Py_Version symbol`` with ``Permission denied (os error 13)`` is a missing SYS_PTRACE, not a version
    problem, so permission is looked for first; a process without readable ``/proc/PID/exe`` is gone, a zombie or the
    kernel's.
    """
    if _PERMISSION.search(stderr):
        return SamplingFault(
            cause="permission",
            line=f"py-spy may not read process {pid}: permission denied (SYS_PTRACE is missing)",
            remedy=_PTRACE_REMEDY,
        )
    if _GONE.search(stderr):
        return SamplingFault(cause="no-such-process", line=f"process {pid} is gone", remedy=None)
    if _NOT_PYTHON.search(stderr):
        return SamplingFault(
            cause="not-python",
            line=f"process {pid} runs no Python that py-spy knows",
            remedy="check the process id; for a Python newer than py-spy, `pip install -U py-spy`",
        )
    if _TORN.search(stderr):
        return SamplingFault(
            cause="torn",
            line=f"process {pid} changed while it was read without being stopped",
            remedy="nothing to do: a few per cent of the looks at a busy process fail so",
        )
    said = first_line(stderr)
    ended = f"exit code {exit_code}" if exit_code is not None else "no exit code"
    return SamplingFault(
        cause="other",
        line=f"py-spy failed on process {pid} ({ended})" + (f": {said}" if said else ""),
    )


def timed_out(*, pid: int, timeout_s: float) -> SamplingFault:
    """py-spy was killed after ``timeout_s`` seconds."""
    return SamplingFault(
        cause="timeout",
        line=f"py-spy on process {pid} took longer than {timeout_s:g} s and was killed",
        remedy="the machine is saturated: raise `sampling.dump_timeout_s` or leave it a free core",
    )


def flooded(*, pid: int, limit_bytes: int) -> SamplingFault:
    """py-spy was killed because it printed more than ``limit_bytes``."""
    return SamplingFault(
        cause="flooded", line=f"py-spy on process {pid} printed more than {limit_bytes // 2**20} MiB and was killed"
    )


def unreadable(why: str, *, pid: int) -> SamplingFault:
    """py-spy succeeded, but what it printed is no dump."""
    return SamplingFault(cause="unreadable", line=f"the dump of process {pid} cannot be used: {why}")


def no_pyspy(detail: str = "") -> SamplingFault:
    """There is no py-spy to run."""
    return SamplingFault(
        cause="no-py-spy",
        line="py-spy is not installed" + (f": {excerpt(detail, limit=200)}" if detail else ""),
        remedy="pip install py-spy",
    )


def not_started(detail: str, *, pid: int, missing: bool) -> SamplingFault:
    """The system would not start py-spy: because it is ``missing`` (or not executable), or for want of something."""
    if missing:
        return no_pyspy(detail)
    return SamplingFault(
        cause="other", line=f"py-spy could not be started for process {pid}: {excerpt(detail, limit=200)}"
    )


def cancelled(*, pid: int) -> SamplingFault:
    """Sampling was stopped while py-spy ran."""
    return SamplingFault(cause="cancelled", line=f"sampling of process {pid} was stopped")


def first_line(text: str) -> str:
    """The first line that says something, cleaned and cut."""
    for line in text.splitlines()[:50]:
        stripped = line.strip()
        if stripped:
            return excerpt(stripped, limit=200)
    return ""
