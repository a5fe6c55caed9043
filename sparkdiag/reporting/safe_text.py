"""Text from frames, paths, titles and logs, made unable to break out of a code fence or a page. Pure.

The rule for Markdown: a word that is not plainly prose goes into a code span. There GitHub links no ``@name``, no
``#123``, no hash and no URL, and no HTML counts (https://github.github.com/gfm/#code-spans).
"""

import re
from collections.abc import Sequence

from sparkdiag.harmless.printable import printable

_PROSE_WORD = re.compile(r"[(']*[^\W_]+(?:['’%+/-][^\W_]+|[.,]\d+)*(?:\((?:s|es)\))?%?[)']*[.,;:!?]*")
_PROSE_MARKS = frozenset("–—-×≈→=/+…±·%>")
_LINKS_ANYWAY = re.compile(r"(?<![^\W_])(?:[0-9a-f]{7,}(?![^\W_])|(?!SHA-)[a-z]+-\d+(?![^\W_])|www\b)", re.IGNORECASE)
"""What GitHub makes a link of without a mark: commits, ``GH-12`` and a repository's own prefixes, ``www``."""
_BEGINS_A_BLOCK = re.compile(r"[-+=>]+|\d+[.)]")
_CORE = re.compile(r"^([(']*)(.*?)([)'.,;:!?]*)$", re.DOTALL)

_HOME = re.compile(r"/(?:home|Users)/[^/\s\"'`]+")


def without_home(text: str) -> str:
    """``text`` with home folders written ``~``: a public report names no user."""
    return _HOME.sub("~", text)


def code(text: str, *, at_most: int = 200) -> str:
    """``text`` as one Markdown code span, safe in a table too (a pipe becomes a look-alike)."""
    cleaned = " ".join(without_home(printable(text, limit=at_most)).split()).replace("|", "│")
    if not cleaned:
        return "(empty)"
    longest = max((len(run) for run in re.findall(r"`+", cleaned)), default=0)
    ticks = "`" * (longest + 1)
    pad = " " if cleaned[0] == "`" or cleaned[-1] == "`" else ""
    return f"{ticks}{pad}{cleaned}{pad}{ticks}"


def prose(text: str, *, at_most: int = 400) -> str:
    """``text`` as Markdown that reads as it is: plain words stay, every other word becomes a code span.

    One line, which may stand at the start of one: what would begin a list or a quotation there is in code too.
    """
    first, *others = without_home(printable(text, limit=at_most)).split() or [""]
    begin = code(first) if _BEGINS_A_BLOCK.fullmatch(first) else _word(first)
    return " ".join([begin, *map(_word, others)]) if first else ""


def table(head: tuple[str, ...], lines: Sequence[tuple[str, ...]]) -> str:
    """A table whose cells are Markdown already, without a pipe of their own."""
    made = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    return "\n".join([*made, *(f"| {' | '.join(line)} |" for line in lines)])


def _word(word: str) -> str:
    if word.rstrip(".,;:!?)") in _PROSE_MARKS or (_PROSE_WORD.fullmatch(word) and not _LINKS_ANYWAY.search(word)):
        return word
    core = _CORE.match(word)
    if core is None or not core[2]:
        return code(word)
    return f"{core[1]}{code(core[2])}{core[3]}"


def fence(body: str, *, info: str = "text", at_most: int | None = None) -> str:
    """``body`` in a fence longer than any run of backticks inside. ``info`` is one of ours, never from outside."""
    cleaned = without_home(printable(body, newlines=True, limit=at_most)).rstrip("\n")
    longest = max((len(run) for run in re.findall(r"`+", cleaned)), default=0)
    ticks = "`" * max(3, longest + 1)
    return f"{ticks}{info}\n{cleaned}\n{ticks}"
