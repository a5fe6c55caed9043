"""Exit codes are a contract: scripts and ``git bisect run`` stand on them."""

import pytest

from sparkdiag.cli.exit_codes import exit_code_of, git_bisect_code
from sparkdiag.errors import ExitCode
from sparkdiag.evidence.verdict import Verdict


@pytest.mark.parametrize(
    ("verdict", "code", "bisect"),
    [
        (Verdict(outcome="completed", needle="retrieved"), 0, 0),
        (Verdict(outcome="completed", needle="wrong"), 6, 0),
        (Verdict(outcome="completed", needle="truncated"), 6, 0),
        (Verdict(outcome="completed", needle="degenerate"), 6, 0),
        (Verdict(outcome="stalled", mode="crawling"), 1, 1),
        (Verdict(outcome="stalled", mode="stuck"), 1, 1),
        (Verdict(outcome="crashed"), 5, 125),
        (Verdict(outcome="inconclusive"), 3, 125),
        (None, 3, 125),
    ],
)
def test_every_verdict_has_its_codes(verdict: Verdict | None, code: int, bisect: int) -> None:
    assert exit_code_of(verdict) == code
    assert git_bisect_code(exit_code_of(verdict)) == bisect


@pytest.mark.parametrize("code", [ExitCode.USAGE, ExitCode.ENVIRONMENT, ExitCode.INTERRUPTED, ExitCode.TERMINATED])
def test_git_bisect_stops_where_going_on_makes_no_sense(code: ExitCode) -> None:
    assert git_bisect_code(code) == 128
