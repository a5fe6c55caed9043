"""Runs checks one after the other, each bounded in time; whatever a check does, findings come out of it."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from sparkdiag.doctor.environment import from_error
from sparkdiag.doctor.finding import Finding
from sparkdiag.errors import SparkdiagError
from sparkdiag.harmless.secrets import redact_text

LIMIT_S = 10.0
THREAD_PREFIX = "sparkdiag-doctor-"
AGAIN = "sparkdiag doctor    (again)"


class Check(NamedTuple):
    """One question to the machine."""

    name: str
    look: Callable[[], tuple[Finding, ...]]
    why: str = "without it a run may fail after minutes"
    limit_s: float = LIMIT_S
    """Longer than whatever bound the check itself keeps."""


def examine(
    checks: Sequence[Check], *, on_start: Callable[[str], None], on_finding: Callable[[Finding], None]
) -> tuple[Finding, ...]:
    """The findings of every check, told one by one as they come."""
    found: list[Finding] = []
    for check in checks:
        on_start(check.name)
        for finding in attempt(check):
            on_finding(finding)
            found.append(finding)
    return tuple(found)


def attempt(check: Check) -> tuple[Finding, ...]:
    """What the check finds; that it was refused, that it broke, or that it did not end in time."""
    outcome: list[tuple[Finding, ...]] = []

    def look() -> None:
        try:
            outcome.append(check.look())
        except SparkdiagError as error:
            outcome.append((from_error(check.name, error, why=check.why),))
        except BaseException as error:  # the check is broken, and no signal reaches a thread: a finding, always
            outcome.append((_crashed(check, error),))

    # A thread, because a call into a file system that hangs can be left behind in no other way; it ends with us.
    thread = threading.Thread(target=look, name=THREAD_PREFIX + check.name, daemon=True)
    thread.start()
    thread.join(check.limit_s)
    return outcome[0] if outcome else (_hung(check),)


def let_end(timeout_s: float) -> None:
    """Give checks that were given up the time to tidy up: Python aborts where it exits amidst their work."""
    deadline_s = time.monotonic() + timeout_s
    for thread in threading.enumerate():
        if thread.name.startswith(THREAD_PREFIX):
            thread.join(max(0.0, deadline_s - time.monotonic()))


def _crashed(check: Check, error: BaseException) -> Finding:
    where = ""
    if error.__traceback__ is not None:
        last = error.__traceback__
        while last.tb_next is not None:
            last = last.tb_next
        where = f" (in {last.tb_frame.f_code.co_name}, line {last.tb_lineno})"
    return Finding(
        name=check.name,
        status="crashed",
        seen=redact_text(f"the check itself failed: {type(error).__name__}: {str(error)[:200]}{where}"),
        why=check.why,
        next_step="report it to sparkdiag's authors with the output of: sparkdiag doctor --json",
    )


def _hung(check: Check) -> Finding:
    return Finding(
        name=check.name,
        status="fail",
        seen=f"no answer within {check.limit_s:g} s; the check was given up",
        why=check.why,
        next_step=f"{AGAIN}; if it stays: df, dmesg | tail, uptime (a mount, a device or the machine hangs)",
    )
