"""What a page is made of, as values: the template draws each kind in its way. Pure.

Every text in them is text: the template escapes it. Only ``Figure.markup`` is markup, made by ``svg.element``, and
``Written.markup``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from markupsafe import Markup


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Names and what they are, one a line."""

    kind: Literal["facts"] = "facts"
    rows: Sequence[tuple[str, str]]


@dataclass(frozen=True, kw_only=True)
class Points:
    """A heading and lines under it, each with where it comes from."""

    kind: Literal["points"] = "points"
    title: str
    rows: Sequence[tuple[str, str]]
    """(source, text)"""
    tone: Literal["for", "against", "warn", ""] = ""


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows under a head."""

    kind: Literal["table"] = "table"
    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    marked: frozenset[int] = frozenset()
    """Rows that differ from the rest."""
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Pre:
    """Text as it is: stacks, a command, a diff."""

    kind: Literal["pre"] = "pre"
    title: str
    body: str
    folded: bool = True
    to_copy: bool = False


@dataclass(frozen=True, kw_only=True)
class Written:
    """A part of the Markdown report; ``markup`` is made by ``written.written``."""

    kind: Literal["written"] = "written"
    title: str
    markup: Markup
    folded: bool = True


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A picture. ``clickable``: with a field to search in and a way back, for the script."""

    kind: Literal["figure"] = "figure"
    title: str
    markup: Markup
    caption: str = ""
    clickable: bool = False


@dataclass(frozen=True, kw_only=True)
class Beside:
    """Two figures, one beside the other where there is room."""

    kind: Literal["beside"] = "beside"
    left: Figure
    right: Figure


Block = Facts | Points | Table | Pre | Written | Figure | Beside


@dataclass(frozen=True, kw_only=True)
class Page:
    """A whole page."""

    title: str
    lead: str
    """The verdict in a sentence or two."""
    tone: Literal["bad", "good", "open"]
    about: str
    """Which run, when."""
    blocks: Sequence[Block] = field(default=())
    version: str = ""
