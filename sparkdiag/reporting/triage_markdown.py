"""A diagnosis to paste into an issue or a pull request. Pure.

Nothing from a dump reaches the page except through ``safe_text``.
"""

from sparkdiag.evidence.diagnosis import CANNOT_TELL, Diagnosis, Reason
from sparkdiag.reporting import triage_phrases as phrases
from sparkdiag.reporting.details import Section, folded
from sparkdiag.reporting.fitted import fitted
from sparkdiag.reporting.safe_text import code, prose, table

_MOST_REASONS = 10
_ROWS_AT_ONCE = 16
_MOST_ROWS = 300


def render_triage(found: Diagnosis) -> str:
    """The answer, evidence for and against, the processes, the next step; at most 65,536 bytes of UTF-8."""
    head = f"## sparkdiag triage: {prose(phrases.headline(found), at_most=500)}"
    more = len(found.processes) > _ROWS_AT_ONCE
    rest = folded("All processes", _processes(found, most=_MOST_ROWS)) if more else ""
    parts = (Section(rank=1, title="All processes", markdown=rest),) if more else ()
    return fitted("\n\n".join([head, *diagnosis_blocks(found)]), parts, where="`--json`")


def diagnosis_blocks(found: Diagnosis) -> tuple[str, ...]:
    """The same without a title, for a page that has more to say; bounded however many processes there are."""
    blocks = (
        f"**Meaning.** {prose(phrases.meaning(found).rstrip('.'), at_most=600)}."
        + (f" {prose(found.reason, at_most=600)}" if found.reason else ""),
        _reasons("For", found.reasons_for if found.kind not in CANNOT_TELL else ()),
        _reasons("Against", found.reasons_against),
        "\n".join(f"- *ranks*: {prose(one.text)}" for one in found.classes[:_MOST_REASONS]),
        _differences(found),
        _processes(found, most=_ROWS_AT_ONCE),
        "\n".join(f"- *caveat*: {prose(text)}" for text in found.caveats),
        f"**Next**: {code(found.next_step, at_most=1000)}",
        f"**See** {code(found.reference)}" if found.reference else "",
    )
    return tuple(filter(None, blocks))


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
