"""``VLLM_TRACE_FUNCTION=1``: a log of every call and return, of which the last lines say where a process stands.

https://github.com/vllm-project/vllm/blob/main/vllm/logger.py (``_trace_calls``)
"""

import re
from collections.abc import Sequence

from sparkdiag.dumps.building import Looks, ThreadText
from sparkdiag.dumps.kept import kept_frame, kept_line
from sparkdiag.evidence.dump import ProcessDump

NOTE = "the end of a trace of calls: what was entered last and has not returned"

_LONGEST = 2000
_PLACE = r"(?P<{0}>\S{{1,200}}) in (?P<{0}_path>\S{{1,1000}}):(?P<{0}_line>\d{{1,9}})"
_LINE = re.compile(
    rf"(?P<kind>Call to|Return from) {_PLACE.format('callee')} (?:from|to) {_PLACE.format('caller')}\s*\Z"
)
_KINDS = ("Call to ", "Return from ")
_DEEPEST = 1000

_Place = tuple[str, str, int | None]


def claims(lines: Sequence[str]) -> float:
    """Sure of two such lines."""
    seen = 0
    for line in lines:
        if _read(line) is not None:
            seen += 1
            if seen > 1:
                return 0.97
    return 0.9 if seen else 0.0


def read(lines: Sequence[str]) -> tuple[ProcessDump, ...]:
    """One look: the calls that are open after the last line."""
    stack: list[_Place] = []
    for line in lines:
        if (match := _read(line)) is not None:
            _apply(stack, match)
    if not stack:
        return ()
    looks = Looks("watchdog")
    thread = looks.begin(ThreadText(root_first=True, whole=False))
    thread.frames = [kept_frame(function, path=path, line=line) for function, path, line in stack]
    looks.look.notes.append(NOTE)
    return looks.finished()


def _read(line: str) -> re.Match[str] | None:
    for kind in _KINDS:
        at = line.find(kind, 0, 200)
        if at >= 0:
            return _LINE.match(line[at : at + _LONGEST])
    return None


def _apply(stack: list[_Place], match: re.Match[str]) -> None:
    callee = (match["callee"], match["callee_path"], kept_line(match["callee_line"]))
    caller = (match["caller"], match["caller_path"], kept_line(match["caller_line"]))
    at = next((index for index in range(len(stack) - 1, -1, -1) if stack[index][:2] == caller[:2]), None)
    if at is None:
        stack.clear()
        stack.append(caller)
    else:
        del stack[at + 1 :]
        stack[at] = caller
    if match["kind"] == "Call to":
        stack.append(callee)
        if len(stack) > _DEEPEST:
            del stack[: -_DEEPEST // 2]
