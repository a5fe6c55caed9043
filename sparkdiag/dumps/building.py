"""Looks put together line by line, for the formats that print threads one after the other. Pure."""

from dataclasses import dataclass, field

from sparkdiag.dumps.kept import MOST_FRAMES, MOST_PROCESSES, MOST_THREADS, kept_frame
from sparkdiag.dumps.main_thread import MAIN, title_in, with_main
from sparkdiag.evidence.dump import DumpFrame, DumpThread, DumpTool, ProcessDump

COLLECTING = "Garbage-collecting"
"""What CPython's own faulthandler prints in the place of a frame; pystack says it in the thread's header."""


@dataclass(slots=True)
class ThreadText:
    """A thread as far as its lines were read; ``frames`` in the order of the text."""

    name: str | None = None
    thread_id: int | None = None
    os_thread_id: int | None = None
    owns_gil: bool = False
    root_first: bool = False
    whole: bool = True
    collecting: bool = False
    """The tool says that a garbage collection runs in it: kept as its innermost frame."""
    frames: list[DumpFrame] = field(default_factory=list)

    def built(self) -> DumpThread:
        frames = self.frames[::-1] if self.root_first else self.frames
        if self.collecting:
            frames = [kept_frame(COLLECTING, native=True), *frames]
        return DumpThread.model_construct(
            name=self.name,
            thread_id=self.thread_id,
            os_thread_id=self.os_thread_id,
            state="unknown",
            owns_gil=self.owns_gil,
            frames=tuple(frames[:MOST_FRAMES]),
            samples=1,
            whole=self.whole and len(frames) <= MOST_FRAMES,
        )


@dataclass(slots=True)
class LookText:
    """A process as far as its lines were read."""

    pid: int | None = None
    title: str | None = None
    at: str | None = None
    threads: list[ThreadText] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def built(self, tool: DumpTool) -> ProcessDump:
        self._drop_repeated()
        threads = with_main([thread.built() for thread in self.threads[:MOST_THREADS]])
        main = next((index for index, thread in enumerate(threads) if thread.name == MAIN), None)
        pid, title = self.pid, self.title
        if main is not None:
            # On Linux the first thread's id is the process's, and its kernel name is the process's.
            pid = self.threads[main].os_thread_id if pid is None else pid
            title = title_in(self.threads[main].name) if title is None else title
        notes = list(dict.fromkeys(self.notes))
        if len(self.threads) > MOST_THREADS:
            notes.append(f"{len(self.threads) - MOST_THREADS} more threads were left out")
        return ProcessDump(tool=tool, pid=pid, title=title, at=self.at, threads=threads, notes=tuple(notes))

    def _drop_repeated(self) -> None:
        """A stack shown without its header, and again with it: one thread."""
        told = [thread for thread in self.threads if thread.os_thread_id is not None or thread.thread_id is not None]
        if told and len(told) < len(self.threads):
            self.threads = [
                one
                for one in self.threads
                if any(one is other for other in told) or not any(one.frames == other.frames for other in told)
            ]


class Looks:
    """Collects threads into looks: a thread that comes a second time begins a new look at the same process."""

    def __init__(self, tool: DumpTool) -> None:
        self._tool: DumpTool = tool
        self._done: list[ProcessDump] = []
        self._look = LookText()
        self._keys: set[object] = set()

    @property
    def look(self) -> LookText:
        return self._look

    @property
    def thread(self) -> ThreadText | None:
        """The one that is being read."""
        return self._look.threads[-1] if self._look.threads else None

    def process(self, *, pid: int | None, title: str | None, at: str | None = None) -> None:
        """What follows is of this process."""
        self.close()
        self._look = LookText(pid=pid, title=title, at=at)

    def again(self) -> None:
        """What follows is another look at the same process."""
        if self._look.threads:
            before = self._look
            self.close()
            self._look = LookText(pid=before.pid, title=before.title)

    def begin(self, thread: ThreadText) -> ThreadText:
        """Reads ``thread`` from here on."""
        key = thread.os_thread_id if thread.os_thread_id is not None else thread.thread_id
        if key is not None and key in self._keys:
            self.again()
        if thread.name == MAIN:
            self._second_main()
        if key is not None:
            self._keys.add(key)
        self._look.threads.append(thread)
        return thread

    def _second_main(self) -> None:
        """No process has two main threads: tools print it first or last of a process's."""
        threads = self._look.threads
        at = next((index for index, thread in enumerate(threads) if thread.name == MAIN), None)
        if at is None:
            return
        end = len(threads) if at == 0 else at + 1
        after = threads[end:]
        del threads[end:]
        self.again()
        self._look.threads += after

    def close(self) -> None:
        """Ends the look that is being read."""
        if self._look.threads and len(self._done) < MOST_PROCESSES:
            self._done.append(self._look.built(self._tool))
        self._look = LookText()
        self._keys = set()

    def finished(self) -> tuple[ProcessDump, ...]:
        """All looks, in the order of the text."""
        self.close()
        return tuple(self._done)
