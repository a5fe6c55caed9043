"""A diagnosis to paste into an issue or a pull request. Pure.

Nothing from a dump reaches the page except through ``safe_text``.
"""

from collections.abc import Sequence

from sparkdiag.evidence.diagnosis import CANNOT_TELL, Diagnosis, Reason
from sparkdiag.reporting import triage_phrases as phrases
from sparkdiag.reporting.fitted import Form, Section, fitted, folded
from sparkdiag.reporting.safe_text import code, prose, table

_MOST_REASONS = 10
_ROWS_AT_ONCE = 16
_MOST_ROWS = (300, 100, 40)
_MOST_CAVEATS = 12


def render_triage(found: Diagnosis) -> str:
    """The answer, evidence for and against, the processes, the next step; at most 65,536 bytes of UTF-8."""
    head = f"## sparkdiag triage: {prose(phrases.headline(found), at_most=500)}"
    more = len(found.processes) > _ROWS_AT_ONCE
    forms = [folded("All processes", _processes(found, most=most)) for most in _MOST_ROWS] if more else []
    parts = [
        Section(
            rank=1,
            title="All processes",
            markdown=whole,
            shorter=tuple(
                Form(markdown=form, shows=f"{most} of {len(found.processes)}")
                for form, most in zip(shorter, _MOST_ROWS[1:], strict=True)
                if most < len(found.processes)
            ),
        )
        for whole, *shorter in filter(None, [forms])
    ]
    meaning, *rest = diagnosis_answer(found)
    return fitted([head, meaning, *diagnosis_evidence(found), *rest], parts, where="`--json`")


def diagnosis_answer(found: Diagnosis) -> tuple[str, ...]:
    """What it means, and what to do next: for a first screen."""
    blocks = (
        f"**Meaning.** {prose(phrases.meaning(found).rstrip('.'), at_most=600)}."
        + (f" {prose(found.reason, at_most=600)}" if found.reason else ""),
        _next(found.next_step),
        f"**See** {code(found.reference)}" if found.reference else "",
    )
    return tuple(filter(None, blocks))


def diagnosis_evidence(found: Diagnosis, most: int = _MOST_REASONS) -> tuple[str, ...]:
    """What it rests on; bounded however many processes there are."""
    blocks = (
        _reasons("For", found.reasons_for[:most] if found.kind not in CANNOT_TELL else ()),
        _reasons("Against", found.reasons_against[:most]),
        _listed("Ranks", [one.text for one in found.classes[:most]]),
        _differences(found),
        _processes(found, most=most + _ROWS_AT_ONCE - _MOST_REASONS),
        _listed("Caveats", found.caveats[:_MOST_CAVEATS]),
    )
    return tuple(filter(None, blocks))


def _listed(title: str, texts: Sequence[str]) -> str:
    return "\n".join([f"**{title}**", "", *(f"- {prose(text)}" for text in texts)]) if texts else ""


def _next(step: str) -> str:
    """A command, and after a colon what it answers; or words alone."""
    command, colon, why = step.partition(": ")
    if not colon or not command.startswith("sparkdiag "):
        return f"**Next**: {prose(step, at_most=1000)}"
    return f"**Next**: {code(command, at_most=600)}: {prose(why, at_most=600)}"


def _reasons(title: str, reasons: tuple[Reason, ...]) -> str:
    lines = [f"- {prose(one.text, at_most=600)} ({prose(one.source)})" for one in reasons[:_MOST_REASONS]]
    return "\n".join([f"**{title}**", "", *lines]) if lines else ""


def _differences(found: Diagnosis) -> str:
    rows = [(code(one.name), code(one.good), code(one.bad)) for one in found.differences[:_ROWS_AT_ONCE]]
    return table(("what", "good", "bad"), rows) if rows else ""


def _processes(found: Diagnosis, *, most: int) -> str:
    rows = [
        (
            f"**{code(one.name)}**" if one.differs else code(one.name),
            one.kind,
            code(phrases.place(one)),
            prose(phrases.moved(one)),
        )
        for one in found.processes[:most]
    ]
    return table(("process", "kind", "where", "moved"), rows) if rows else ""
