"""Trial looks with py-spy at processes of our own."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from sparkdiag.doctor import specimen
from sparkdiag.doctor.finding import Finding
from sparkdiag.doctor.sampling import Look, judge_look
from sparkdiag.doctor.specimen import Specimen
from sparkdiag.evidence.stacks import StackSample
from sparkdiag.observing.faults import no_pyspy
from sparkdiag.observing.permission import PtraceFacts, ptrace_facts, ptrace_remedy
from sparkdiag.observing.pyspy import PySpy, find_pyspy

DUMP_TIMEOUT_S = 3.0
MOST_LOOKS = 5
"""A busy process may change while it is read without being stopped."""


def sample_child(pyspy: Path | None = None) -> tuple[Finding, ...]:
    """A busy child, as the launched server is one."""
    return _sample("sample-child", "a child", specimen.child, pyspy=pyspy)


def sample_other(pyspy: Path | None = None) -> tuple[Finding, ...]:
    """A process whose parent is gone, as a server that somebody else started has none of ours."""
    return _sample("sample-other", "a non-child", specimen.stranger, pyspy=pyspy)


def sample_environment(python: str, pyspy: Path | None = None) -> tuple[Finding, ...]:
    """A busy child on the environment's own interpreter."""
    return _sample("sample-environment", "the env's Python", lambda: specimen.child(python), pyspy=pyspy)


def _sample(
    name: str, who: str, start: Callable[[], AbstractContextManager[Specimen]], *, pyspy: Path | None
) -> tuple[Finding, ...]:
    binary = pyspy or find_pyspy()
    if binary is None:
        missing = judge_look(name, Look(who=who, fault=no_pyspy()), PtraceFacts(), remedy="")
        return (missing,) if name == "sample-child" else ()  # said once: it is the same for all
    with start() as process:
        look = trial(PySpy(binary, clock=time.monotonic, timeout_s=DUMP_TIMEOUT_S), process.pid, who=who)
    facts = ptrace_facts()
    return (judge_look(name, look, facts, remedy=ptrace_remedy(facts, pyspy=binary)),)


def trial(pyspy: PySpy, pid: int, *, who: str) -> Look:
    """Look until the busy process was caught whole, at most ``MOST_LOOKS`` times."""
    looks = 0
    while True:
        looks += 1
        dump = pyspy.dump(pid)
        if dump.fault is None or dump.fault.cause not in ("torn", "unreadable") or looks == MOST_LOOKS:
            break
    function_seen, locals_seen = _recognised(dump.sample)
    return Look(
        who=who,
        fault=dump.fault,
        function_seen=function_seen,
        locals_seen=locals_seen,
        took_s=dump.sample.ended_s - dump.sample.started_s,
        looks=looks,
    )


def _recognised(sample: StackSample) -> tuple[bool, bool]:
    """Whether the function is there by name, and its local with the known value."""
    frames = [found[1] for thread in sample.threads if (found := thread.find(specimen.FUNCTION))]
    known = any(frame.locals.get(specimen.LOCAL) == specimen.LOCAL_VALUE for frame in frames)
    return bool(frames), known
