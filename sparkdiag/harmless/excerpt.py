"""A part of what somebody else said, for a message or a record: secrets out, made visible, and only then cut. Pure.

In this order: of a password that was cut in two, or hides behind an escape, nobody can tell that it is one.
"""

from sparkdiag.harmless.printable import printable
from sparkdiag.harmless.secrets import redact_text

_LOOK_AT = 16
"""Times the limit: so much of a text is read at all."""


def excerpt(text: str, *, limit: int) -> str:
    """The beginning of ``text``, at most ``limit`` characters; line ends become blanks."""
    return printable(redact_text(text[: limit * _LOOK_AT]), limit=limit)


def one_line(text: str, *, limit: int = 300) -> str:
    """Like ``excerpt``, with runs of white space as one blank."""
    return printable(" ".join(redact_text(text[: limit * _LOOK_AT]).split()), limit=limit)
