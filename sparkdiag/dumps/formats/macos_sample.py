"""macOS's ``sample PID``: a tree of native calls, outermost first, with how many samples passed through each. Pure.

Of every thread the way that most samples took is read; it has no Python frames.
"""

import re
from collections.abc import Sequence

from sparkdiag.dumps.kept import MOST_FRAMES, MOST_THREADS, kept_frame, kept_id, kept_name
from sparkdiag.dumps.native_names import bare_native
from sparkdiag.evidence.dump import DumpFrame, DumpThread, ProcessDump

_LONGEST = 4000
_NODE = re.compile(
    r"(?P<tree>[ +!:|]{1,400})(?P<count>\d{1,9}) (?P<name>\S.{0,2000}?)  ?\(in (?P<library>[^()]{1,200})\)"
)
_THREAD = re.compile(
    r" {2,8}(?P<count>\d{1,9}) Thread_(?P<id>\d{1,12})(?:: (?P<name>[^\n]{0,200}?))?(?:  ? ?DispatchQueue_.*)?\s*\Z"
)
_ENDS = ("Total number in stack", "Sort by top of stack", "Binary Images:")
_PROCESS = re.compile(
    r"(?:Analysis of sampling|Process:)\s+(?P<name>[^\[(\n]{1,100}?) ?[\[(](?:pid )?(?P<pid>\d{1,10})[\])]"
)


def claims(lines: Sequence[str]) -> float:
    """Sure of a call graph with libraries in it."""
    nodes = sum(_NODE.match(line[:_LONGEST]) is not None for line in lines[:200])
    return 0.0 if not nodes else 0.97 if any("Call graph:" in line for line in lines[:200]) else 0.6


def read(lines: Sequence[str]) -> tuple[ProcessDump, ...]:
    """One look; innermost first."""
    threads: list[DumpThread] = []
    head: re.Match[str] | None = None
    path: list[tuple[int, int, DumpFrame]] = []
    best: list[tuple[int, int, DumpFrame]] = []
    for line in (whole[:_LONGEST] for whole in lines):
        if line.startswith(_ENDS):
            break
        if (found := _THREAD.match(line)) is not None:
            _close(threads, head, best)
            head, path, best = found, [], []
        elif (node := _NODE.match(line)) is not None:
            depth, count = len(node["tree"]), int(node["count"])
            while path and path[-1][0] >= depth:
                path.pop()
            path.append((depth, count, kept_frame(bare_native(node["name"]), path=node["library"], native=True)))
            # Children come by their counts, so the first way down is the heaviest one.
            if not best or path[: len(best)] == best:
                best = list(path)
    _close(threads, head, best)
    told = next((match for line in lines[:50] if (match := _PROCESS.search(line[:_LONGEST])) is not None), None)
    if not threads:
        return ()
    return (
        ProcessDump(
            pid=None if told is None else kept_id(told["pid"]),
            threads=tuple(threads[:MOST_THREADS]),
            notes=("macOS's sample shows native frames alone; of each thread the way most samples took was read",),
        ),
    )


def _close(threads: list[DumpThread], head: re.Match[str] | None, path: list[tuple[int, int, DumpFrame]]) -> None:
    if not path:
        return
    threads.append(
        DumpThread(
            name=kept_name(head["name"]) if head is not None and head["name"] else None,
            thread_id=None if head is None else kept_id(head["id"]),
            frames=tuple(frame for _depth, _count, frame in reversed(path[-MOST_FRAMES:])),
            samples=max(path[0][1], 1),
            whole=head is not None,
        )
    )
