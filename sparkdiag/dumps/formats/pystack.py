"""``pystack remote`` and ``pystack core``, with and without native frames and locals: the outermost frame comes first.

https://github.com/bloomberg/pystack/blob/main/src/pystack/traceback_formatter.py
"""

import re
from collections.abc import Sequence

from sparkdiag.dumps.building import Looks, ThreadText
from sparkdiag.dumps.kept import kept_frame, kept_id, kept_line, kept_locals, kept_name, kept_title
from sparkdiag.dumps.native_names import bare_native
from sparkdiag.dumps.process_lines import process_line
from sparkdiag.evidence.dump import DumpFrame, ProcessDump

_HEADER = "Traceback for thread "
_LAST = "(most recent call last)"
_ID = re.compile(r"\d{1,19}")
_STATUS = re.compile(r"\[([^\[\]]{0,120})\]\s*\Z")
_FRAME = re.compile(r'\((?P<kind>Python|C|Other)\) File "(?P<path>[^"]*)", line (?P<line>\d{1,9}), in (?P<function>.*)')
_PID = re.compile(r"pid: (?P<pid>\d{1,10}) ppid: ")
_EXECUTABLE = re.compile(r"executable: (?P<executable>.{1,200}?) arguments: (?P<arguments>.*)")
_EMPTY = re.compile(r"The frame stack for thread (?P<id>\d{1,19}) is empty")
_INTERPRETER = re.compile(
    r"(?:In the main interpreter|In interpreter \d{1,9}|Not currently attached)[^\[]{0,60}\[(.*)\]"
)


def claims(lines: Sequence[str]) -> float:
    """Sure of its header; nearly so of frames marked ``(Python)`` or ``(C)``."""
    frames = False
    for line in lines:
        text = line.lstrip()
        if text.startswith(_HEADER) and text[len(_HEADER) : len(_HEADER) + 1].isdigit():
            return 1.0
        frames = frames or text.startswith(('(Python) File "', '(C) File "'))
    return 0.9 if frames else 0.0


def read(lines: Sequence[str]) -> tuple[ProcessDump, ...]:
    """A look for each process, and for each time a thread comes again."""
    looks = Looks("pystack")
    pending: list[tuple[str, str]] | None = None
    for line in lines:
        text = line.strip()
        if text.startswith(("(Python) ", "(C) ", "(Other) ")):
            _keep_locals(looks, pending)
            pending = None
            _frame(looks, text)
        elif text.startswith(_HEADER):
            _keep_locals(looks, pending)
            pending = None
            looks.begin(_thread(text))
        elif text in ("Arguments:", "Locals:"):
            pending = pending if pending is not None else []
        elif pending is not None and text:
            name, _, shown = text.partition(":")
            pending.append((name, shown.strip()))
        elif text:
            _between(looks, text, line)
    _keep_locals(looks, pending)
    return looks.finished()


def _thread(text: str) -> ThreadText:
    rest = text[len(_HEADER) :]
    found = _ID.match(rest)
    cut, _, _ = rest[found.end() if found else 0 :].partition(_LAST)
    status = _STATUS.search(cut.rstrip()[-130:])
    if status is not None:
        cut = cut.rstrip().removesuffix(status[0].rstrip()).rstrip()
    name = cut.strip()
    if name.startswith("("):
        name = name[1:].removesuffix(")")
    thread = ThreadText(
        name=kept_name(name) if name else None,
        os_thread_id=kept_id(found[0]) if found else None,
        root_first=True,
        whole=_LAST in text,
    )
    if status is not None:
        _status(thread, status[1])
    return thread


def _status(thread: ThreadText, status: str) -> None:
    thread.owns_gil = thread.owns_gil or "Has the GIL" in status
    thread.collecting = thread.collecting or "Garbage collecting" in status


def _frame(looks: Looks, text: str) -> None:
    thread = looks.thread or looks.begin(ThreadText(root_first=True))
    match = _FRAME.match(text)
    if match is None:
        thread.whole = False
        return
    line = kept_line(match["line"])
    if match["kind"] == "Python":
        thread.frames.append(kept_frame(match["function"], path=match["path"], line=line))
        return
    symbol, _, library = match["function"].rpartition(" (")
    if not symbol:
        symbol, library = match["function"], ""
    known = match["path"] not in ("", "???") and line is not None
    path = match["path"] if known else library.removesuffix(")") or None
    thread.frames.append(kept_frame(bare_native(symbol), path=path, line=line if known else None, native=True))


def _keep_locals(looks: Looks, pending: list[tuple[str, str]] | None) -> None:
    """Of the frame that was read last, which is still empty of them."""
    thread = looks.thread
    if not pending or thread is None or not thread.frames:
        return
    last: DumpFrame = thread.frames[-1]
    if values := kept_locals(pending):
        thread.frames[-1] = last.model_copy(update={"locals": values})


def _between(looks: Looks, text: str, line: str) -> None:
    """A line that is no frame: source text, a core file's header, or whose the next stacks are."""
    if match := _EMPTY.match(text):
        looks.begin(ThreadText(os_thread_id=kept_id(match["id"]), root_first=True))
    elif text.startswith("Core file information"):
        looks.process(pid=None, title=None)
        looks.look.notes.append("from a core file")
    elif match := _PID.match(text):
        looks.look.pid = kept_id(match["pid"])
    elif match := _EXECUTABLE.match(text):
        looks.look.title = kept_title(match["arguments"] or match["executable"])
    elif text.startswith("The process died"):
        looks.look.notes.append(kept_name(text))
    elif "Unable to merge native stack" in text:
        looks.look.notes.append("pystack could not merge native frames: they are missing")
    elif (match := _INTERPRETER.match(text)) and looks.thread is not None:
        _status(looks.thread, match[1])
    elif len(line) - len(line.lstrip()) < 8 and (named := process_line(line)):
        looks.process(pid=named.pid, title=named.title)
