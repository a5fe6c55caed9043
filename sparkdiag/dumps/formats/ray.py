"""``ray stack``: the ``ps aux`` line of each worker and py-spy's text below it.

https://github.com/ray-project/ray/blob/master/python/ray/scripts/scripts.py (``stack``)
"""

import re
from collections.abc import Sequence
from itertools import pairwise

from sparkdiag.dumps.formats import pyspy_text
from sparkdiag.dumps.kept import MOST_PROCESSES, kept_id, kept_title
from sparkdiag.evidence.dump import ProcessDump

_HEADER = "Stack dump for "
_LONGEST = 4000
_PS = re.compile(r"Stack dump for (?P<user>\S{1,64}) {1,30}(?P<pid>\d{1,10})(?: {1,30}(?P<rest>.*))?")
_COLUMNS_BEFORE_COMMAND = 8
"""CPU, memory, VSZ, RSS, terminal, state, start and time stand between the pid and the command."""


def claims(lines: Sequence[str]) -> float:
    """Sure of its header, which nothing else prints."""
    return (
        0.98 if any(line.lstrip().startswith(_HEADER) and _PS.match(line.strip()[:_LONGEST]) for line in lines) else 0.0
    )


def read(lines: Sequence[str]) -> tuple[ProcessDump, ...]:
    """The looks of every process; those that py-spy could not read are counted in a note."""
    starts = [at for at, line in enumerate(lines) if line.lstrip().startswith(_HEADER)]
    looks = [_with(look, None, None) for look in pyspy_text.read(lines[: starts[0] if starts else len(lines)])]
    failed = 0
    for start, end in pairwise([*starts, len(lines)]):
        match = _PS.match(lines[start].strip()[:_LONGEST])
        pid, title = (None, None) if match is None else (kept_id(match["pid"]), _command(match["rest"] or ""))
        found = pyspy_text.read(lines[start + 1 : end])
        failed += not found
        looks += [_with(look, pid, title) for look in found]
    if failed and looks:
        words = f"py-spy could not read {failed} process{'es' if failed > 1 else ''} more"
        looks[0] = looks[0].model_copy(update={"notes": (*looks[0].notes, words)})
    return tuple(looks[:MOST_PROCESSES])


def _command(rest: str) -> str | None:
    columns = rest.split(None, _COLUMNS_BEFORE_COMMAND)
    if len(columns) > _COLUMNS_BEFORE_COMMAND:
        return kept_title(columns[-1])
    at = rest.find("ray::")
    return kept_title(rest[at:]) if at >= 0 else None


def _with(look: ProcessDump, pid: int | None, title: str | None) -> ProcessDump:
    return look.model_copy(update={"tool": "ray", "pid": look.pid or pid, "title": look.title or title})
