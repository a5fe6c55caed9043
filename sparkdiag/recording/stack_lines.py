"""How samples lie in ``stacks.jsonl``: what was written before is not written again. Pure.

Most of a sample is the same as in the sample before: the threads that wait, and the outer frames of the one that works.
So a line brings what is new, numbered in the order of its coming, and refers to the rest by number::

    {"process": 4711, "started_s": 1.0, ..., "first": [0, 0, 0, 0], "places": [...], "frames": [...], "heads": [...],
     "threads": [...], "stack": [0, 1], "of": 1}

``places`` are frames without their locals, ``frames`` are [place, locals], ``heads`` are threads without their frames,
``threads`` are [head, [frame, ...]], ``stack`` are the sample's threads. ``first`` are the numbers that this line's
first new ones get: where a line was lost, a reader sees it there, and takes nothing for something else. The numbering
begins again (``fresh``) now and then, so that a loss stays small and neither side remembers a whole run; ``of`` counts
the numberings, so that a line whose own one was lost from its beginning is not read by the one before.
"""

from hashlib import blake2b
from typing import Any

LINES_A_NUMBERING = 1000
MOST_NUMBERED = 20_000
KINDS = ("places", "frames", "heads", "threads")


class StackLines:
    """The writer's side: what the reader knows already."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, int]] = {kind: {} for kind in KINDS}
        self._threads: dict[bytes, int] = {}
        """Numbers of whole threads, by a digest: most of them only wait, and are not to be taken apart again."""
        self._lines = 0
        self._fresh = True
        self._numbering = 0

    def line(self, sample: dict[str, Any]) -> dict[str, Any]:
        """``sample`` (a ``StackSample`` as JSON) as it is written."""
        if self._lines >= LINES_A_NUMBERING or sum(map(len, self._known.values())) >= MOST_NUMBERED:
            self.lost()
        self._lines += 1
        rest = {key: value for key, value in sample.items() if key not in ("pid", "threads")}
        new: dict[str, list[Any]] = {kind: [] for kind in KINDS}
        first = [len(self._known[kind]) for kind in KINDS]
        stack = [self._thread(thread, new) for thread in sample["threads"]]
        line = {"process": sample["pid"], **rest}
        if self._fresh:
            line["fresh"] = True
            self._numbering += 1
        if any(new.values()):
            line["first"] = first
            line |= {kind: values for kind, values in new.items() if values}
        self._fresh = False
        return line | {"stack": stack, "of": self._numbering}

    def lost(self) -> None:
        """The last line may not have been written: begin anew."""
        self._known = {kind: {} for kind in KINDS}
        self._threads = {}
        self._lines = 0
        self._fresh = True

    def _thread(self, thread: dict[str, Any], new: dict[str, list[Any]]) -> int:
        digest = blake2b(repr(thread).encode("utf-8", "backslashreplace"), digest_size=16).digest()
        if digest not in self._threads:
            self._threads[digest] = self._taken_apart(thread, new)
        return self._threads[digest]

    def _taken_apart(self, thread: dict[str, Any], new: dict[str, list[Any]]) -> int:
        frames = [self._frame(frame, new) for frame in thread["frames"]]
        head = {key: value for key, value in thread.items() if key != "frames"}
        return self._number("threads", [self._number("heads", head, new), frames], new)

    def _frame(self, frame: dict[str, Any], new: dict[str, list[Any]]) -> int:
        place = {key: value for key, value in frame.items() if key != "locals"}
        return self._number("frames", [self._number("places", place, new), frame["locals"]], new)

    def _number(self, kind: str, value: Any, new: dict[str, list[Any]]) -> int:
        known = self._known[kind]
        key = repr(value)
        if key not in known:
            known[key] = len(known)
            new[kind].append(value)
        return known[key]
