"""A watched server of which no stack was taken: what its own counters say, and what stands in the way. Pure."""

from sparkdiag.evidence.diagnosis import Diagnosis
from sparkdiag.reporting.safe_text import prose
from sparkdiag.reporting.triage_phrases import headline

_NO_STACK = "no stack was taken"


def watched_headline(found: Diagnosis) -> str:
    """The diagnosis in one line; without a stack only what the counters say."""
    if found.looks:
        return headline(found)
    if found.finding == "moving":
        return f"at work, by its own counters ({_NO_STACK})"
    return f"cannot tell: {_NO_STACK}"


def unsampled_lines(found: Diagnosis) -> list[str]:
    """For a terminal; made safe by whoever shows them."""
    lines = [watched_headline(found), found.reason or _NO_STACK]
    lines += [f"  {one.source}: {one.text}" for one in found.reasons_for]
    lines += [f"  caveat:  {text}" for text in found.caveats]
    return [*lines, f"next:     {found.next_step}"]


def unsampled_blocks(found: Diagnosis) -> tuple[str, ...]:
    """For a page."""
    told = [f"- *{prose(one.source)}*: {prose(one.text, at_most=600)}" for one in found.reasons_for]
    told += [f"- *caveat*: {prose(text, at_most=600)}" for text in found.caveats]
    return (
        f"**Stacks.** {prose(found.reason or _NO_STACK, at_most=600)}.",
        "\n".join(told),
        f"**Next**: {prose(found.next_step, at_most=1000)}",
    )
