"""A comparison to paste into a pull request. Pure; nothing from outside stands on it except through ``safe_text``."""

from sparkdiag.evidence.comparison import ComparedRow, Comparison
from sparkdiag.reporting.details import Section, folded
from sparkdiag.reporting.fitted import fitted
from sparkdiag.reporting.safe_text import code, prose, table

_MOST_CAVEATS = 12
_NAMES = ("machine", "environment", "scenario")
"""Rows whose cells are names, shown as such."""


def render_comparison(found: Comparison) -> str:
    """At most 65,536 bytes of UTF-8: the factor first, what differs next, what is the same folded."""
    head = "\n\n".join(filter(None, _head(found)))
    same = _rows([row for row in found.rows if not row.differs])
    sections = (Section(rank=1, title="The same in both", markdown=folded("The same in both", same)),) if same else ()
    return fitted(head, sections, where="`--json`")


def _head(found: Comparison) -> list[str]:
    differing = _rows([row for row in found.rows if row.differs])
    caveats = "\n".join(f"- *caveat*: {prose(text)}" for text in found.caveats[:_MOST_CAVEATS])
    return [
        "## sparkdiag: two runs compared",
        f"**Times.** {prose(found.sentence, at_most=600)}.",
        f"**A** is {code(found.a.run_dir)}: {prose(found.a.headline)}. "
        f"**B** is {code(found.b.run_dir)}: {prose(found.b.headline)}.",
        f"**What differs**\n\n{differing}" if differing else "**What differs**: nothing of what is compared.",
        _shares(found),
        caveats,
    ]


def _rows(rows: list[ComparedRow]) -> str:
    lines = [
        (
            code(row.what, at_most=60) if row.setting else prose(row.what, at_most=60),
            _cell(row, row.a),
            _cell(row, row.b),
        )
        for row in rows
    ]
    return table(("", "A", "B"), lines) if lines else ""


def _cell(row: ComparedRow, text: str) -> str:
    return code(text, at_most=160) if row.setting or row.what in _NAMES else prose(text, at_most=160) or "–"


def _shares(found: Comparison) -> str:
    lines = [(code(one.function, at_most=80), f"{one.a:.0%}", f"{one.b:.0%}") for one in found.stack_difference]
    said = "**Where the workers were** (share of their samples with the function innermost, largest difference first)"
    return f"{said}\n\n{table(('function', 'A', 'B'), lines)}" if lines else ""
