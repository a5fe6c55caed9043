"""A text in pieces of one format each. Pure.

Formats differ in what a line looks like, so a piece ends where lines of another format begin. What people wrote
between two pieces belongs to the one that follows: it says whose stack that is.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sparkdiag.dumps.formats import pyspy_raw
from sparkdiag.dumps.formats.pyspy_lines import LONGEST_LINE, told
from sparkdiag.dumps.markup import FENCE
from sparkdiag.dumps.naming import names_process
from sparkdiag.dumps.stamps import stamp_in

Family = Literal["py-spy", "other"]

_SIGNS = (
    'File "', 'File: "', '"frames"', "#", "%Own", "% ", "most recent call", "Traceback", "Stack dump", "Call to ",
    "Return from ", "LWP ", ";", "Fatal Python", "Collecting samples", "(in ", "OpType=", "failed collective",
)  # fmt: skip
"""Without any of these there is nothing but ``py-spy dump`` in a text: nearly always."""
_STARTS = {
    "ray": r"Stack dump for ",
    "pystack": r"Traceback for thread \d|\((?:Python|C)\) File ",
    "faulthandler": (
        r"(?:Current thread|Thread) 0x[0-9a-fA-F]{1,16}.{0,100}\(most recent call first\)|Fatal Python error"
        r"|Stack \(most recent call first\)|Timeout \(\d{1,6}:\d"
    ),
    "gdb": (
        r"Thread \d{1,9} \((?:Thread 0x|LWP )|\(gdb\)|\[(?:Switching to thread|New LWP \d|Thread debugging)"
        r"|Traceback \(most recent call first\)|\*?\s{0,8}\d{1,6}\s{1,8}Thread 0x[0-9a-fA-F]{1,16} \(LWP "
    ),
    "banner": (
        r"[~+=*#-]{3,} ?Stack of |[~+=*#-]{2,} ?Thread \S.{0,100}\((?:\w{1,10}=)?\d{4,20}\b"
        r"|# Thread: ?\S.{0,100}\(\d{3,20}\)|ThreadID: ?\d|Stack \(most recent call last\)"
        r"|Thread \d{5,20} \((?!active|idle|unknown|running)[^()\n]{1,100}(?:\(\w{1,60}\))?\):?\s*\Z"
    ),
    "sample": r"Call graph:|Analysis of sampling ",
    "top": r"\d{1,3}\.\d\d%\s+\d{1,3}\.\d\d%\s|Collecting samples from '",
    "hash": r"(?:frame )?(?:#0:?\s{1,40}\S|#\d{1,4}:?\s{1,40}\S.{0,2000}?(?: in |\(| from |::))",
    "bare": r"File \"[^\"\n]{0,2000}\", line \d{1,9} in ",
    "listed": r"File:? \"[^\"\n]{0,2000}\", line (?:\d{1,9}|\?), in ",
    "file": r"File:? \"",
}
"""How a line of each format begins, its indentation left out."""
_START = re.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern in _STARTS.items()))
_ANYWHERE: tuple[tuple[str, str, re.Pattern[str]], ...] = (
    ("collective", "collective", re.compile(r".{0,400}?(?:Watchdog caught|Stack trace of the failed) collective")),
    ("collective", "(SeqNum", re.compile(r".{0,400}?\bWork[A-Z]{2,6}\(SeqNum")),
    ("traceback", "Traceback (", re.compile(r".{0,200}?\bTraceback \(most recent call last\)")),
    ("top", "%Own", re.compile(r".{0,2000}?%Own\s+%Total\b")),
    ("trace", "Call to ", re.compile(r".{0,100}\bCall to \S{1,200} in \S")),
    ("trace", "Return from ", re.compile(r".{0,100}\bReturn from \S{1,200} in \S")),
)
"""What may stand behind a log's words: a text that must be there, and the pattern."""
_WEAK = frozenset({"hash", "file", "bare", "listed"})
"""Lines of formats that have a header of their own; they begin a piece only where none is being read."""
_HEADED = frozenset({"ray", "pystack", "faulthandler", "gdb", "traceback", "banner", "trace", "sample", "collective"})
_FOREIGN = {
    "faulthandler": frozenset({"listed", "hash"}),
    "pystack": frozenset({"bare", "listed", "hash"}),
    "gdb": frozenset({"bare"}),
    "traceback": frozenset({"bare"}),
    "banner": frozenset({"bare", "hash"}),
}
"""Frames that a format never prints: with these another piece begins."""
_GROW = {
    "file": frozenset({"gdb", "pystack", "faulthandler"}),
    "hash": frozenset({"gdb"}),
    "bare": frozenset({"faulthandler"}),
    "listed": frozenset({"gdb"}),
}
"""Formats whose first thread is often quoted without its header."""
_SHOWN = re.compile(r"\s*(?:\((?:Python|C)\) )?File:? \"[^\"\n]{0,2000}\", line \d{1,9}, in ")
"""A frame below which its line of source stands."""
_RAISED = re.compile(r"[A-Za-z_][\w.]{0,120}(?:: |\Z)")
"""The last line of an exception's traceback."""
_DECORATED = re.compile(r"[-=#*~+<>]{2}")
_LONGEST_MOMENT = 60
_MOST_CAPTIONS = 12


