"""A page that fits where it is to be pasted. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from sparkdiag.reporting.phrases import size

MOST_BYTES = 65_536
"""What GitHub takes for one comment or pull request text."""
FOR_POSTING_BYTES = 512
"""Left free of it: ``posting.marker`` puts its line, and a gist's address, below a page."""
_FITS_BYTES = MOST_BYTES - FOR_POSTING_BYTES
_SHARE_BYTES = 12_000
"""While the page is too long, no part keeps more than this as long as it has a shorter form."""
_BREAK = "\n\n"


@dataclass(frozen=True, kw_only=True)
class Form:
    """A shorter form of a section, and what it still shows: ``12 of 40 frames a stack``."""

    markdown: str
    shows: str


@dataclass(frozen=True, kw_only=True)
class Section:
    """``rank`` grows with dispensability: the highest is cut first."""

    rank: int
    title: str
    markdown: str
    shorter: tuple[Form, ...] = ()
    """Tried in this order before the section is left out."""


class _Part:
    """A section in the form chosen so far."""

    def __init__(self, section: Section) -> None:
        self.section = section
        self.forms = (section.markdown, *(form.markdown for form in section.shorter))
        self.sizes = tuple(_bytes(form) + len(_BREAK) for form in self.forms)
        self.form = 0
        self.dropped = False

    @property
    def bytes_(self) -> int:
        return 0 if self.dropped else self.sizes[self.form]

    @property
    def can_shrink(self) -> bool:
        return not self.dropped and self.form + 1 < len(self.forms)

    def step(self) -> None:
        """To the next shorter form, else out."""
        if self.can_shrink:
            self.form += 1
        else:
            self.dropped = True

    @property
    def said(self) -> str:
        if self.dropped:
            return f"{self.section.title} ({size(self.sizes[0])})"
        return f"{self.section.title} ({self.section.shorter[self.form - 1].shows})"


def fitted(head: str | Sequence[str], sections: Sequence[Section], *, where: str) -> str:
    """``head`` and as much of the sections as fits; what was cut is named; ``where`` is what holds all of it.

    ``head`` is to be short by itself. Given as blocks, its last ones are left out where it is not.
    """
    blocks = [head] if isinstance(head, str) else list(head)
    parts = [_Part(section) for section in sections]
    cut: list[_Part] = []
    head_bytes = sum(_bytes(block) + len(_BREAK) for block in blocks)
    while head_bytes + sum(part.bytes_ for part in parts) + _bytes(_said(cut, where, blocks_cut=0)) > _FITS_BYTES:
        chosen = _to_cut(parts)
        if chosen is None:
            return _without_last_blocks(blocks, cut, where)
        chosen.step()
        if chosen not in cut:
            cut.append(chosen)
    shown = [part.forms[part.form] for part in parts if not part.dropped]
    return _BREAK.join(filter(None, [*blocks, *shown, _said(cut, where, blocks_cut=0)])) + "\n"


def _to_cut(parts: Sequence[_Part]) -> _Part | None:
    """The longest that takes more than its share and has a shorter form, else the least useful; None: nothing left."""
    long = [part for part in parts if part.can_shrink and part.bytes_ > _SHARE_BYTES]
    if long:
        return max(long, key=lambda part: part.bytes_)
    return max((part for part in parts if not part.dropped), key=lambda part: part.section.rank, default=None)


def _without_last_blocks(blocks: list[str], cut: Sequence[_Part], where: str) -> str:
    kept = list(blocks)
    while True:
        said = _said(cut, where, blocks_cut=len(blocks) - len(kept))
        text = _BREAK.join(filter(None, [*kept, said])) + "\n"
        if len(kept) == 1 or _bytes(text) <= _FITS_BYTES:
            return text
        kept.pop()


def _said(cut: Sequence[_Part], where: str, *, blocks_cut: int) -> str:
    """``*Left out to stay under 65,536 bytes: Notes (4.1 KiB); shortened: … The run folder has it all.*``"""
    out = [part.said for part in cut if part.dropped]
    out += [f"the last {blocks_cut} paragraphs above"] if blocks_cut else []
    short = [part.said for part in cut if not part.dropped]
    lists = [(word, items) for word, items in (("left out", out), ("shortened", short)) if items]
    if not lists:
        return ""
    first, *others = [f"{word}: {', '.join(items)}" for word, items in lists]
    begin = first.replace(":", f" to stay under {MOST_BYTES:,} bytes:", 1)
    return f"*{'; '.join([begin[0].upper() + begin[1:], *others])}. {where} has it all.*"


def _bytes(text: str) -> int:
    return len(text.encode("utf-8"))
