"""The hidden line by which a comment is known to be the report of one run, and to be as we left it. Pure.

GitHub shows no HTML comment. The line holds what run it is (a hash: nothing of the run can be read from it) and a
digest of the page above it, so that a page somebody has edited by hand is told from one that nobody has touched, on
any machine.
"""

import hashlib
import re
from dataclasses import dataclass

from sparkdiag.errors import DefectError
from sparkdiag.reporting.fitted import MOST_BYTES

ADDRESS = re.compile(r"https?://[A-Za-z0-9._:/-]{1,300}")
"""Of a gist. It comes from GitHub or from a file that anybody may have sent, so nothing else goes on a page."""
_LINE = re.compile(r"<!-- sparkdiag:run=(?P<run>[0-9A-Za-z-]{8,60}) page=(?P<page>[0-9a-f]{16}) -->")


@dataclass(frozen=True, kw_only=True)
class Mark:
    """What a comment's marker tells."""

    run: str
    edited: bool
    """The page is not what was posted."""


def run_mark(*parts: str, began: str = "") -> str:
    """What run it is, the same wherever its folder lies: when it began, and a hash of what does not change in it."""
    when = re.sub(r"[^0-9TZ]", "", began.replace("+00:00", "Z"))[:20]
    digest = hashlib.sha256("\0".join((began, *parts)).encode("utf-8", errors="backslashreplace")).hexdigest()
    return f"{when}-{digest[:16]}" if when else digest[:16]


def marked(page: str, *, run: str, gist_url: str | None = None) -> str:
    """The comment: ``page``, where its long parts are, and the marker as its last line."""
    more = f"\n\nLong parts: <{gist_url}>" if gist_url and ADDRESS.fullmatch(gist_url) else ""
    text = _plain(page) + more
    body = f"{text}\n\n<!-- sparkdiag:run={run} page={_digest(text)} -->\n"
    size = len(body.encode("utf-8"))
    if size > MOST_BYTES:  # GitHub counts characters, which are never more
        raise DefectError(f"the comment has {size:,} bytes, and GitHub takes {MOST_BYTES:,}")
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


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").strip()


def _digest(text: str) -> str:
    return hashlib.sha256(_plain(text).encode("utf-8", errors="backslashreplace")).hexdigest()[:16]
