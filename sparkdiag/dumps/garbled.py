"""Whether stacks of several processes ran into each other, so that nobody can tell whose frame is whose. Pure.

Two ranks that write to one terminal at once mix their lines, and sometimes their bytes. A stack put together from
both looks like a stack; so what cannot be in one stack is looked for, and a text that has it is refused.
"""

import re
from collections.abc import Sequence
from itertools import pairwise

from sparkdiag.dumps.formats.pyspy_text import Look
from sparkdiag.dumps.main_thread import MAIN
from sparkdiag.evidence.dump import DumpThread, ProcessDump

_ONCE = frozenset(
    {
        "worker_busy_loop",
        "worker_main",
        "run_busy_loop",
        "run_engine_core",
        "_bootstrap_inner",
        "run_scheduler_process",
        "event_loop_overlap",
        "event_loop_normal",
        "spawn_main",
        "_run_module_as_main",
    }
)
"""Nothing calls these from within themselves."""
_NEVER_INSIDE = {
    "worker_busy_loop": frozenset({"run_busy_loop", "run_engine_core", "worker_main", "spawn_main"}),
    "run_busy_loop": frozenset({"run_engine_core", "spawn_main"}),
    "worker_main": frozenset({"run_busy_loop", "run_engine_core", "spawn_main"}),
    "_bootstrap_inner": frozenset({"spawn_main", "_run_module_as_main"}),
}
"""What a function can never be the caller of. The other way round may be: a forked child keeps its parent's frames."""
_THREADING = frozenset({"_bootstrap", "_bootstrap_inner"})
_NO_STACKS = frozenset({"py-spy top", "py-spy raw"})
_SHARE = 0.08
_FILE_SHARE = 0.25
_PIECE = re.compile(r"\bFile {1,8}(?:,|\(most|\d|File)|, line {1,8}(?:,|in\b|File|\Z|\")|\bin {1,4}in\b|\"{3}|\Ain {2}")
_NUMBER = re.compile(r"\s*#(?P<number>\d{1,5})\s{1,8}\S")
_PIECE_CHARACTERS = 1000
_FEWEST_PIECES = 3
_FILE = re.compile(r"File \"[^\"\n]{1,600}\", line (?:\d{1,9}|\?)(?:,? in \S.{0,300})?\Z")


def reason_for(looks: Sequence[Look]) -> str | None:
    """Why looks of ``py-spy dump`` texts cannot be told apart; None when nothing speaks of it."""
    frames = sum(look.frames for look in looks)
    broken = sum(look.broken for look in looks)
    if broken >= 2 and broken >= _SHARE * frames:
        return f"{broken} lines hold pieces of two stacks: several processes wrote into each other"
    for look in looks:
        if look.titled and len({thread.head is None for thread in look.threads}) > 1:
            return "frames stand between a process's header and its first thread's: two processes are interleaved"
    for look, after in pairwise(looks):
        if (
            look.titled
            and look.python is None
            and look.threads
            and after.python
            and not (after.titled or after.captions)
        ):
            return "a process's version stands below its stacks: the lines of two processes are interleaved"
        if not after.titled and not after.captions and look.threads:
            if any(
                thread.head is not None and thread.head.name == MAIN and not thread.frames for thread in look.threads
            ):
                return "the headers of two main threads follow each other: stacks of several processes are interleaved"
            if look.heads:
                return "the headers of several processes come before their stacks: their lines are interleaved"
    return None


def reason_in(dumps: Sequence[ProcessDump]) -> str | None:
    """Why these stacks cannot each be of one thread; None when nothing speaks of it."""
    for dump in dumps:
        if dump.tool in _NO_STACKS:
            continue
        for thread in dump.threads:
            if (reason := _impossible(thread)) is not None:
                return reason
    return None


def _impossible(thread: DumpThread) -> str | None:
    seen: set[str] = set()
    inner_name = ""
    under: str | None = None
    """The stdlib's function of threading.py that the frame before was, where only one function may have called it."""
    for frame in thread.frames:
        if frame.native:
            continue
        function = frame.function
        name = function[function.rfind(".") + 1 :]
        if under is not None and (under == "_bootstrap" or (name != "_bootstrap" and frame.path is not None)):
            return f"{name} cannot have called {under} of threading.py: stacks of several threads are interleaved"
        under = None
        if name in _ONCE:
            if (inner := _NEVER_INSIDE.get(name)) is not None and not seen.isdisjoint(inner):
                return f"{name} cannot have called what stands inside it: stacks of several processes are interleaved"
            if name in seen:
                return f"{name} stands twice in one stack: stacks of several threads or ranks are interleaved"
            seen.add(name)
        if (
            (name == "run" or name in _THREADING)
            and inner_name == "<module>"
            and frame.path is not None
            and frame.path.endswith("threading.py")
        ):
            return "a thread of threading.py cannot have run <module>: stacks of several threads are interleaved"
        inner_name = name
        if name in _THREADING and frame.path is not None and frame.path.endswith("threading.py"):
            under = name
    return None


def reason_of_lines(lines: Sequence[str]) -> str | None:
    """Why ``File "..."`` lines (faulthandler's, a traceback's) cannot be told apart; None when nothing speaks of it."""
    good = broken = 0
    if (reason := _reason_of_numbers(lines)) is not None:
        return reason
    for line in lines:
        if 'File "' not in line:
            continue
        text = line[line.index('File "') :].strip()
        if _FILE.match(text[:1200]) is not None and text.count('File "') == 1:
            good += 1
        else:
            broken += 1
    if broken >= 2 and broken >= _FILE_SHARE * (good + broken):
        return f"{broken} lines hold pieces of several stacks: several processes wrote into each other"
    return None


def _reason_of_numbers(lines: Sequence[str]) -> str | None:
    """Of gdb's frames, which it counts from 0 on: a number that comes again is of another stack."""
    last = -1
    again = 0
    for line in lines:
        match = _NUMBER.match(line)
        if match is None or ", for file " in line:  # ``py-bt-full`` shows several Python frames of one native frame
            continue
        number = int(match["number"])
        again += 0 < number <= last
        last = number
    return (
        f"{again} frames have a number that was there before: stacks are interleaved"
        if again >= _FEWEST_PIECES
        else None
    )


def reason_of_pieces(lines: Sequence[str]) -> str | None:
    """Why no stack was found in what once were several processes' of faulthandler: even single lines are in pieces."""
    if not any("most recent call first" in line or "Thread 0x" in line for line in lines):
        return None
    pieces = sum(_PIECE.search(line[:_PIECE_CHARACTERS]) is not None for line in lines)
    if pieces < _FEWEST_PIECES:
        return None
    return f"{pieces} lines hold pieces of frames: several processes wrote into each other"
