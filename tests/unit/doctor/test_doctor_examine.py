"""Whatever a check does, a finding comes out."""

import threading
from typing import NoReturn

import pytest

from sparkdiag.doctor.examine import Check, attempt, examine
from sparkdiag.doctor.finding import Finding
from sparkdiag.errors import EnvironmentFault

WELL = Finding(name="port", status="ok", seen="well")


def test_findings_are_told_in_order_as_they_come() -> None:
    told: list[str] = []
    checks = [Check("port", lambda: (WELL, WELL)), Check("none", tuple), Check("clock", lambda: (WELL,))]
    found = examine(checks, on_start=told.append, on_finding=lambda finding: told.append(finding.seen))
    assert told == ["port", "well", "well", "none", "clock", "well"]
    assert found == (WELL, WELL, WELL)


def test_a_crash_is_a_finding_without_secrets() -> None:
    def broken() -> NoReturn:
        raise KeyError("Authorization: Bearer abcdef0123456789abcdef")

    (found,) = attempt(Check("port", broken))
    assert found.status == "crashed"
    assert "KeyError" in found.seen
    assert "in broken, line" in found.seen
    assert "abcdef0123456789" not in found.seen
    assert "sparkdiag doctor --json" in (found.next_step or "")


def test_a_refusal_of_our_own_keeps_its_remedy() -> None:
    def refuse() -> NoReturn:
        raise EnvironmentFault("no such python", remedy="name another", details=("one", "two", "three"))

    (found,) = attempt(Check("environment", refuse, why="it is needed"))
    assert (found.status, found.seen, found.next_step) == ("fail", "no such python; two; three", "name another")


def test_a_check_that_hangs_is_given_up_and_the_next_one_runs() -> None:
    release = threading.Event()

    def hang() -> tuple[Finding, ...]:
        release.wait(60)
        return (WELL,)

    checks = [Check("disk", hang, limit_s=0.05), Check("port", lambda: (WELL,))]
    found = examine(checks, on_start=lambda _: None, on_finding=lambda _: None)
    release.set()
    assert [(one.name, one.status) for one in found] == [("disk", "fail"), ("port", "ok")]
    assert "no answer within 0.05 s" in found[0].seen


@pytest.mark.parametrize("error", [SystemExit(1), KeyboardInterrupt()])
def test_not_even_an_exit_inside_a_check_ends_the_diagnosis(error: BaseException) -> None:
    def leave() -> NoReturn:
        raise error

    (found,) = attempt(Check("port", leave))
    assert found.status == "crashed"
