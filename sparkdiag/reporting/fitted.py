"""A page that fits where it is to be pasted. Pure."""

from collections.abc import Callable, Iterable, Sequence
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


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part of a page at several lengths; ``make`` is given the most that it may show."""

    title: str
    rank: int
    make: Callable[[int], str]
    most: tuple[int, ...]
    """Of the whole form first."""
    unit: str
    """What ``most`` counts."""
    open_: bool = False


def sections_of(parts: Iterable[Part]) -> tuple[Section, ...]:
    """Each folded, at every length; parts with nothing to say are not there."""
    return tuple(section for part in parts if (section := _section(part)) is not None)


def _section(part: Part) -> Section | None:
    """A shorter form that is as long as the one before it is none."""
    first = part.make(part.most[0])
    if not first:
        return None
    shorter: list[Form] = []
    before = first
    for most in part.most[1:]:
        body = part.make(most)
        if len(body) < len(before):
            markdown = folded(part.title, body, open_=part.open_)
            shorter.append(Form(markdown=markdown, shows=f"at most {most:,} {part.unit}"))
            before = body
    markdown = folded(part.title, first, open_=part.open_)
    return Section(rank=part.rank, title=part.title, markdown=markdown, shorter=tuple(shorter))


class _Chosen:
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


def folded(title: str, body: str, *, open_: bool = False) -> str:
    """``body`` behind a title that opens it (``open_``: open already); the title is ours."""
    return f"<details{' open' if open_ else ''}>\n<summary>{title}</summary>\n\n{body}\n\n</details>"


def fitted(head: str | Sequence[str], sections: Sequence[Section], *, where: str) -> str:
    """``head`` and as much of the sections as fits; what was cut is named; ``where`` is what holds all of it.

    ``head`` is to be short by itself. Given as blocks, its last ones are left out where it is not.
    """
    blocks = [head] if isinstance(head, str) else list(head)
    parts = [_Chosen(section) for section in sections]
    cut: list[_Chosen] = []
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


def _to_cut(parts: Sequence[_Chosen]) -> _Chosen | None:
    """The longest that takes more than its share and has a shorter form, else the least useful; None: nothing left."""
    long = [part for part in parts if part.can_shrink and part.bytes_ > _SHARE_BYTES]
    if long:
        return max(long, key=lambda part: part.bytes_)
    return max((part for part in parts if not part.dropped), key=lambda part: part.section.rank, default=None)


def _without_last_blocks(blocks: list[str], cut: Sequence[_Chosen], where: str) -> str:
    kept = list(blocks)
    while True:
        said = _said(cut, where, blocks_cut=len(blocks) - len(kept))
        text = _BREAK.join(filter(None, [*kept, said])) + "\n"
        if len(kept) == 1 or _bytes(text) <= _FITS_BYTES:
            return text
        kept.pop()


def _said(cut: Sequence[_Chosen], where: str, *, blocks_cut: int) -> str:
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
