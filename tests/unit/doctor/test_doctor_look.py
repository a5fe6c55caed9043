"""What a trial look means for a run."""

from typing import Any

import pytest

from sparkdiag.doctor.finding import Finding
from sparkdiag.doctor.sampling import Look, judge_look
from sparkdiag.observing.faults import Cause, SamplingFault, no_pyspy
from sparkdiag.observing.permission import PtraceFacts

SEEN: dict[str, Any] = {"function_seen": True, "locals_seen": True, "took_s": 0.03}
NAMES = ("sample-child", "sample-other", "sample-environment")


def judged(name: str = "sample-child", *, fault: SamplingFault | None = None, **look: Any) -> Finding:
    facts = PtraceFacts(effective=False, obtainable=False, yama_scope=1)
    return judge_look(name, Look(who="a child", fault=fault, **look), facts, remedy="give it SYS_PTRACE")


def fault(cause: Cause) -> SamplingFault:
    return SamplingFault(cause=cause, line=f"py-spy: {cause}")


def test_seen_with_locals_is_well() -> None:
    found = judged(**SEEN)
    assert (found.status, found.seen) == ("ok", "function and locals of a child seen in 30 ms")
    assert judged(**SEEN, looks=3).seen.endswith("(look 3)")


@pytest.mark.parametrize("name", NAMES)
def test_a_refusal_is_a_warning_with_what_the_kernel_decided_by_and_the_way_out(name: str) -> None:
    found = judged(name, fault=fault("permission"))
    assert found.status == "warn"
    assert "CAP_SYS_PTRACE is missing, kernel.yama.ptrace_scope=1" in found.seen
    assert found.next_step == "give it SYS_PTRACE"


def test_a_refusal_says_whether_the_probe_takes_over() -> None:
    assert "the probe inside the server samples instead" in judged("sample-child", fault=fault("permission")).why
    assert "the probe inside the server samples instead" in judged("sample-child", fault=no_pyspy()).why
    other = judged("sample-other", fault=fault("permission")).why
    assert "samples instead" not in other
    assert "a server that sparkdiag did not start" in other


def test_no_pyspy_names_the_command_that_installs_it() -> None:
    found = judged(fault=no_pyspy())
    assert (found.status, found.next_step) == ("warn", "pip install py-spy")


@pytest.mark.parametrize(
    ("name", "cause", "status"),
    [
        ("sample-child", "not-python", "fail"),
        ("sample-environment", "not-python", "fail"),
        ("sample-other", "not-python", "warn"),
        ("sample-child", "torn", "fail"),
        ("sample-child", "timeout", "warn"),
        ("sample-child", "flooded", "fail"),
    ],
)
def test_other_faults(name: str, cause: Cause, status: str) -> None:
    assert judged(name, fault=fault(cause)).status == status


def test_a_function_that_is_not_shown_fails_and_locals_that_are_not_warn() -> None:
    assert judged().status == "fail"
    assert judged(function_seen=True).status == "warn"
    assert judged(function_seen=True, locals_seen=True, took_s=9.0).status == "warn"
