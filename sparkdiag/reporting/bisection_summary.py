"""What the terminal shows of a bisection: the table of its trials, and the few lines at its end."""

import textwrap
from collections.abc import Sequence

from sparkdiag.evidence.bisection import Bisection, Commit, Trial
from sparkdiag.harmless.excerpt import one_line
from sparkdiag.harmless.printable import cut
from sparkdiag.reporting import bisection_phrases as phrases

_MOST_CANDIDATES = 20
_LEAST_EVIDENCE = 12
_HANGING = 13
"""Where the text after a label begins."""
_WIDEST = 110
_UNLIMITED = 160
"""Columns of the table where no terminal limits it."""
_HEAD = ("point", "why", "verdict", "side", "min", "evidence")
_MINUTES = _HEAD.index("min")


def bisection_summary(found: Bisection, *, columns: int | None, report: str, next_: str) -> str:
    """Plain text, nothing in it able to steer a terminal, wrapped where ``columns`` are given.

    ``report`` and ``next_``, a path and a command to copy, are never broken.
    """
    lines = [_told(f"{phrases.headline(found)}: ", _answer(found), columns, hanging=2)]
    if found.outcome == "candidates":
        lines += [_told("  ", _named(found, one), columns, hanging=4) for one in found.commits[:_MOST_CANDIDATES]]
        more = len(found.commits) - _MOST_CANDIDATES
        lines += [f"  … and {more} more (see the report)"] if more > 0 else []
    if found.outcome != "found":
        lines.append(_labelled("because", phrases.why_not_found(found), columns))
    lines.append(_labelled("searched", phrases.where(found), columns))
    lines += trial_table(found, found.trials, columns=columns or _UNLIMITED)
    lines += [_labelled(about, text, columns) for about, text in phrases.how_sure(found)]
    lines.append(_labelled("report", report, None))
    lines.append(_labelled("next", next_, None))
    return "\n".join(lines)


def trial_table(found: Bisection, trials: Sequence[Trial], *, columns: int) -> list[str]:
    """A heading and one line a trial, none longer than ``columns``; the evidence gives way first."""
    if not trials:
        return []
    rows: list[tuple[str, ...]] = [_HEAD, *(_row(found, trial) for trial in trials)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(_HEAD) - 1)]
    room = max(columns - 2 - sum(widths) - 2 * len(widths), _LEAST_EVIDENCE)
    return [cut(_line(row, widths, room), columns) for row in rows]


def _line(row: Sequence[str], widths: Sequence[int], room: int) -> str:
    cells = [f"{row[at]:>{width}}" if at == _MINUTES else f"{row[at]:<{width}}" for at, width in enumerate(widths)]
    return f"  {'  '.join(cells)}  {cut(row[-1], room)}".rstrip()


def _row(found: Bisection, trial: Trial) -> tuple[str, ...]:
    source = phrases.from_where(found, trial)
    return (
        one_line(phrases.short(found.axis, trial.result.sha), limit=20),
        trial.purpose,
        phrases.verdict(trial),
        phrases.side(trial),
        "–" if source else f"{trial.result.minutes:.1f}",
        one_line(f"as {source}" if source else phrases.evidence(found, trial)),
    )


def _answer(found: Bisection) -> str:
    said = phrases.answer(found)
    if found.outcome != "found" or not found.commits:
        return said
    return f"{said} {_named(found, found.commits[0])}{phrases.on(found)}"


def _named(found: Bisection, commit: Commit) -> str:
    words = phrases.in_words(found, commit)
    subject = f' "{cut(commit.subject, 120)}"' if commit.subject else ""
    return f"{phrases.short(found.axis, commit.sha)}{subject}" + (f" ({words})" if words else "")


def _labelled(label: str, text: str, columns: int | None) -> str:
    return _told(f"{label + ':':<{_HANGING}}", text, columns, hanging=_HANGING)


def _told(begin: str, text: str, columns: int | None, *, hanging: int) -> str:
    said = begin + one_line(text, limit=600)
    if columns is None:
        return said
    width = max(40, min(columns, _WIDEST))
    indent = " " * hanging
    return textwrap.fill(said, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
