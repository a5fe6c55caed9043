"""How samples lie in ``stacks.jsonl``: what was written before is not written again. Pure.

Most of a sample is the same as in the sample before: the threads that wait, and the outer frames of the one that works.
So a line brings what is new, numbered in the order of its coming, and refers to the rest by number::

    {"process": 4711, "started_s": 1.0, ..., "first": [0, 0, 0, 0], "places": [...], "frames": [...], "heads": [...],
     "threads": [...], "stack": [0, 1]}

``places`` are frames without their locals, ``frames`` are [place, locals], ``heads`` are threads without their frames,
``threads`` are [head, [frame, ...]], ``stack`` are the sample's threads. ``first`` are the numbers that this line's
first new ones get: where a line was lost, a reader sees it there, and takes nothing for something else. The numbering
begins again (``fresh``) now and then, so that a loss stays small and neither side remembers a whole run.
"""

from hashlib import blake2b
from typing import Any

from sparkdiag.evidence.stacks import Frame, StackSample, ThreadStack

LINES_A_NUMBERING = 1000
MOST_NUMBERED = 20_000
_KINDS = ("places", "frames", "heads", "threads")


class StackLines:
    """The writer's side: what the reader knows already."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, int]] = {kind: {} for kind in _KINDS}
        self._threads: dict[bytes, int] = {}
        """Numbers of whole threads, by a digest: most of them only wait, and are not to be taken apart again."""
        self._lines = 0
        self._fresh = True

    def line(self, sample: dict[str, Any]) -> dict[str, Any]:
        """``sample`` (a ``StackSample`` as JSON) as it is written."""
        if self._lines >= LINES_A_NUMBERING or sum(map(len, self._known.values())) >= MOST_NUMBERED:
            self.lost()
        self._lines += 1
        rest = {key: value for key, value in sample.items() if key not in ("pid", "threads")}
        new: dict[str, list[Any]] = {kind: [] for kind in _KINDS}
        first = [len(self._known[kind]) for kind in _KINDS]
        stack = [self._thread(thread, new) for thread in sample["threads"]]
        line = {"process": sample["pid"], **rest}
        if self._fresh:
            line["fresh"] = True
        if any(new.values()):
            line["first"] = first
            line |= {kind: values for kind, values in new.items() if values}
        self._fresh = False
        return line | {"stack": stack}

    def lost(self) -> None:
        """The last line may not have been written: begin anew."""
        self._known = {kind: {} for kind in _KINDS}
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


class StackReader:
    """The reader's side. Lines come in their order; one that cannot be read is passed over, and may cost others.

    A thread or frame that stands in many samples is made once and is the same value in all of them.
    """

    def __init__(self) -> None:
        self._known: dict[str, list[Any]] = {kind: [] for kind in _KINDS}
        self._threads: dict[int, ThreadStack] = {}
        self._frames: dict[int, Frame] = {}

    def sample(self, line: object) -> StackSample:
        """The sample that ``StackLines.line`` was given.

        Raises ``ValueError`` where the line refers to one that was lost, or to nothing that can be, or is no sample.
        """
        if not isinstance(line, dict) or "stack" not in line:
            return StackSample.model_validate(line)  # whole: as runs were written before
        try:
            self._learn(line)
            own = (*_KINDS, "process", "first", "fresh", "stack")
            rest = {key: value for key, value in line.items() if key not in own}
            threads = tuple([self._thread(number) for number in line["stack"]])
            return StackSample.model_validate({"pid": line["process"], **rest, "threads": threads})
        except (KeyError, IndexError, TypeError) as error:
            raise ValueError("it refers to a line that cannot be read") from error

    def learn(self, line: object) -> None:
        """Like ``sample`` for a line whose sample nobody wants: only what later lines refer to is taken up."""
        if isinstance(line, dict) and "stack" in line:
            try:
                self._learn(line)
            except (KeyError, TypeError) as error:
                raise ValueError("it refers to a line that cannot be read") from error

    def _learn(self, line: dict[str, Any]) -> None:
        if line.get("fresh") is True or line.get("first") == [0] * len(_KINDS):
            self._forget()
        if "first" in line:
            known = [len(self._known[kind]) for kind in _KINDS]
            if line["first"] != known:
                if any(first < own for first, own in zip(line["first"], known, strict=True)):
                    self._forget()  # the line that began anew was lost: what is known is of another numbering
                raise KeyError("first")
            for kind in _KINDS:
                self._known[kind] += line.get(kind, [])

    def _forget(self) -> None:
        self._known = {kind: [] for kind in _KINDS}
        self._threads, self._frames = {}, {}

    def _thread(self, number: int) -> ThreadStack:
        made = self._threads.get(_index(number))
        if made is None:
            head, frames = self._known["threads"][number]
            thread = {**self._known["heads"][_index(head)], "frames": tuple([self._frame(frame) for frame in frames])}
            made = self._threads[number] = ThreadStack.model_validate(thread)
        return made

    def _frame(self, number: int) -> Frame:
        made = self._frames.get(_index(number))
        if made is None:
            place, variables = self._known["frames"][number]
            frame = {**self._known["places"][_index(place)], "locals": variables}
            made = self._frames[number] = Frame.model_validate(frame)
        return made


def _index(number: object) -> int:
    """``number`` where it can be one of ours. Raises ``IndexError``: a negative one would be found from the end."""
    if type(number) is not int or number < 0:
        raise IndexError(number)
    return number
