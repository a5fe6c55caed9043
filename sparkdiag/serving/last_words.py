"""Which line of a server's log tells why it did not start. Pure."""

import re
from collections.abc import Iterable

_PREFIX = re.compile(r"^(?:\([^()]*\)\s*)?(?:(?:ERROR|CRITICAL)\s+(?:\S+\s+){2}\[[^\]]*\]\s*)?")
"""``(EngineCore pid=9) ERROR 11-30 04:26:59 [core.py:866]``: an error's line; other levels keep theirs."""
_RAISED = re.compile(r"^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit|Refused|NotFound|Violation)\b(?::|$)")
_PASSED_ON = re.compile(
    r"Engine core initialization failed|WorkerProc initialization failed|EngineDeadError|EngineCore encountered"
    r"|failed to be inspected|See (?:root cause|stack trace) above"
)
"""Raised because something else was: vLLM's processes tell each other that one of them failed."""


def telling_line(lines: Iterable[str]) -> str | None:
    """The first exception that was raised for a reason of its own, else the first of all; None where there is none.

    vLLM logs the cause in the process that failed and then one exception after the other up to the API server.
    """
    raised = [text for line in lines if _RAISED.match(text := _PREFIX.sub("", line.strip()))]
    own = [text for text in raised if not _PASSED_ON.search(text)]
    return next(iter(own or raised), None)
