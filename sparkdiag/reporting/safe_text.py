"""Text from frames, paths, titles and logs, made unable to break out of a terminal, a code fence or a page. Pure.

The rule for Markdown: a word that is not plainly prose goes into a code span. There GitHub links no ``@name``, no
``#123``, no hash and no URL, and no HTML counts (https://github.github.com/gfm/#code-spans).
"""

import re
import unicodedata

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?"  # OSC, DCS and other strings
    r"|\x1b[ -/]*[0-~]"
    r"|\x9b[0-?]*[ -/]*[@-~]"
)
_UNPRINTED = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
_BREAKS = frozenset({"Zl", "Zp"})

_PROSE_WORD = re.compile(r"[(']*[^\W_]+(?:['’%+/-][^\W_]+|[.,]\d+)*(?:\((?:s|es)\))?%?[)']*[.,;:!?]*")
_PROSE_MARKS = frozenset("–—-×≈→=/+…±·%")
_LINKS_ANYWAY = re.compile(r"^(?:[0-9a-f]{7,64}|GH-\d+|www.*)\W*$", re.IGNORECASE)
_CORE = re.compile(r"^([(']*)(.*?)([)'.,;:!?]*)$", re.DOTALL)

_HOME = re.compile(r"/(?:home|Users)/[^/\s\"'`]+")


def plain(text: str, *, newlines: bool = False, at_most: int | None = None) -> str:
    """``text`` without escape sequences, control, bidirectional and other unseen characters; cut to ``at_most``.

    Line ends become spaces unless ``newlines``; tabs become spaces.
    """
    if at_most is not None and len(text) > 4 * at_most:
        text = text[: 4 * at_most]
    text = _ESCAPES.sub("", text.replace("\r\n", "\n"))
    kept = []
    for char in text:
        category = unicodedata.category(char)
        if char == "\n" or category in _BREAKS or char in "\r\x85\x0b\x0c":
            kept.append("\n" if newlines else " ")
        elif char == "\t":
            kept.append("    ")
        elif category == "Zs":
            kept.append(" ")
        elif category not in _UNPRINTED:
            kept.append(char)
    cleaned = "".join(kept)
    if at_most is not None and len(cleaned) > at_most:
        cleaned = cleaned[: max(at_most - 1, 0)] + "…"
    return cleaned


def without_home(text: str) -> str:
    """``text`` with home folders written ``~``: a public report names no user."""
    return _HOME.sub("~", text)


def code(text: str, *, at_most: int = 200) -> str:
    """``text`` as one Markdown code span, safe in a table too (a pipe becomes a look-alike)."""
    cleaned = " ".join(without_home(plain(text, at_most=at_most)).split()).replace("|", "│")
    if not cleaned:
        return "(empty)"
    longest = max((len(run) for run in re.findall(r"`+", cleaned)), default=0)
    ticks = "`" * (longest + 1)
    pad = " " if cleaned[0] == "`" or cleaned[-1] == "`" else ""
    return f"{ticks}{pad}{cleaned}{pad}{ticks}"


def prose(text: str, *, at_most: int = 400) -> str:
    """``text`` as Markdown that reads as it is: plain words stay, every other word becomes a code span.

    Never put at the start of a line: a lone ``-`` or ``1.`` would be a list there.
    """
    words = without_home(plain(text, at_most=at_most)).split()
    return " ".join(_word(word) for word in words)


def _word(word: str) -> str:
    if word.rstrip(".,;:!?)") in _PROSE_MARKS or (
        _PROSE_WORD.fullmatch(word) and not _LINKS_ANYWAY.match(word.lstrip("('"))
    ):
        return word
    core = _CORE.match(word)
    if core is None or not core[2]:
        return code(word)
    return f"{core[1]}{code(core[2])}{core[3]}"


def fence(body: str, *, info: str = "text", at_most: int | None = None) -> str:
    """``body`` in a fence longer than any run of backticks inside. ``info`` is one of ours, never from outside."""
    cleaned = without_home(plain(body, newlines=True, at_most=at_most)).rstrip("\n")
    longest = max((len(run) for run in re.findall(r"`+", cleaned)), default=0)
    ticks = "`" * max(3, longest + 1)
    return f"{ticks}{info}\n{cleaned}\n{ticks}"
