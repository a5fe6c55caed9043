"""The lines that libraries' watchdogs put above a thread's stack. Pure.

Everybody writes this loop over ``sys._current_frames()`` by hand, so the headers differ: ``# Thread: name(id)``,
``~~~ Stack of name (id) ~~~`` (pytest-timeout), ``Thread id (name):``, ``ThreadID: id Name: name``.
"""

import re
from typing import NamedTuple

from sparkdiag.dumps.kept import kept_id, kept_name

_LONGEST = 200
_WORD = re.compile(r"\bthread|\bstack (?:of|for|trace)", re.IGNORECASE)
_EDGES = "-=~#*+<>| \t:"
_ID = r"(?:0x[0-9a-fA-F]{1,16}|\d{1,20})"
_SHAPES = tuple(
    re.compile(shape, re.IGNORECASE)
    for shape in (
        rf"Thread[ :#]+(?P<id>{_ID})[ :,]+[\"'](?P<name>[^\"']{{1,100}})[\"']",
        rf"Thread[ _]?ID[ :=]+(?P<id>{_ID})(?:[ ,]+(?:thread )?name[ :=]+(?P<name>.{{1,100}}))?\Z",
        rf"(?:stack(?: ?trace)? (?:of|for) )?Thread[ :#]+(?P<id>{_ID})(?: ?[\[(](?P<name>.{{1,100}})[\])])?\Z",
        r"(?:stack(?: ?trace)? (?:of|for) )?(?:Thread[ :]+)?(?P<name>.{1,100}?) ?[\[(]"
        r"(?:(?:thread )?(?:ident|id|tid)[ =:]+)?(?P<id>0x[0-9a-fA-F]{1,16}|\d{3,20})\b[^\])]{0,60}[\])]\Z",
        r"(?:stack(?: ?trace)? (?:of|for) )?Thread[ :]+[\"']?(?P<name>[^\"']{1,100})[\"']?\Z",
        r"stack(?: ?trace)? (?:of|for) [\"']?(?P<name>[^\"']{1,100})[\"']?\Z",
    )
)


class ThreadHeader(NamedTuple):
    """Who the stack below is of."""

    name: str | None
    thread_id: int | None


def thread_header(line: str) -> ThreadHeader | None:
    """What ``line`` says, if it looks like one; whether it is one shows the line below it."""
    text = line.strip(_EDGES)
    if not 0 < len(text) <= _LONGEST or _WORD.search(text) is None:
        return None
    for shape in _SHAPES:
        if match := shape.match(text):
            name = match["name"] if "name" in shape.groupindex else None
            found = kept_id(match["id"]) if "id" in shape.groupindex else None
            return ThreadHeader(kept_name(name) if name else None, found)
    return None
