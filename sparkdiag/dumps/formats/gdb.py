"""gdb: ``bt`` and ``thread apply all bt`` of native frames, ``py-bt`` and ``py-bt-full`` of Python ones, and mixed.

Frames come innermost first. https://sourceware.org/gdb/current/onlinedocs/gdb.html/Backtrace.html and, for ``py-bt``,
https://github.com/python/cpython/blob/main/Tools/gdb/libpython.py
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from sparkdiag.dumps.building import Looks, ThreadText
from sparkdiag.dumps.formats.gdb_frames import native_frame, python_frame
from sparkdiag.dumps.kept import MOST_LOCALS, kept_frame, kept_id, kept_line, kept_locals, kept_name
from sparkdiag.dumps.process_lines import process_line
from sparkdiag.evidence.dump import DumpFrame, ProcessDump

_LONGEST = 20_000
"""Characters of one frame, whatever its arguments show."""
_THREAD = re.compile(
    r"(?:\[Switching to thread \d{1,9} \(|Thread \d{1,9} \()?(?P<handle>Thread 0x[0-9a-fA-F]{1,16}|LWP \d{1,10})"
    r"(?: \(LWP (?P<lwp>\d{1,10})\))?(?: \"(?P<name>[^\"\n]{0,64})\")?"
)
_NUMBERED = re.compile(r"(?:\[Switching to thread |Thread )\d{1,9} ?\(")
_FRAME = re.compile(r"#(?P<number>\d{1,5})(?:\s+|\Z)(?P<rest>.*)")
_PYTHON = re.compile(r'File "(?P<path>[^"]*)", line (?P<line>\d{1,9}|\?), in (?P<function>.*)')
_BUILTIN = re.compile(r"<(?:built-in )?method(?:-wrapper)? (?P<function>[\w.<>]{1,100}) of ")
_INFO = re.compile(r"\*?\s*\d{1,9}\s+(?P<thread>Thread 0x[0-9a-fA-F]{1,16} \(LWP \d{1,10}\).*)")
_DETACHED = re.compile(r"\[Inferior \d{1,5} \(process (?P<pid>\d{1,10})\) detached\]")
_FIRST = "Traceback (most recent call first):"
_COLLECTIVE = re.compile(r"from \S{1,400}\.py:\d{1,9}\s*\Z")
"""How c10d prints the Python stack of a collective: ``#0 all_reduce from /x/distributed_c10d.py:2501``."""
_FRAME_ADDRESS = re.compile(r"Frame 0x[0-9a-fA-F]{1,16}")
_INTERPRETER = ("_PyEval", "PyEval", "_PyObject_", "PyObject_", "_PyFunction_", "cfunction_", "method_vectorcall")
_VALUE = re.compile(r"(?P<name>[A-Za-z_]\w{0,99}) = (?P<value>-?\d{1,12}|true|false)")


def claims(lines: Sequence[str]) -> float:
    """Sure of gdb's thread headers and of ``py-bt``; of bare ``#0 ... ()`` frames, as people quote them, less so."""
    numbered = 0
    for line in lines:
        text = line.strip()
        if text.startswith("#"):
            if _COLLECTIVE.search(text[-500:]):
                continue
            if ", for file " in text and (match := _FRAME.match(text)) and python_frame(match["rest"]) is not None:
                return 0.95
            if (match := _FRAME.match(text)) and native_frame(match["rest"][:_LONGEST], sure=True) is not None:
                numbered += 1
                if match["rest"].startswith("0x"):
                    return 0.95
        elif text == _FIRST or (_NUMBERED.match(text) and _THREAD.match(text)):
            return 0.95
    return 0.7 if numbered >= 2 else 0.5 if numbered else 0.0


def read(lines: Sequence[str]) -> tuple[ProcessDump, ...]:
    """A look for each process, and for each time the threads come again; ``bt`` and ``py-bt`` of one are joined."""
    reader = _Reader()
    for text in _joined(lines):
        reader.line(text)
    return reader.finished()


