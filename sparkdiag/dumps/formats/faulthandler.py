"""CPython's faulthandler: on a crash, on a signal, on ``dump_traceback_later``; innermost frame first.

https://github.com/python/cpython/blob/main/Python/traceback.c (``_Py_DumpTracebackThreads``). Python 3.14 prints the
name that the kernel has for a thread and may add the C stack. Also as people copy it: without indentation, frames
typed as ``f (x.py:3)``, two frames in one line.
"""

import re
from collections.abc import Sequence

from sparkdiag.dumps.building import COLLECTING, Looks, ThreadText
from sparkdiag.dumps.kept import kept_frame, kept_id, kept_line, kept_name, kept_path
from sparkdiag.dumps.main_thread import is_main
from sparkdiag.dumps.native_names import bare_native
from sparkdiag.dumps.process_lines import process_line
from sparkdiag.evidence.dump import ProcessDump

_LONGEST = 20_000
_FIRST = "(most recent call first)"
_THREAD = re.compile(
    r"(?:Current t|T)hread (?P<id>0x[0-9a-fA-F.]{1,18}|0x\.\.\.)?(?: ?\[(?P<name>[^\[\]]{0,200})\])?"
    r"(?: (?P<gc>\(GC\)))?\s*(?:'s C stack trace )?\(most recent call first\)"
)
_C_STACK = re.compile(r"Current thread's C stack trace \(most recent call first\)")
_STACK = re.compile(r"Stack \(most recent call first\)")
_FRAME = re.compile(
    r'File "(?P<path>[^"\n]{0,2000})", line (?P<line>\d{1,9}|\?\?\?)(?: in (?P<function>[^"\n]{1,500}?))?'
    r'\s{0,20}(?=File "|\Z)'
)
_TYPED = re.compile(r"(?P<function>[\w<>.]{1,200}) \((?P<path>[^()\s]{1,400}):(?P<line>\d{1,9})\)\s*\Z")
_BINARY = re.compile(
    r'Binary file "(?P<path>[^"\n]{0,2000})"(?:, at (?P<symbol>[^\[\n]{0,400}?)(?:\+0x[0-9a-f]{1,16})?)?'
    r" \[0x[0-9a-f]{1,16}\]"
)
_BEGINS = ("Fatal Python error", "Timeout (", "Windows fatal exception")
_IGNORED = ("Extension modules:", "Python runtime state:", "Exception ignored", "<no Python frame>", "<tstate ")


def claims(lines: Sequence[str]) -> float:
    """Sure of a thread's header with "most recent call first"; of its bare frames (``line 3 in f``) nearly so."""
    frames = 0
    for line in lines:
        text = line.strip()
        if text.startswith(("Thread 0x", "Current thread", "Stack (most")) and _FIRST in text:
            return 0.97
        if (
            text.startswith('File "')
            and " in " in text
            and (match := _FRAME.match(text[:_LONGEST]))
            and match["function"]
        ):
            frames += 1
    return 0.85 if frames >= 2 else 0.5 if frames else 0.0


def read(lines: Sequence[str]) -> tuple[ProcessDump, ...]:
    """A look for each dump: a thread that comes again, a new crash or timeout begins another."""
    looks = Looks("faulthandler")
    is_open = False
    for line in lines:
        text = line.strip()
        if not text:
            continue
        if text.startswith('File "'):
            is_open = _frames(looks, text[:_LONGEST])
        elif _FIRST in text:
            is_open = _header(looks, text[:_LONGEST], is_open=is_open) or is_open
        elif text.startswith(_BEGINS):
            looks.again()
            looks.look.notes.append(kept_name(text))
        elif is_open and (looks.thread is not None):
            _inside(looks, looks.thread, text[:_LONGEST], line)
        elif not text.startswith(_IGNORED) and (named := process_line(line)):
            looks.process(pid=named.pid, title=named.title)
    return looks.finished()


def _header(looks: Looks, text: str, *, is_open: bool) -> bool:
    if _C_STACK.search(text):
        return is_open
    if _STACK.search(text):
        looks.again()
        looks.begin(ThreadText())
        return True
    match = _THREAD.search(text)
    if match is None:
        return False
    if looks.thread is not None and is_main(looks.thread.frames):
        looks.again()  # the main thread is the oldest, and comes last
    name = match["name"]
    looks.begin(
        ThreadText(
            name=kept_name(name) if name else None,
            thread_id=kept_id(match["id"]),
        )
    )
    return True


def _frames(looks: Looks, text: str) -> bool:
    """The frames of a line: one, or several where line ends were lost."""
    if looks.thread is None and _FRAME.match(text) is None:
        return False
    thread = looks.thread or looks.begin(ThreadText())
    at = 0
    while match := _FRAME.match(text, at):
        if match["function"] is None or match["line"] == "???":
            thread.whole = thread.whole and match["function"] is not None
        thread.frames.append(kept_frame(match["function"] or "?", path=match["path"], line=kept_line(match["line"])))
        at = match.end()
    if at < len(text):
        thread.whole = False
    return True


def _inside(looks: Looks, thread: ThreadText, text: str, line: str) -> None:
    """A line below a header that is no ``File "..."``."""
    if text == COLLECTING:
        thread.collecting = True
    elif text == "..." or text.startswith("<truncated"):
        thread.whole = False
    elif match := _BINARY.match(text):
        symbol = match["symbol"]
        if symbol and not any(not frame.native for frame in thread.frames):
            thread.frames.append(kept_frame(bare_native(symbol), path=kept_path(match["path"]), native=True))
    elif match := _TYPED.match(text):
        thread.frames.append(kept_frame(match["function"], path=match["path"], line=kept_line(match["line"])))
    elif not text.startswith(_IGNORED) and (named := process_line(line)):
        looks.process(pid=named.pid, title=named.title)
