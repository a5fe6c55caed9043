"""A page that fits where it is to be pasted. Pure."""

from collections.abc import Sequence
from typing import Protocol

MOST_BYTES = 65_536
"""What GitHub takes for one comment or pull request text."""


class Part(Protocol):
    """``reporting.details.Section`` is one."""

    @property
    def rank(self) -> int: ...
    @property
    def title(self) -> str: ...
    @property
    def markdown(self) -> str: ...


def fitted(head: str, sections: Sequence[Part], *, where: str) -> str:
    """``head`` and as many of the sections as fit; ``where`` names what holds those that were left out."""
    parts = list(sections)
    dropped: list[str] = []
    while True:
        text = _assembled(head, parts, dropped, where)
        if len(text.encode("utf-8")) <= MOST_BYTES or not parts:
            return text
        last = max(parts, key=lambda part: part.rank)
        parts.remove(last)
        dropped.append(last.title)


def _assembled(head: str, parts: list[Part], dropped: list[str], where: str) -> str:
    blocks = [head, *(part.markdown for part in parts)]
    if dropped:
        blocks.append(f"*Left out to stay under {MOST_BYTES:,} bytes: {', '.join(dropped)}. {where} has it all.*")
    return "\n\n".join(blocks) + "\n"