def _joined(lines: Sequence[str]) -> list[str]:
    """Frames that gdb or a terminal broke into several lines put together again."""
    whole: list[str] = []
    for line in lines:
        text = line.rstrip()[:_LONGEST]
        goes_on = text.startswith(("   ", "\t")) and not text.lstrip().startswith(("File ", "<", "#"))
        if goes_on and whole and whole[-1].lstrip().startswith("#") and _unfinished(whole[-1], text.strip()):
            if len(whole[-1]) < _LONGEST:
                whole[-1] += " " + text.strip()
        else:
            whole.append(text)
    return whole


def _unfinished(frame: str, text: str) -> bool:
    return text.startswith(("from /", "from target:", "at /", "at .")) or frame.count("(") > frame.count(")")


class _Reader:
    def __init__(self) -> None:
        self.looks = Looks("gdb")
        self.last = -1
        """Number of the frame that was read last; frames of one stack count up."""
        self.open: ThreadText | None = None
        self.current: ThreadText | None = None
        """The one that ``bt`` is of, as far as gdb said."""
        self.listed: set[int] = set()
        """Threads of which only the line in ``info threads`` was read."""
        self.earlier: list[DumpFrame] = []
        """What ``bt`` showed of the thread that ``py-bt`` shows now, or the other way round."""
        self.evaluated = ""

    def line(self, line: str) -> None:
        text = line.strip()
        if not text:
            return
        if text.startswith("#"):
            if match := _FRAME.match(text):
                self._numbered(int(match["number"]), match["rest"])
        elif text.startswith(("Thread ", "[Switching to thread", "LWP ")) and (match := _THREAD.match(text)):
            self._thread(match)
            self.current = self.open
        elif text == _FIRST:
            self._first()
        elif match := _PYTHON.match(text):
            self._add(kept_frame(match["function"], path=match["path"], line=kept_line(match["line"])))
        elif match := _BUILTIN.match(text):
            self._add(kept_frame(match["function"], native=True))
        elif match := _INFO.match(text):
            self._listed(match["thread"], is_current=text.startswith("*"))
        elif match := _DETACHED.match(text):
            self._detached(kept_id(match["pid"]))
        else:
            self._between(text, line)

    def finished(self) -> tuple[ProcessDump, ...]:
        self._settle()
        return self.looks.finished()

    def _first(self) -> None:
        """``py-bt`` begins, on the thread whose header stands right above it, else on gdb's current one."""
        if self.open is None or self.open.frames:
            thread = self.open or self.current
            if thread is not None and not _has_python(thread):
                self._more_of(thread)
            else:
                self._settle()
        self.last = -1

    def _more_of(self, thread: ThreadText) -> None:
        self._settle()
        self.open = thread
        if id(thread) in self.listed:
            self.listed.discard(id(thread))
            thread.whole = True
        else:
            self.earlier = thread.frames
        thread.frames = []

    def _settle(self) -> None:
        """The thread that was read last is read; both its stacks become one, or two of a kind two looks."""
        thread, earlier = self.open, self.earlier
        if earlier and thread is not None:
            if thread.frames and _is_python(earlier) == _is_python(thread.frames):
                again = replace(thread)
                thread.frames = earlier
                self.current = self.looks.begin(again)
            else:
                thread.frames = _joined_stacks(earlier, thread.frames)
        self.earlier = []
        self.open = None
        self.last = -1

    def _thread(self, match: re.Match[str]) -> None:
        self._settle()
        handle = match["handle"].rpartition(" ")[2]
        lwp = kept_id(match["lwp"]) if match["lwp"] else kept_id(handle) if match["handle"][0] == "L" else None
        thread_id = kept_id(handle) if match["handle"][0] == "T" else None
        threads = self.looks.look.threads
        known = next((one for one in threads if lwp is not None and one.os_thread_id == lwp), None)
        if known is not None and not (_has_python(known) and _has_native(known)):
            self._more_of(known)
        else:
            name = kept_name(match["name"]) if match["name"] else None
            self.open = self.looks.begin(ThreadText(name=name, thread_id=thread_id, os_thread_id=lwp))

    def _listed(self, text: str, *, is_current: bool) -> None:
        """A line of ``info threads``: who there is; its one frame says where, until the stack itself comes."""
        match = _THREAD.match(text)
        if match is None:
            return
        self._thread(match)
        thread = self.open
        if thread is None:
            return
        self.current = thread if is_current else self.current
        if frame := native_frame(text[match.end() :], sure=False):
            thread.frames.append(frame)
        thread.whole = False
        self.listed.add(id(thread))
        self._settle()

    def _numbered(self, number: int, rest: str) -> None:
        if match := _BUILTIN.match(rest):
            self._add(kept_frame(match["function"], native=True))
            return
        frame = python_frame(rest) or native_frame(rest, sure=False)
        if frame is None:
            if self.open is not None:
                self.open.whole = False
            return
        if not frame.native:
            address = _FRAME_ADDRESS.search(rest)
            if address is not None and address[0] == self.evaluated:
                return  # the interpreter's loop and its caller show the same frame
            self.evaluated = address[0] if address is not None else ""
        elif number <= self.last:
            self._settle()  # another ``bt``
        thread = self._add(frame)
        if number > self.last + 1 and frame.native:
            thread.whole = False
        self.last = number

    def _add(self, frame: DumpFrame) -> ThreadText:
        thread = self.open or self._unnamed(frame)
        self.open = thread
        thread.frames.append(frame)
        return thread

    def _unnamed(self, frame: DumpFrame) -> ThreadText:
        """The thread of a stack without a header: gdb's current one, as far as nothing was shown of it."""
        thread = self.current
        if thread is not None and (id(thread) in self.listed or (not frame.native and not _has_python(thread))):
            self._more_of(thread)
            return thread
        if thread is not None and thread.os_thread_id is None:
            self.looks.again()
        self.current = self.looks.begin(ThreadText())
        return self.current

    def _detached(self, pid: int | None) -> None:
        self._settle()
        if self.looks.look.threads and self.looks.look.pid is None:
            self.looks.look.pid = pid
        self.looks.close()
        self.current = None

    def _between(self, text: str, line: str) -> None:
        if self.open is not None and self.open.frames and line.startswith((" ", "\t")):
            self._value(text, self.open)
        elif text.startswith("(More stack frames follow"):
            if self.open is not None:
                self.open.whole = False
        elif "unable to read python frame information" in text:
            self.looks.look.notes.append("gdb could not read some Python frames")
        elif named := process_line(line):
            self._settle()
            self.looks.process(pid=named.pid, title=named.title)
            self.current = None

    @staticmethod
    def _value(text: str, thread: ThreadText) -> None:
        """A local of ``bt full``."""
        match = _VALUE.fullmatch(text)
        last = thread.frames[-1]
        if match is not None and len(last.locals) < MOST_LOCALS:
            values = kept_locals([(match["name"], match["value"])])
            thread.frames[-1] = last.model_copy(update={"locals": last.locals | values})


def _is_python(frames: Sequence[DumpFrame]) -> bool:
    return any(not frame.native for frame in frames)


def _has_python(thread: ThreadText) -> bool:
    return _is_python(thread.frames)


def _has_native(thread: ThreadText) -> bool:
    return sum(frame.native for frame in thread.frames) > 1


def _joined_stacks(one: list[DumpFrame], other: list[DumpFrame]) -> list[DumpFrame]:
    """What ``bt`` and ``py-bt`` show of one thread: the native frames above the interpreter, then the Python ones."""
    if not one or not other:
        return one or other
    native, python = (one, other) if _is_python(other) else (other, one)
    above = []
    for frame in native:
        if frame.function.startswith(_INTERPRETER):
            break
        above.append(frame)
    first = next(at for at, frame in enumerate(python) if not frame.native)
    return above + python[first:]
