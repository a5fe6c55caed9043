"""Stacks that a library prints of itself: all threads' by ``traceback.format_stack``, outermost frame first; what
PyTorch's collective watchdog logs; and exceptions' tracebacks, which are marked as such, since they say where something
was raised and not where a process stands.

https://docs.python.org/3/library/traceback.html and
https://github.com/pytorch/pytorch/blob/main/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp
"""

import re
from collections.abc import Sequence

from sparkdiag.dumps.building import Looks, ThreadText
from sparkdiag.dumps.formats.collectives import Collectives
from sparkdiag.dumps.formats.thread_headers import ThreadHeader, thread_header
from sparkdiag.dumps.kept import kept_frame, kept_line, kept_name, kept_title
from sparkdiag.dumps.native_names import bare_native
from sparkdiag.dumps.process_lines import process_line
from sparkdiag.evidence.dump import ProcessDump

RAISED = "an exception's traceback: it says where it was raised, not where the process stands"
INTERRUPTED = "the traceback of an interrupt: where the process stood when somebody pressed Ctrl-C"

_LONGEST = 20_000
_FRAME = re.compile(r'File:? "(?P<path>[^"\n]{0,2000})", line (?P<line>\d{1,9}), in (?P<function>[^\n]{1,500})')
_TRACEBACK = "Traceback (most recent call last):"
_STACK = re.compile(r"(?:Stack|Call stack|Stack ?trace) \(most recent call last\)", re.IGNORECASE)
_ERROR = re.compile(r"(?P<name>[A-Za-z_][\w.]{0,120})(?=:|\Z)")
_CHAINED = ("During handling of the above exception", "The above exception was the direct cause")
_NATIVE = re.compile(r"frame #(?P<number>\d{1,5}): (?P<rest>.*)")
_NATIVE_PLACE = re.compile(r" \+ 0x[0-9a-f]{1,16} \(0x[0-9a-f]{1,16} in (?P<module>[^\n]{1,500})\)\s*\Z")
_RAISED_NATIVE = re.compile(r"Exception raised from (?P<function>\S{1,200}) at ")
_WATCHDOG = frozenset({"checkTimeout", "ncclCommWatchdog", "watchdogHandler", "workCleanupLoop"})
_ROOTS = frozenset({"<module>", "_bootstrap", "_run_module_as_main", "spawn_main"})
_MARKS = frozenset("^~ ")


def claims(lines: Sequence[str]) -> float:
    """Sure of a collective's timeout and of stacks "most recent call last" under a thread's header."""
    frames = heads = 0
    best = 0.0
    header = False
    for line in lines:
        text = line.strip()
        if text.startswith(('File "', 'File: "')):
            if _FRAME.match(text[:_LONGEST]):
                frames += 1
                heads += header
            header = False
        elif text.startswith("frame #") and " + 0x" in text:
            best = max(best, 0.9)
        elif Collectives.is_one(text):
            best = 0.95
        elif Collectives.is_frame(text[:_LONGEST]):
            best = max(best, 0.75)
        elif text == _TRACEBACK or _STACK.match(text):
            header = True
        elif text:
            header = len(text) <= 200 and thread_header(text) is not None
    if heads:
        return 0.95
    return max(best, 0.8 if frames >= 2 else 0.5 if frames else 0.0)


def read(lines: Sequence[str]) -> tuple[ProcessDump, ...]:
    """A look for each process and time, and one for each rank whose collective ran out of time."""
    reader = _Reader()
    collectives = Collectives()
    for line in lines:
        if not collectives.take(line):
            reader.line(line)
    ranks = collectives.looks()
    return (*(look for look in reader.finished() if not (ranks and _of_watchdog(look))), *ranks)


def _of_watchdog(look: ProcessDump) -> bool:
    """Only where the watchdog itself gave up: nothing to be learned next to what it says."""
    return all(any(frame.name in _WATCHDOG for frame in thread.frames) for thread in look.threads)


