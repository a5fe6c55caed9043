"""The hidden line by which a comment is known to be the report of one run, and to be as we left it. Pure.

GitHub shows no HTML comment. The line holds what run it is (a hash of what the page may tell anyway: guesses at
anything else cannot be tried on it) and a digest of the page above it, so that a page somebody has edited by hand is
told from one that nobody has touched, on any machine.
"""

import hashlib
import re
from dataclasses import dataclass

from sparkdiag.errors import SparkdiagError
from sparkdiag.reporting.fitted import MOST_BYTES

ADDRESS = re.compile(r"https?://[A-Za-z0-9._:/-]{1,300}")
"""Of a gist, as an answer names it: nothing else goes on a page."""
_LINE = re.compile(r"<!-- sparkdiag:run=(?P<run>[0-9A-Za-z-]{8,60}) page=(?P<page>[0-9a-f]{16}) -->")


@dataclass(frozen=True, kw_only=True)
class Mark:
    """What a comment's marker tells."""

    run: str
    edited: bool
    """The page is not what was posted."""


def run_mark(*parts: str, began: str = "") -> str:
    """What run it is, the same wherever its folder lies: when it began, and a hash of what does not change in it.

    ``parts`` are public: whoever sees the hash can try guesses at them.
    """
    when = re.sub(r"[^0-9TZ]", "", began.replace("+00:00", "Z"))[:20]
    digest = hashlib.sha256("\0".join((began, *parts)).encode("utf-8", errors="backslashreplace")).hexdigest()
    return f"{when}-{digest[:16]}" if when else digest[:16]


def marked(page: str, *, run: str, gist_url: str | None = None) -> str:
    """The comment: ``page``, where its long parts are, and the marker as its last line.

    Raises ``SparkdiagError`` for a page that even shortened is too long.
    """
    more = f"\n\nLong parts: <{gist_url}>" if gist_url and ADDRESS.fullmatch(gist_url) else ""
    text = _plain(page) + more
    body = f"{text}\n\n<!-- sparkdiag:run={run} page={_digest(text)} -->\n"
    size = len(body.encode("utf-8"))
    if size > MOST_BYTES:  # GitHub counts characters, which are never more
        raise SparkdiagError(
            f"the comment has {size:,} bytes, however much is left out of it, and GitHub takes {MOST_BYTES:,}",
            remedy="sparkdiag report RUN --output FILE, and attach the file",
        )
    return body


def mark_of(body: str) -> Mark | None:
    """The marker of a comment: the last line that is one and nothing else; None where there is none."""
    lines = body.replace("\r\n", "\n").split("\n")
    for number in range(len(lines) - 1, -1, -1):
        found = _LINE.fullmatch(lines[number].rstrip())
        if found is not None:
            rest = _plain("\n".join((*lines[:number], *lines[number + 1 :])))
            return Mark(run=found["run"], edited=_digest(rest) != found["page"])
    return None


def same_text(one: str, other: str) -> bool:
    """Whether two comments say the same: line ends and white space at the ends are GitHub's, not ours."""
    return _plain(one) == _plain(other)


def text_sha256(body: str) -> str:
    """Of a comment's text, the same before and after GitHub has had it."""
    return hashlib.sha256(_plain(body).encode("utf-8", errors="backslashreplace")).hexdigest()


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").strip()


def _digest(text: str) -> str:
    return text_sha256(text)[:16]
