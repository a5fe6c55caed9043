"""``py-spy dump`` as text, in every form in which it is pasted. Pure.

Read by what the lines say and not by how far they are indented: trackers and chats take indentation away, put blank
lines between, or align the columns. See https://github.com/benfred/py-spy (``src/dump.rs``) for what is printed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from sparkdiag.dumps.formats.pyspy_lines import LONGEST_LINE, VARIABLE, ThreadHead, Told, told
from sparkdiag.dumps.kept import MOST_FRAMES, MOST_PROCESSES, MOST_THREADS, kept_locals, kept_title
from sparkdiag.dumps.main_thread import MAIN
from sparkdiag.dumps.naming import names_process
from sparkdiag.evidence.dump import DumpFrame, DumpThread, DumpTool, ProcessDump

_SEEN_AT_MOST = 400
"""Lines that ``claims`` looks at."""
_MOST_CAPTIONS = 5
_FENCE = "```"
_ROOTS = frozenset(
    {"<module>", "_run_module_as_main", "_run_code", "spawn_main", "_main", "_bootstrap", "_run_wrapper", "main_loop"}
)
"""Outermost frames of a main thread: whatever else stands last was probably quoted without what is outside it."""

_ENDS = _ROOTS | {"worker_busy_loop", "run_busy_loop", "worker_main", "run_engine_core", "run_scheduler_process"}


@dataclass(slots=True)
class Thread:
    """A thread while its lines are read."""

    head: ThreadHead | None
    frames: list[DumpFrame] = field(default_factory=list)
    whole: bool = True
    too_many: bool = False

    def add(self, frame: DumpFrame) -> None:
        if len(self.frames) < MOST_FRAMES:
            self.frames.append(frame)
        else:
            self.too_many = True


@dataclass(slots=True)
class Look:
    """A look at one process while its lines are read."""

    start: int
    """Line of its beginning, from 0."""
    captions: list[str] = field(default_factory=list)
    """What people or shells wrote above it."""
    pid: int | None = None
    title: str | None = None
    python: str | None = None
    pythons: int = 0
    titled: bool = False
    """It has a ``Process`` line of its own."""
    head_at: int = 0
    """Line of its first header or frame."""
    heads: int = 0
    """``Process`` lines without any stack since."""
    threads: list[Thread] = field(default_factory=list)
    ids: set[tuple[int | None, int | None]] = field(default_factory=set)
    has_main: bool = False
    not_understood: int = 0
    broken: int = 0
    """Lines that hold pieces of frames, or two in one."""

    @property
    def frames(self) -> int:
        return sum(len(thread.frames) for thread in self.threads)


def claims(lines: Sequence[str]) -> float:
    """How sure it is that these are a ``py-spy dump``."""
    frames = heads = others = 0
    for line in lines[:_SEEN_AT_MOST]:
        text = line.strip()
        if not text:
            continue
        kind = told(text[:LONGEST_LINE]).kind
        if kind in ("thread", "process"):
            heads += 1
        elif kind == "frame":
            frames += 1
        elif kind == "other":
            others += 1
    if not frames and not heads:
        return 0.0
    if heads:
        return 0.95 if frames else 0.5
    return 0.8 if frames >= others else 0.6


def read(lines: Sequence[str]) -> tuple[ProcessDump, ...]:
    """The looks in these lines, as far as they go."""
    return tuple(as_dump(look) for look in looks_in(lines) if look.threads)


def looks_in(lines: Sequence[str]) -> list[Look]:
    """The looks with where they begin, what stood above them, and what speaks of garbled text."""
    return _Reader(lines).looks


def as_dump(look: Look, *, tool: DumpTool = "py-spy dump") -> ProcessDump:
    """The look as a value."""
    threads = look.threads[:MOST_THREADS]
    notes = []
    if look.not_understood:
        notes.append(f"{look.not_understood} line{'s were' if look.not_understood > 1 else ' was'} not understood")
    if len(look.threads) > MOST_THREADS:
        notes.append(f"of {len(look.threads)} threads {MOST_THREADS} were read")
    if any(thread.too_many for thread in threads):
        notes.append(f"of some threads the innermost {MOST_FRAMES} frames were read")
    kept = tuple(_thread(thread, alone=len(threads) == 1) for thread in threads)
    if not all(thread.whole for thread in kept):
        notes.append("not every stack is there to its outermost frame")
    return ProcessDump(
        tool=tool,
        pid=look.pid,
        title=None if look.title is None else kept_title(look.title),
        python=look.python,
        threads=kept,
        notes=tuple(notes),
    )


def _thread(thread: Thread, *, alone: bool) -> DumpThread:
    head = thread.head
    whole = thread.whole and not thread.too_many
    if whole and thread.frames and (head is None or head.name == MAIN or alone):
        last = thread.frames[-1]
        whole = last.native or last.name in _ROOTS
    return DumpThread.model_construct(
        name=None if head is None else head.name,
        thread_id=None if head is None else head.thread_id,
        os_thread_id=None if head is None else head.os_thread_id,
        state="unknown" if head is None else head.state,
        owns_gil=head is not None and head.owns_gil,
        frames=tuple(thread.frames),
        samples=1,
        whole=whole,
    )


class _Reader:
    """One pass over the lines."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.looks: list[Look] = []
        self._captions: list[str] = []
        self._caption_at: int | None = None
        self._look: Look | None = None
        self._thread: Thread | None = None
        self._broke = False
        """A fence, or words between, since the last frame."""
        self._fenced = False
        """A fence since the last frame or header: what follows is no part of the dump."""
        self._apart = False
        """What came last was neither a frame nor a header."""
        self._blank = False
        self._in_block = False
        self._block_indent = 0
        self._variables: list[tuple[str, str]] = []
        for index, line in enumerate(lines):
            if len(self.looks) > MOST_PROCESSES:
                break
            text = line.strip()
            if not text:
                self._blank = True
            elif self._in_block and self._variable(line, text):
                continue
            else:
                self._line(told(text[:LONGEST_LINE]), text, index)
        self._end_block()

    def _line(self, found: Told, text: str, index: int) -> None:
        kind = found.kind
        if kind == "frame":
            self._frame(found, index)
            self._blank = False
            return
        match kind:
            case "thread":
                self._thread_line(found.thread, index)
            case "process":
                self._process_line(found, index)
            case "python":
                self._python_line(found, index)
            case "block":
                self._in_block = self._thread is not None and bool(self._thread.frames)
                self._block_indent = 0
            case "more":
                self._cut_here()
            case "cut":
                self._frame(found, index)
                self._cut_here()
            case "bare":
                self._bare(found, text, index)
            case "glued" | "broken":
                self._broken(found, index)
            case "other":
                self._other(text, index)
        self._blank = False

    def _start(self, index: int) -> Look:
        start = index if self._caption_at is None else self._caption_at
        if self._look is not None:
            self._look.not_understood = max(self._look.not_understood - len(self._captions), 0)
        look = Look(start=start, captions=self._captions, head_at=index)
        self._captions, self._caption_at = [], None
        self._broke = self._fenced = False
        self.looks.append(look)
        self._look = look
        self._thread = None
        return look

    def _process_line(self, found: Told, index: int) -> None:
        before = self._look
        if before is not None and before.pid is not None and not before.threads:
            before.heads += 1
            if before.pid == found.pid:
                return
            heads, pythons = before.heads, before.pythons
            look = self._start(index)
            look.heads, look.pythons = heads, pythons
        else:
            look = self._start(index)
        look.pid, look.title, look.titled = found.pid, found.text or None, True

    def _python_line(self, found: Told, index: int) -> None:
        look = self._look
        if look is None or look.threads:
            look = self._start(index)
        look.pythons += 1
        look.python = found.text

    def _thread_line(self, head: ThreadHead | None, index: int) -> None:
        if head is None:
            return
        look = self._look
        is_main = head.name == MAIN
        ident = (head.os_thread_id, head.thread_id)
        known = ident != (None, None)
        if look is None:
            look = self._start(index)
        elif (
            (known and ident in look.ids)
            or (is_main and look.has_main)
            or (look.threads and any(map(names_process, self._captions)))
        ):
            look = self._again(
                look, index, same=known and ident in look.ids and not any(map(names_process, self._captions))
            )
        if known:
            look.ids.add(ident)
        look.has_main = look.has_main or is_main
        self._captions, self._caption_at = [], None
        self._broke = self._apart = self._fenced = False
        self._thread = Thread(head)
        look.threads.append(self._thread)

    def _again(self, before: Look, index: int, *, same: bool) -> Look:
        """A further look without a ``Process`` line: at the same process where a thread's id says so."""
        look = self._start(index)
        if same:
            look.pid, look.title, look.python = before.pid, before.title, before.python
        return look

    def _frame(self, found: Told, index: int) -> None:
        if found.frame is None:
            return
        thread = self._thread
        if thread is None or ((self._broke or self._begins_anew(thread)) and thread.frames):
            look = self._look
            if look is None or look.threads:
                look = self._start(index)
            self._captions, self._caption_at, self._broke = [], None, False
            thread = self._thread = Thread(None, whole=False)
            look.threads.append(thread)
        thread.add(found.frame)
        self._apart = self._fenced = False

    def _begins_anew(self, thread: Thread) -> bool:
        """Of stacks without headers the next one begins after a blank line, where the last ended at its root."""
        if thread.head is not None or not self._blank or not thread.frames:
            return False
        return thread.frames[-1].name in _ENDS

    def _bare(self, found: Told, text: str, index: int) -> None:
        if self._thread is None or self._blank or self._broke or self._apart:
            self._other(text, index)
            self._captions, self._caption_at = [], None  # a function's name in a sentence
        else:
            self._frame(found, index)

    def _broken(self, found: Told, index: int) -> None:
        if self._look is None:
            self._start(index)
        if self._look is not None:
            self._look.broken += 1
        if found.frame is not None:
            self._frame(found, index)

    def _cut_here(self) -> None:
        if self._thread is not None:
            self._thread.whole = False

    def _other(self, text: str, index: int) -> None:
        if text.startswith(_FENCE):
            self._broke = self._fenced = True
            return
        self._apart = True
        if self._look is not None and self._look.threads and not self._fenced:
            self._look.not_understood += 1
            if self._thread is not None and self._thread.head is None:
                self._broke = True
        if self._caption_at is None:
            self._caption_at = index
        if len(self._captions) >= _MOST_CAPTIONS:
            del self._captions[0]
        self._captions.append(text[:LONGEST_LINE])

    def _variable(self, line: str, text: str) -> bool:
        """Whether the line still belongs to the block of arguments and locals."""
        indent = len(line) - len(line.lstrip())
        match = VARIABLE.match(text[:200])
        if match is not None and indent >= self._block_indent:
            self._block_indent = self._block_indent or indent
            self._variables.append((match["name"], (match["shown"] or "").strip()))
            self._blank = False
            return True
        if self._block_indent and indent >= self._block_indent:
            return True  # a value goes on
        kind = told(text[:LONGEST_LINE]).kind
        if kind == "block":
            self._block_indent = 0
            return True
        goes_on = kind in ("other", "bare", "more", "broken") and not self._blank and not text.startswith(_FENCE)
        if goes_on and not names_process(text):
            return True  # a value goes on, at the line's start
        self._end_block()
        return False

    def _end_block(self) -> None:
        self._in_block = False
        if self._variables and self._thread is not None and self._thread.frames:
            last = self._thread.frames[-1]
            kept = kept_locals(self._variables)
            if kept:
                self._thread.frames[-1] = DumpFrame.model_construct(
                    function=last.function, path=last.path, line=last.line, native=last.native, locals=kept
                )
        self._variables = []
