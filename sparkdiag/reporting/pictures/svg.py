"""Elements of a picture: every text in them escaped, every number short. Pure."""

from markupsafe import Markup, escape

from sparkdiag.harmless.printable import printable

LONGEST_TEXT = 300

Child = str | Markup
Attribute = str | float | int | None


def element(tag: str, *children: Child, **attributes: Attribute) -> Markup:
    """``<tag a-b="…">…</tag>`` of ``a_b="…"`` (``class_`` for a word of Python's); None leaves an attribute out.

    Children and values that are no ``Markup`` are text, cut at ``LONGEST_TEXT``. ``tag`` and names are ours.
    """
    named = Markup("").join(
        Markup(' {}="{}"').format(Markup(name.rstrip("_").replace("_", "-")), _value(value))  # noqa: S704 - our names
        for name, value in attributes.items()
        if value is not None
    )
    body = Markup("").join(child if isinstance(child, Markup) else text(child) for child in children)
    return Markup("<{0}{1}>{2}</{0}>").format(Markup(tag), named, body)  # noqa: S704 - our tags


def text(said: str, *, at_most: int = LONGEST_TEXT) -> Markup:
    """``said`` as text: what steers nothing in a page, and shows what it is."""
    return escape(printable(said, limit=at_most))


def number(value: float) -> str:
    """As short as a hundredth of a pixel allows."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def _value(value: str | float | int) -> Markup:
    if isinstance(value, Markup):
        return value
    return text(value) if isinstance(value, str) else Markup(number(value))  # noqa: S704 - a number


def hint(said: str) -> Markup:
    """What a pointer that rests on the element is told, and a reader of the screen."""
    return element("title", said)


def joined(*parts: Markup) -> Markup:
    """Parts one after the other."""
    return Markup("").join(parts)
