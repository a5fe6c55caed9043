"""``py-spy top``: a screen of functions with their shares of the time. Pure.

It is no stack. The functions in which the time is spent come first, those that they were called from after them by
how much they cover: that is the order of a stack as far as there is one, and the look says so.
"""

import re
from collections.abc import Sequence

from sparkdiag.dumps.kept import kept_frame, kept_line, kept_title
from sparkdiag.evidence.dump import DumpThread, ProcessDump

_ROW = re.compile(
    r"(?<![\d.])(?P<own>\d{1,4}\.\d{1,2})%[ \t]+(?P<total>\d{1,4}\.\d{1,2})%[ \t]+"
    r"\d{1,9}(?:\.\d{1,4})?s?[ \t]+\d{1,9}(?:\.\d{1,4})?s?[ \t]+"
    r"(?P<function>[^\s()]{1,300})[ \t]+\((?P<path>[^()\n]{1,400})\)"
)
_COLLECTING = re.compile(
    r"Collecting samples from '(?P<title>[^\n']{0,2000})'(?: \(python v(?P<python>[\w.+]{1,20})\))?"
)
_PID = re.compile(r"pid: ?(?P<pid>\d{1,10})\Z")
_SAMPLES = re.compile(r"Total Samples:? (?P<samples>\d{1,12})")
_GIL = re.compile(r"GIL: {0,3}(?P<gil>\d{1,4}(?:\.\d{1,3})?)%, {0,3}Active: {0,3}(?P<active>\d{1,4}(?:\.\d{1,3})?)%")
_MOST_ROWS = 400


def claims(lines: Sequence[str]) -> float:
    """Sure where there is a row of figures; the table's head alone is a screen before the first sample."""
    for line in lines[:2000]:
        if "%" in line and _ROW.search(line[:4000]) is not None:
            return 0.99
    return 0.0


def read(lines: Sequence[str]) -> tuple[ProcessDump, ...]:
    """A look a screen; of a recorded terminal only the last full screen, because its figures are totals."""
    text = "\n".join(lines)
    starts = [match.start() for match in re.finditer(r"Collecting samples from '|%Own", text)]
    screens = _screens(text, starts)
    looks = [look for screen in screens if (look := _look(screen)) is not None]
    return tuple(looks[-1:]) if len({look.title for look in looks}) <= 1 else tuple(looks)


def _screens(text: str, starts: list[int]) -> list[str]:
    """The text in pieces, each with one table."""
    if not starts:
        return [text]
    pieces = [text[begin:end] for begin, end in zip(starts, [*starts[1:], len(text)], strict=True)]
    screens: list[str] = []
    for piece in pieces:
        if screens and _ROW.search(screens[-1]) is None:
            screens[-1] += piece
        else:
            screens.append(piece)
    return screens


def _look(screen: str) -> ProcessDump | None:
    rows = [match.groupdict() for match, _ in zip(_ROW.finditer(screen), range(_MOST_ROWS), strict=False)]
    if not rows:
        return None
    spent = sorted((row for row in rows if float(row["own"]) > 0), key=lambda row: -float(row["own"]))
    callers = sorted((row for row in rows if float(row["own"]) <= 0), key=lambda row: float(row["total"]))
    frames = []
    for row in (*spent, *callers):
        path, colon, line = row["path"].rpartition(":")
        known = colon and line.isdigit()
        frames.append(
            kept_frame(row["function"], path=path if known else row["path"], line=kept_line(line) if known else None)
        )
    collecting, samples, gil = _COLLECTING.search(screen), _SAMPLES.search(screen), _GIL.search(screen)
    title = collecting["title"] if collecting is not None else None
    pid = _PID.match(title) if title is not None else None
    notes = ["py-spy top shows shares of the time, not stacks: the order of the functions is a guess"]
    if gil is not None:
        notes.append(f"GIL {gil['gil']} %, active {gil['active']} %")
    thread = DumpThread(
        state="active" if gil is None or float(gil["active"]) > 0 else "idle",
        frames=tuple(frames),
        samples=int(samples["samples"]) if samples is not None else 1,
        whole=False,
    )
    return ProcessDump(
        tool="py-spy top",
        pid=int(pid["pid"]) if pid is not None else None,
        title=kept_title(title) if title and pid is None else None,
        python=collecting["python"] if collecting is not None else None,
        threads=(thread,),
        notes=tuple(notes),
    )
