"""Which function has which colour: the same one everywhere on a page, told apart also without seeing colours. Pure."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from sparkdiag.reporting.bands import Band

SUSPECT = 0
OTHERS = 9
"""Classes ``c0`` (the suspect) to ``c8`` of the style sheet, by Okabe and Ito; ``c9`` is what has none of its own."""


@dataclass(frozen=True)
class Palette:
    """Functions to numbers of colours."""

    known: dict[str, int]
    suspect: str | None = None

    def of(self, function: str) -> int:
        """The suspect is always the first, by its bare name."""
        if self.suspect is not None and function.rsplit(".", 1)[-1] == self.suspect:
            return SUSPECT
        return self.known.get(function, OTHERS)


def palette_of(bands: Iterable[Band], *, suspect: str | None) -> Palette:
    """The functions that were seen most get a colour of their own, in that order."""
    looks: Counter[str] = Counter()
    for band in bands:
        for span in band.spans:
            looks[span.function] += span.looks
    ordered = sorted(looks, key=lambda name: (-looks[name], name))
    others = [name for name in ordered if name.rsplit(".", 1)[-1] != suspect]
    return Palette(known={name: place for place, name in enumerate(others[: OTHERS - 1], start=1)}, suspect=suspect)
