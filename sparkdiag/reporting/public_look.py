"""The last look at a page before it is posted. Pure.

It only looks. What it would take out of a finished page might be a fence, a tick or a word between two values: whoever
replaces text there breaks the page open. So what it finds goes to a person, line by line.
"""

from difflib import SequenceMatcher

from sparkdiag.evidence.redaction import Redactions, Unclassified
from sparkdiag.harmless.doubtful import fingerprint, masked
from sparkdiag.harmless.identities import Identities
from sparkdiag.reporting.public import public_page

_WHY = "reads like a secret or somebody's name, now that the page is put together"
_MOST = 50


def looked_at(page: str, *, identities: Identities, accepted: frozenset[str] = frozenset()) -> Redactions:
    """What a person has to look at on ``page``; nothing is counted, because nothing is replaced."""
    clean, found = public_page(page, identities=identities, accepted=accepted)
    lines = [
        Unclassified(where=f"line {number}", looks=masked(line), fingerprint=fingerprint(line), why=_WHY)
        for number, line in _changed(page.split("\n"), clean.split("\n"))
        if fingerprint(line) not in accepted
    ]
    return Redactions(unclassified=found.unclassified).plus(Redactions(unclassified=tuple(lines[:_MOST])))


def _changed(before: list[str], after: list[str]) -> list[tuple[int, str]]:
    """Lines of ``before``, by number from 1, that are not in ``after`` as they were."""
    if len(before) == len(after):
        pairs = enumerate(zip(before, after, strict=True), start=1)
        return [(number, old) for number, (old, new) in pairs if old != new]
    kept = {
        place
        for block in SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks()
        for place in range(block.a, block.a + block.size)
    }
    return [(place + 1, line) for place, line in enumerate(before) if place not in kept]
