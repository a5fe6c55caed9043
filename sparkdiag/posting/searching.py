"""The look for work that others have done already: open issues and pull requests that name the same functions."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sparkdiag.posting.github_values import Hit
from sparkdiag.posting.patience import Patience

if TYPE_CHECKING:
    from sparkdiag.posting.github import GitHub

KINDS = ("issue", "pull-request")
"""GitHub searches for one of them at a time."""
MOST_FUNCTIONS = 5
MOST_PAGES = 2
MOST_REQUESTS = {True: 28, False: 9}
"""A minute, with a token and without one: GitHub allows 30 and 10."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{2,79}")
_LONGEST_QUERY = 256


@dataclass(frozen=True, kw_only=True)
class Query:
    """One search: a function's name in one kind of conversation of one repository."""

    function: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Mention:
    """A conversation, and which of the functions it names."""

    hit: Hit
    functions: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Found:
    """What a search came to."""

    mentions: tuple[Mention, ...]
    functions: tuple[str, ...]
    """What was looked for."""
    cut: bool
    """There may be more than was asked for."""


def searched(names: Sequence[str | None]) -> tuple[str, ...]:
    """Of names, those that can be looked for, each once, at most five. Pure."""
    bare = [name.rpartition(".")[2] for name in names if name]
    return tuple(dict.fromkeys(name for name in bare if _NAME.fullmatch(name)))[:MOST_FUNCTIONS]


def queries(functions: Sequence[str], repositories: Sequence[str]) -> tuple[Query, ...]:
    """In the order of their worth: the first function everywhere before the second. Pure."""
    made = [
        Query(function=function, text=f'"{function}" repo:{repository} is:{kind} is:open')
        for function in functions
        for repository in repositories
        for kind in KINDS
    ]
    return tuple(query for query in made if len(query.text) <= _LONGEST_QUERY)


def joined(hits: Sequence[tuple[str, Hit]], *, without: str | None) -> tuple[Mention, ...]:
    """Each conversation once, those that name most functions first, then the newest; ``without`` left out. Pure."""
    by_place: dict[str, tuple[Hit, list[str]]] = {}
    for function, hit in hits:
        place = f"{hit.repository}#{hit.number}".lower()
        if without is None or place != without.lower():
            by_place.setdefault(place, (hit, []))[1].append(function)
    mentions = [Mention(hit=hit, functions=tuple(dict.fromkeys(functions))) for hit, functions in by_place.values()]
    newest = sorted(mentions, key=lambda one: one.hit.updated_at, reverse=True)
    return tuple(sorted(newest, key=lambda one: -len(one.functions)))


def search(
    hub: "GitHub", asked: Sequence[Query], *, patience: Patience, most_requests: int, without: str | None
) -> Found:
    """Ask GitHub, as often as it lets one in a minute; what that leaves out is said."""
    from sparkdiag.posting.github import PAGE

    hits: list[tuple[str, Hit]] = []
    cut = False
    for query in asked:
        for number in range(MOST_PAGES):
            if most_requests == 0:
                cut = True
                break
            most_requests -= 1
            page = patience.of(_page(hub, query, number))
            hits += [(query.function, hit) for hit in page]
            if len(page) < PAGE:
                break
        else:
            cut = True
    functions = tuple(dict.fromkeys(query.function for query in asked))
    return Found(mentions=joined(hits, without=without), functions=functions, cut=cut)


def _page(hub: "GitHub", query: Query, number: int) -> Callable[[], tuple[Hit, ...]]:
    return lambda: hub.search(query.text, page=number)
