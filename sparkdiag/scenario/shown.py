"""Text that came from a file, an argument or a server, made safe to show in one line of a terminal or a report."""


def hidden_characters(text: str, *, allowed: str = "") -> tuple[str, ...]:
    """The characters of ``text`` that do not print as themselves, each once, in order of appearance.

    A terminal obeys them (escapes), or draws what follows differently (bidi overrides), or nothing at all.
    """
    if text.isprintable():
        return ()
    return tuple(dict.fromkeys(item for item in text if not item.isprintable() and item not in allowed))


def escaped(text: str, *, allowed: str = "") -> str:
    """``text`` with every hidden character written as its escape (``\\x1b``)."""
    hidden = hidden_characters(text, allowed=allowed)
    if not hidden:
        return text
    return text.translate({ord(character): ascii(character)[1:-1] for character in hidden})


def shown(value: object, *, limit: int = 80) -> str:
    """``value`` for an error message: escaped, cut to ``limit`` characters, strings in quotes."""
    if isinstance(value, str):
        return "'" + _cut(escaped(value[: limit + 1]), limit) + "'"
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list | tuple):
        return f"an array of {len(value)}"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and value.bit_length() > 256:
        return "an integer of more than 256 bits"
    return _cut(escaped(str(value)), limit)


def one_line(text: str, *, limit: int = 300) -> str:
    """Any text as one safe line: runs of white space become a blank, the rest is escaped and cut."""
    return _cut(escaped(" ".join(text[: limit * 8].split())), limit)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