class _Reader:
    def __init__(self) -> None:
        self.looks = Looks("watchdog")
        self.header: ThreadHeader | None = None
        """Of the stack that may begin with the next line."""
        self.raised = False
        """A traceback's header stands above what comes."""
        self.chained = False
        self.open: ThreadText | None = None
        self.source: int | None = None
        """Indentation of the frame above: the next line is its source text."""

    def line(self, line: str) -> None:
        text = line.strip()
        if text.startswith(('File "', 'File: "')) and (match := _FRAME.match(text[:_LONGEST])):
            self._frame(match, indent=_indent(line))
        elif not text or not _MARKS.issuperset(text):
            self._other(text, line)

    def finished(self) -> tuple[ProcessDump, ...]:
        self._end()
        return self.looks.finished()

    def _frame(self, match: re.Match[str], *, indent: int) -> None:
        thread = self.open or self._begin()
        thread.frames.append(kept_frame(match["function"], path=match["path"], line=kept_line(match["line"])))
        self.source = indent

    def _begin(self) -> ThreadText:
        header, self.header = self.header, None
        if header is None and not self.chained:
            self.looks.again()
        name, thread_id = header if header is not None else (None, None)
        self.open = self.looks.begin(ThreadText(name=name, thread_id=thread_id, root_first=True))
        self.chained = False
        return self.open

    def _other(self, text: str, line: str) -> None:
        source, self.source = self.source, None
        if not text or (source is not None and _indent(line) > source):
            return
        if text.startswith("frame #") and (match := _NATIVE.match(text[:_LONGEST])):
            self._native(match)
        elif text.endswith(_TRACEBACK):
            self._end(keep_header=self.open is None)
            self.raised = self.header is None
        elif _STACK.match(text):
            self._end(keep_header=self.open is None)
        elif text.startswith(_CHAINED):
            self._end()
            self.chained = True
        elif (match := _RAISED_NATIVE.search(text[:_LONGEST])) is not None:
            self._end()
            self.header = ThreadHeader(None, None)
            self.looks.look.notes.append(f"a C++ backtrace of an exception raised in {kept_name(match['function'])}")
        elif header := thread_header(text):
            self._end()
            self.header = header
        elif source is None and self.open is not None and self.raised and (match := _ERROR.match(text)):
            self._error(match["name"])
        elif source is None and (named := process_line(line)):
            self._end()
            self.looks.process(pid=named.pid, title=named.title)

    def _error(self, name: str) -> None:
        interrupted = name.rpartition(".")[2] in ("KeyboardInterrupt", "SystemExit")
        note = INTERRUPTED if interrupted else f"{kept_name(name)}: {RAISED}"
        self.looks.look.notes.append(note)
        self.raised = False
        self._end()

    def _native(self, match: re.Match[str]) -> None:
        place = _NATIVE_PLACE.search(match["rest"][-600:])
        symbol = match["rest"][: -len(place[0])] if place else match["rest"]
        if match["number"] == "0" or self.open is None:
            self._end(keep_header=True)
            thread = self._begin()
            thread.root_first = False
        else:
            thread = self.open
        module = place["module"] if place else None
        if module is not None and "::" in module and "/" not in module and self.looks.look.title is None:
            self.looks.look.title = kept_title(module)
        thread.frames.append(kept_frame(bare_native(symbol), path=module, native=True))

    def _end(self, *, keep_header: bool = False) -> None:
        """The stack that is being read is over."""
        thread, self.open = self.open, None
        if thread is not None and thread.root_first and thread.name is None and thread.thread_id is None:
            frames = thread.frames
            if len(frames) > 1 and frames[-1].name in _ROOTS and frames[0].name not in _ROOTS:
                thread.root_first = False  # quoted without its header, innermost frame first
        if thread is not None and self.raised:
            self.looks.look.notes.append(RAISED)  # its last line, which names the exception, is not there
        if not keep_header:
            self.header = None
        self.raised = False


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
