"""Findings as lines for a terminal: one a finding, the reason and the next step under those that are not well. Pure."""

import textwrap
from collections import Counter
from collections.abc import Sequence

from sparkdiag.doctor.finding import Finding, Status, exit_code
from sparkdiag.errors import ExitCode

NAME_COLUMNS = 19
LEAST_COLUMNS = 60
_WORDS: dict[Status, str] = {"ok": "ok", "warn": "warn", "fail": "FAIL", "crashed": "CRASH"}
_INDENT = " " * (7 + NAME_COLUMNS)


def finding_lines(finding: Finding, *, columns: int) -> tuple[str, ...]:
    """Wrapped between words only, so that a command stays whole where it fits."""
    lines = _wrapped(f"{_WORDS[finding.status]:<6} {finding.name:<{NAME_COLUMNS}}", finding.seen, columns=columns)
    if finding.status != "ok":
        lines += _wrapped(_INDENT + "why:  ", finding.why, columns=columns)
    if finding.next_step is not None:
        lines += _wrapped(_INDENT + "next: ", finding.next_step, columns=columns)
    return tuple(lines)


def _wrapped(head: str, text: str, *, columns: int) -> list[str]:
    return textwrap.wrap(
        " ".join(text.split()),
        width=max(columns, LEAST_COLUMNS),
        initial_indent=head,
        subsequent_indent=" " * len(head),
        break_long_words=False,
        break_on_hyphens=False,
    ) or [head.rstrip()]


def summary_line(findings: Sequence[Finding]) -> str:
    """``20 ok, 1 warning, 1 failure: a run would fail here``."""
    counts = Counter(finding.status for finding in findings)
    words = [f"{counts['ok']} ok"]
    if counts["warn"]:
        words.append(f"{counts['warn']} warning{'s' * (counts['warn'] != 1)}")
    if counts["fail"]:
        words.append(f"{counts['fail']} failure{'s' * (counts['fail'] != 1)}")
    if counts["crashed"]:
        words.append(f"{counts['crashed']} could not be checked")
    verdict = "a run can work here" if exit_code(findings) is ExitCode.DONE else "a run would fail here"
    return f"{', '.join(words)}: {verdict}"
