"""A value from a file, an argument or a server, as an error message shows it. Pure."""

from sparkdiag.harmless.printable import cut, escaped
from sparkdiag.harmless.secrets import redact_text


def shown(value: object, *, limit: int = 80) -> str:
    """``value`` for an error message: escaped, cut to ``limit`` characters, strings in quotes."""
    if isinstance(value, str):
        return "'" + cut(escaped(redact_text(value[: 16 * limit])[: limit + 1]), limit) + "'"
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list | tuple):
        return f"an array of {len(value)}"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and value.bit_length() > 256:
        return "an integer of more than 256 bits"
    return cut(escaped(redact_text(str(value))), limit)
