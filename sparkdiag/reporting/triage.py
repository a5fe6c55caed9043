"""A diagnosis as plain text for a terminal. Pure."""

import textwrap

from sparkdiag.evidence.diagnosis import CANNOT_TELL, Diagnosis, ProcessDiagnosis, Reason
from sparkdiag.harmless.printable import printable
from sparkdiag.reporting import triage_phrases as phrases

_MOST_REASONS = 6
_MOST_ROWS = 40
_WIDEST = 110
_LABELS = ("  for:     ", "  against: ", "  caveat:  ", "  differs: ", "  ranks:   ")


def triage_text(found: Diagnosis, *, columns: int | None = None) -> str:
    """The answer, what speaks for and against it, each process, and what to type next."""
    lines = [phrases.headline(found), phrases.meaning(found) + (f" ({found.reason})" if found.reason else "")]
    told = found.reasons_for if found.kind not in CANNOT_TELL else ()  # the reason says it already
    lines += [f"{_LABELS[0]}{_reason(one)}" for one in told[:_MOST_REASONS]]
    lines += [f"{_LABELS[1]}{_reason(one)}" for one in found.reasons_against[:_MOST_REASONS]]
    lines += [f"{_LABELS[4]}{one.text}" for one in found.classes[:_MOST_ROWS] if len(found.processes) > 1]
    lines += [f"{_LABELS[3]}{one.name}: good {one.good}; bad {one.bad}" for one in found.differences[:_MOST_ROWS]]
    lines += [f"{_LABELS[2]}{text}" for text in found.caveats]
    if len(found.processes) > 1:
        lines += _processes(found.processes)
    lines.append(f"next:     {found.next_step}")
    if found.reference:
        lines.append(f"see:      {found.reference}")
    return "\n".join(_fitted(printable(line, limit=2000), columns) for line in lines)


def _reason(one: Reason) -> str:
    return f"{one.text} [{one.source}]"


def _processes(found: tuple[ProcessDiagnosis, ...]) -> list[str]:
    rows = [(("* " if one.differs else "  ") + one.name, one.kind, phrases.place(one)) for one in found[:_MOST_ROWS]]
    widths = [min(max(len(row[column]) for row in rows), 40) for column in (0, 1)]
    lines = [f"{name:{widths[0]}}  {kind:{widths[1]}}  {where}" for name, kind, where in rows]
    more = len(found) - _MOST_ROWS
    return [*lines, *([f"  … {more} more in --json"] if more > 0 else [])]


def _fitted(line: str, columns: int | None) -> str:
    """Broken between words for a terminal of that width; what is there to be copied stays whole."""
    if columns is None or line.startswith(("next:", "see:")):
        return line
    hanging = next((" " * len(label) for label in _LABELS if line.startswith(label)), "")
    width = max(40, min(columns, _WIDEST))
    return textwrap.fill(line, width, subsequent_indent=hanging, break_long_words=False, break_on_hyphens=False)
