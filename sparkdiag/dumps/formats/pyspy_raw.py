"""``py-spy record -f raw``: collapsed stacks, root first, with how many samples were in each. Pure.

``process 12:"python serve.py";thread (12): MainThread;<module> (serve.py:1);main (serve.py:9) 17``, of which the
first two parts are there with ``--subprocesses`` and ``--threads`` only.
"""

import re
from collections.abc import Iterator, Sequence

from sparkdiag.dumps.formats.pyspy_lines import LONGEST_LINE, told
from sparkdiag.dumps.kept import MOST_FRAMES, MOST_THREADS, kept_frame, kept_id, kept_name, kept_title
from sparkdiag.evidence.dump import DumpFrame, DumpThread, ProcessDump

_SEEN_AT_MOST = 400
_LONGEST = 100_000
"""Characters of one stack."""
_COUNTED = re.compile(r"(?P<stack>\S.*\)|process \d{1,10}:?.*|\S*;\S.*)[ \t]+(?P<count>\d{1,12})\s*\Z")
_PROCESS = re.compile(r"process (?P<pid>\d{1,10})(?::\"?(?P<title>.*?)\"?)?\Z", re.DOTALL)
_THREAD = re.compile(r"thread \(?(?P<id>0x[0-9A-Fa-f]{1,16}|\d{1,20})\)?(?:: ?(?P<name>.*))?\Z", re.DOTALL)

_Recorded = dict[tuple[str | None, int | None, tuple[str, ...]], int]
"""How often each stack was seen: thread's name and id, and its frames, innermost first."""


def claims(lines: Sequence[str]) -> float:
    """Sure where most lines are stacks with a number at their end."""
    counted = others = 0
    for line in lines[:_SEEN_AT_MOST]:
        text = line.strip()
        if not text or text.startswith("py-spy>"):
            continue
        if _stack_of(text) is not None:
            counted += 1
        else:
            others += 1
    return 0.0 if not counted or counted < others else 0.97


def read(lines: Sequence[str]) -> tuple[ProcessDump, ...]:
    """A look a process; its threads are its different stacks, that of most samples first."""
    recorded: dict[tuple[int | None, str | None], _Recorded] = {}
    for line in lines:
        found = _stack_of(line.strip())
        if found is None:
            continue
        parts, count = found
        process: tuple[int | None, str | None] = (None, None)
        thread: tuple[str | None, int | None] = (None, None)
        frames: list[str] = []
        for part in parts:
            if not frames and (match := _PROCESS.match(part)) is not None:
                process = (kept_id(match["pid"]), match["title"])  # the innermost: parents stand before it
            elif not frames and (match := _THREAD.match(part)) is not None:
                thread = (match["name"], kept_id(match["id"]))
            elif part:
                frames.append(part)
        counts = recorded.setdefault(process, {})
        key = (*thread, tuple(frames[-MOST_FRAMES:][::-1]))
        counts[key] = counts.get(key, 0) + count
    return tuple(_look(pid, title, counts) for (pid, title), counts in recorded.items())


def is_stack(line: str) -> bool:
    """Whether the line is a collapsed stack with its count."""
    return _stack_of(line.strip()) is not None


def _stack_of(text: str) -> tuple[list[str], int] | None:
    """The parts and the count of a line, if it is one."""
    if not text or text[-1] not in "0123456789" or len(text) > _LONGEST or ("(" not in text and ";" not in text):
        return None
    match = _COUNTED.match(text)
    if match is None:
        return None
    parts = list(_parts(match["stack"]))
    framed = sum(told(part[:LONGEST_LINE]).kind == "frame" for part in parts[:50] if part)
    return (parts, int(match["count"])) if framed and 2 * framed >= min(len(parts), 50) - 2 else None


def _parts(stack: str) -> Iterator[str]:
    """Parts between semicolons; a command line's own are not taken for such."""
    position = 0
    while stack.startswith("process ", position):
        opened = stack.find(':"', position)
        closed = -1 if opened < 0 else stack.find('";', opened + 2)
        if closed < 0:
            break
        yield stack[position : closed + 1]
        position = closed + 2
    for part in stack[position:].split(";"):
        yield part.strip()


def _frame(part: str) -> DumpFrame:
    found = told(part[:LONGEST_LINE])
    return found.frame if found.frame is not None else kept_frame(part)


def _look(pid: int | None, title: str | None, counts: _Recorded) -> ProcessDump:
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    threads = tuple(
        DumpThread.model_construct(
            name=kept_name(name) if name else None,
            thread_id=None if ident is None or ident < 2**32 else ident,
            os_thread_id=None if ident is None or ident >= 2**32 else ident,
            state="active",
            owns_gil=False,
            frames=tuple(map(_frame, frames)),
            samples=count,
            whole=len(frames) < MOST_FRAMES,
        )
        for (name, ident, frames), count in ordered[:MOST_THREADS]
    )
    notes = [f"{sum(counts.values())} samples of a recording, {len(counts)} different stacks"]
    if len(counts) > MOST_THREADS:
        notes.append(f"the {MOST_THREADS} with most samples were read")
    return ProcessDump(
        tool="py-spy raw", pid=pid, title=kept_title(title) if title else None, threads=threads, notes=tuple(notes)
    )
