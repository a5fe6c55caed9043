"""The one way in which text from elsewhere becomes safe to show: what cannot be seen is written as its escape. Pure.

A terminal obeys control characters and escape sequences, a reader is misled by bidirectional overrides and by
characters that draw nothing, and a lone surrogate cannot be written at all.
"""

import re

_BLANK_LETTERS = "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef"
"""Letters and marks by Unicode's account (so ``isprintable``), yet nothing is drawn for them."""
_BLANK_LETTER = re.compile(f"[{_BLANK_LETTERS}]")
_SPACES = re.compile("[\t\xa0\u1680\u2000-\u200a\u202f\u205f\u3000]")
_SEQUENCES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI
    r"|\x1b[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?"  # OSC, DCS and other strings
    r"|\x1b[ -/]*[0-~]"
    r"|\x9b[0-?]*[ -/]*[@-~]"
)


def hidden_characters(text: str, *, allowed: str = "") -> tuple[str, ...]:
    """The characters of ``text`` that do not print as themselves, each once, in order of appearance."""
    if text.isprintable() and not _BLANK_LETTER.search(text):
        return ()
    return tuple(dict.fromkeys(char for char in text if char not in allowed and _is_hidden(char)))


def _is_hidden(char: str) -> bool:
    return not char.isprintable() or _BLANK_LETTER.match(char) is not None


def without_hidden(text: str) -> str:
    """``text`` without the hidden characters that are no white space."""
    hidden = [char for char in hidden_characters(text) if not char.isspace()]
    return text.translate({ord(char): None for char in hidden}) if hidden else text


def escaped(text: str, *, allowed: str = "") -> str:
    """``text`` with every hidden character written as its escape (``\\x1b``); twice is the same as once."""
    hidden = hidden_characters(text, allowed=allowed)
    if not hidden:
        return text
    return text.translate({ord(char): _escape(char) for char in hidden})


def _escape(char: str) -> str:
    return ascii(char)[1:-1]


def printable(text: str, *, newlines: bool = False, limit: int | None = None) -> str:
    """``text`` for a terminal or a page: spaces of every width become a blank, so do line ends unless ``newlines``;
    every other character that is not seen becomes its escape. Cut to ``limit`` characters."""
    if limit is not None:
        text = text[: limit + 1]
    text = _SPACES.sub(" ", text.replace("\r\n", "\n"))
    shown = escaped(text, allowed="\n") if newlines else escaped(text.replace("\n", " "))
    return shown if limit is None else cut(shown, limit)


def cut(text: str, limit: int) -> str:
    """``text``, of which a cut shows as an ellipsis."""
    return text if len(text) <= limit else text[: max(limit - 1, 0)] + "…"


def without_sequences(text: str) -> str:
    """``text`` written for a terminal, without its complete escape sequences (colours, links, cursor moves): the first
    step in reading another program's output. Not enough to show it."""
    return _SEQUENCES.sub("", text)
