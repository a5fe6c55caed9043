"""What findings mean together, and how they are told."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from sparkdiag.doctor.finding import Finding, Status, document, exit_code
from sparkdiag.doctor.text import finding_lines, summary_line
from sparkdiag.errors import ExitCode

STATUSES: tuple[Status, ...] = ("ok", "warn", "fail", "crashed")
WORDS = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "Zs")), min_size=1, max_size=200)
FINDINGS = st.builds(Finding, name=st.just("disk"), status=st.sampled_from(STATUSES), seen=WORDS, why=WORDS, next=WORDS)


def finding(status: Status, seen: str = "seen") -> Finding:
    return Finding(name="disk", status=status, seen=seen, why="because", next_step="df -h")


@pytest.mark.parametrize("status", ["warn", "fail", "crashed"])
@pytest.mark.parametrize(("why", "next_step"), [("", "df"), ("because", None), ("because", "")])
def test_what_is_not_well_says_why_and_what_to_do(status: Status, why: str, next_step: str | None) -> None:
    with pytest.raises(ValidationError, match="neither why it matters nor what to do"):
        Finding(name="disk", status=status, seen="full", why=why, next_step=next_step)


@given(st.lists(st.sampled_from(STATUSES)))
def test_only_failures_and_crashes_make_the_exit_code(statuses: list[Status]) -> None:
    expected = ExitCode.ENVIRONMENT if {"fail", "crashed"} & set(statuses) else ExitCode.DONE
    findings = [finding(status) for status in statuses]
    assert exit_code(findings) is expected
    assert document(findings, asked={})["ok"] is (expected is ExitCode.DONE)


@given(st.lists(FINDINGS, max_size=5))
def test_the_document_is_json_with_every_finding(findings: list[Finding]) -> None:
    read = json.loads(json.dumps(document(findings, asked={"scenario": "lab"})))
    assert read["schema"] == 1
    assert [(one["status"], one["seen"], one["why"], one["next"]) for one in read["findings"]] == [
        (one.status, one.seen, one.why, one.next_step) for one in findings
    ]


@given(FINDINGS, st.integers(min_value=1, max_value=200))
def test_lines_lose_no_word_and_break_none(one: Finding, columns: int) -> None:
    lines = finding_lines(one, columns=columns)
    told = " ".join(" ".join(lines).split())
    assert " ".join(one.seen.split()) in told
    assert ("why:" in told) or one.status == "ok"
    assert " ".join((one.next_step or "").split()) in told
    for line in lines:
        assert len(line) <= max(columns, 60) or len(line.split()) <= 4, line


def test_a_line_a_finding_and_the_next_step_under_it() -> None:
    assert finding_lines(Finding(name="git", status="ok", seen="git version 2.39"), columns=79) == (
        "ok     git                git version 2.39",
    )
    assert finding_lines(finding("fail", "0 MB free"), columns=79) == (
        "FAIL   disk               0 MB free",
        "                          why:  because",
        "                          next: df -h",
    )


@pytest.mark.parametrize(
    ("statuses", "line"),
    [
        (["ok", "ok"], "2 ok: a run can work here"),
        (["ok", "warn"], "1 ok, 1 warning: a run can work here"),
        (["warn", "warn", "fail"], "0 ok, 2 warnings, 1 failure: a run would fail here"),
        (["crashed", "fail", "fail"], "0 ok, 2 failures, 1 could not be checked: a run would fail here"),
    ],
)
def test_the_last_line_counts(statuses: list[Status], line: str) -> None:
    assert summary_line([finding(status) for status in statuses]) == line
