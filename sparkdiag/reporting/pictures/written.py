"""The parts of the Markdown report on the page to open: one source for both. Pure.

Those parts hold what was read only in code spans, fences and plain words (``safe_text``). Here the reader of Markdown
knows no HTML, no link and no image at all, so that nothing can become one.
"""

from collections.abc import Iterable
from functools import cache

from markdown_it import MarkdownIt
from markupsafe import Markup

from sparkdiag.evidence.stored import StoredRun
from sparkdiag.reporting.details import parts
from sparkdiag.reporting.phrases import again_command
from sparkdiag.reporting.pictures.blocks import Block, Pre, Written
from sparkdiag.reporting.triage_markdown import diagnosis_answer, diagnosis_evidence
from sparkdiag.reporting.unsampled import unsampled_blocks

_SHOWN_ABOVE = frozenset({"Evidence for and against"})
_NOT_KNOWN = ("html_block", "html_inline", "link", "image", "autolink", "reference", "entity")


def written(markdown: str) -> Markup:
    """``markdown`` of ours as markup."""
    return Markup(_reader().render(markdown))  # noqa: S704 - made by a reader that knows no HTML


def parts_of(stored: StoredRun) -> Iterable[Block]:
    """Every part of the report at its full length, folded; at the end what to type, open."""
    for part in parts(stored):
        body = part.make(part.most[0]) if part.title not in _SHOWN_ABOVE else ""
        if body:
            yield Written(title=part.title, markup=written(body))
    command = again_command(stored)
    if command is not None:
        yield Pre(title="Run it again", body=command, folded=False, to_copy=True)


def diagnosis_of(stored: StoredRun) -> Iterable[Block]:
    """What a watched server was found to do, open: its meaning, what it rests on, the next step."""
    found = stored.record.diagnosis
    if found is not None:
        said = [*diagnosis_answer(found), *diagnosis_evidence(found)] if found.looks else [*unsampled_blocks(found)]
        yield Written(title="Diagnosis", markup=written("\n\n".join(said)), folded=False)


@cache
def _reader() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}).enable("table").disable(list(_NOT_KNOWN))
