"""From a pasted text to the looks in it. Pure; takes any text whatsoever."""

from sparkdiag.dumps.formats import pyspy_text
from sparkdiag.dumps.naming import Identity, identified, named
from sparkdiag.evidence.dump import Pasted


def read_dumps(text: str, *, source: str) -> Pasted:
    """Every stack in ``text``, whatever printed it and however it was pasted. Never raises."""
    looks = tuple(
        named(pyspy_text.as_dump(look), above=identified(look.captions), prefix=Identity())
        for look in pyspy_text.looks_in(text.split("\n"))
        if look.threads
    )
    if not looks:
        return Pasted(source=source, refused="there is no stack in this text", refused_kind="not-an-engine")
    return Pasted(source=source, looks=looks)