@dataclass(slots=True)
class Segment:
    """Lines of one format, and what stood above them."""

    family: Family
    start: int
    """Of its first line, what stands above it left out."""
    lines: list[str]
    captions: list[str]


def segments_of(lines: Sequence[str]) -> list[Segment]:
    """The pieces, in order. Most texts are one."""
    text = "\n".join(lines)
    if not any(sign in text for sign in _SIGNS):
        return [Segment("py-spy", 0, list(lines), [])]
    return _Cutter(lines).segments


class _Cutter:
    """One pass over the lines."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.segments: list[Segment] = []
        self._kind: str | None = None
        self._pending: list[str] = []
        for index, line in enumerate(lines):
            if not line.strip():
                self._keep(line)
                continue
            kind = FENCE if line == FENCE else _kind_of(line, self._kind)
            if kind == FENCE:
                self._fence(line)
            elif kind is None:
                self._keep(line)
            elif self._goes_on(kind):
                self.segments[-1].lines += [*self._pending, line]
                self._pending = []
                self._kind = kind if self._kind in _WEAK else self._kind
            else:
                self._begin(kind, line, index)
        if self.segments and self._kind is not None:
            self.segments[-1].lines += self._pending

    def _goes_on(self, kind: str) -> bool:
        """Whether the line is of the piece that is being read."""
        if self._kind is None:
            return False
        if (
            kind != self._kind
            and kind not in _GROW.get(self._kind, ())
            and not (self._kind == "gdb" and kind == "traceback")
        ):
            return False
        return kind == "py-spy" or not any(
            line[:1] not in " \t" and (names_process(line) or _is_moment(line))
            for line in self._pending[self._source_lines() :]
            if line
        )

    def _source_lines(self) -> int:
        """How many of the pending lines are of the frame above: its source, ``worker = Worker(rank=0)``, its locals."""
        if not self._pending or _SHOWN.match(self.segments[-1].lines[-1]) is None:
            return 0
        indented = next((at for at, line in enumerate(self._pending) if line[:1] not in " \t"), len(self._pending))
        if indented:
            return indented
        if self._kind == "pystack" and not {"Arguments:", "Locals:"}.isdisjoint(self._pending):
            return self._pending.index("") if "" in self._pending else len(self._pending)
        return 1 if _DECORATED.match(self._pending[0]) is None else 0

    def _fence(self, line: str) -> None:
        if self._kind == "py-spy":
            self._keep(line)
        elif self._kind is not None:
            self._end_last()
            self._kind = None

    def _keep(self, line: str) -> None:
        self._pending.append(line)

    def _begin(self, kind: str, line: str, index: int) -> None:
        if self.segments and self._kind is not None:
            self._end_last()
        captions = [caption for caption in self._pending if caption.strip() and caption != FENCE][-_MOST_CAPTIONS:]
        if kind == "py-spy":
            self.segments.append(Segment("py-spy", index, [line], captions))
        else:  # what stands above may say to the format's reader what follows
            above = self._pending[-_MOST_CAPTIONS:]
            self.segments.append(Segment("other", index, [*above, line], captions))
        self._pending = []
        self._kind = kind

    def _end_last(self) -> None:
        """What is indented still belongs to what is above it: locals, lines of source."""
        last = next((place for place in range(len(self._pending), 0, -1) if self._pending[place - 1][:1] in " \t"), 0)
        if all(not line.strip() or line[:1] in " \t" for line in self._pending[:last]):
            self.segments[-1].lines += self._pending[:last]
            del self._pending[:last]
        if self._kind == "traceback" and self._pending and _RAISED.match(self._pending[0]):
            self.segments[-1].lines.append(self._pending.pop(0))


def _is_moment(line: str) -> bool:
    """Whether this is what ``date`` printed between two looks, and not a line of a log."""
    return len(line) <= _LONGEST_MOMENT and ":" in line and line.count(" ") <= 7 and stamp_in(line) is not None


def _start_of(line: str) -> str | None:
    """The format whose line this looks like."""
    if (match := _START.match(line.lstrip())) is not None:
        return match.lastgroup
    return next((name for name, told_by, pattern in _ANYWHERE if told_by in line and pattern.match(line)), None)


def _kind_of(line: str, current: str | None) -> str | None:
    name = _start_of(line)
    if name is not None:
        foreign = name in _FOREIGN.get(current or "", ())
        return current if name in _WEAK and current in _HEADED and not foreign else name
    may_be_raw = ";" in line if current == "py-spy" else current in (None, "raw")
    if may_be_raw and pyspy_raw.is_stack(line):
        return "raw"
    if current == "ray":
        return "ray"
    found = told(line.strip()[:LONGEST_LINE])
    if found.kind in ("thread", "process", "python", "glued"):
        return "py-spy"
    if found.kind == "frame" and (current in (None, "py-spy") or (found.frame is not None and not found.frame.native)):
        return "py-spy"
    if current == "py-spy" and found.kind != "other":
        return "py-spy"
    return None
