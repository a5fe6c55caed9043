"""``stacks.jsonl`` read back into samples: ``stack_lines`` says how they lie there. Pure.

A line whose sample nobody wants is only kept for what later lines may refer to, and taken apart when one does.
"""

import re
from bisect import bisect_right
from collections.abc import Callable
from typing import Any

from sparkdiag.evidence.stacks import Frame, StackSample, ThreadStack
from sparkdiag.recording.stack_lines import KINDS, LINES_A_NUMBERING, MOST_NUMBERED

First = tuple[int, int, int, int]
"""The numbers that a line's first new place, frame, head and thread get."""
_OWN = frozenset((*KINDS, "process", "first", "fresh", "stack", "of"))
_OF = re.compile(rb'"of":(\d{1,12})\}\Z')
_BEGINNING: First = (0, 0, 0, 0)


class _Numbering:
    """What the lines of one numbering brought."""

    def __init__(self) -> None:
        self.threads: dict[int, ThreadStack] = {}
        self.frames: dict[int, Frame] = {}
        self._known: dict[str, dict[int, Any]] = {kind: {} for kind in KINDS}
        self._next: First | None = _BEGINNING
        """What the next line's ``first`` has to be; None while that of the last one was not looked into."""
        self._least = _BEGINNING
        self._waiting: list[tuple[First, bytes]] = []

    def add(self, first: First, line: dict[str, Any]) -> None:
        """Take up what ``line`` brings. Raises ``KeyError`` where lines before it were lost."""
        self._check(first)
        self._next = self._least = self._take(first, line)

    def add_later(self, first: First, line: bytes) -> None:
        """The same of a line that is not looked into before it is asked for."""
        self._check(first)
        self._next, self._least = None, first
        if len(self._waiting) > 2 * LINES_A_NUMBERING:
            raise KeyError("no numbering goes on for so long")
        self._waiting.append((first, line))

    def at(self, kind: str, number: int, *, parse: Callable[[bytes], Any]) -> Any:
        """The thing of this number. Raises ``KeyError`` where the line that brought it was lost."""
        known = self._known[kind]
        if number not in known:
            column = KINDS.index(kind)
            index = bisect_right(self._waiting, number, key=lambda waiting: waiting[0][column]) - 1
            if index >= 0 and self._waiting[index][1]:
                first, line = self._waiting[index]
                self._waiting[index] = first, b""
                self._take(first, parse(line))
        return known[number]

    def _check(self, first: First) -> None:
        if self._next is not None and first != self._next:
            raise KeyError("first")
        if sum(first) > 2 * MOST_NUMBERED:
            raise KeyError("no numbering goes on for so long")

    def may_go_on_at(self, first: First) -> bool:
        """Whether a line that begins there may be of this numbering: it never counts backwards."""
        least = self._least
        return first[0] >= least[0] and first[1] >= least[1] and first[2] >= least[2] and first[3] >= least[3]

    def _take(self, first: First, line: dict[str, Any]) -> First:
        ends = []
        for kind, number in zip(KINDS, first, strict=True):
            new = line.get(kind, ())
            self._known[kind].update(enumerate(new, start=number))
            ends.append(number + len(new))
        return ends[0], ends[1], ends[2], ends[3]


class StackReader:
    """Lines come in their order; one that cannot be read is passed over, and may cost others.

    A thread or frame that stands in many samples is made once and is the same value in all of them.
    """

    def __init__(self, *, parse: Callable[[bytes], Any]) -> None:
        self._parse = parse
        self._numbering = _Numbering()
        self._of: object = None
        """Which numbering the lines say they are of; None in runs from before they said so."""

    def sample(self, line: object) -> StackSample:
        """The sample that ``StackLines.line`` was given.

        Raises ``ValueError`` where the line refers to one that was lost, or to nothing that can be, or is no sample.
        """
        if not isinstance(line, dict) or "stack" not in line:
            return StackSample.model_validate(line)  # whole: as runs were written before
        try:
            self._follow(line)
            if "first" in line:
                first = _first(line["first"])
                self._begin(first)
                self._numbering.add(first, line)
            rest = {key: value for key, value in line.items() if key not in _OWN}
            threads = tuple([self._thread(number) for number in line["stack"]])
            return StackSample.model_validate({"pid": line["process"], **rest, "threads": threads})
        except (KeyError, IndexError, TypeError) as error:
            raise ValueError("it refers to a line that cannot be read") from error

    def _follow(self, line: dict[str, Any]) -> None:
        """Begin a numbering with ``line``, or where it is of another than the line before, whose beginning was lost."""
        before, self._of = self._of, line.get("of")
        if line.get("fresh") is True or self._of != before:
            self.forget()

    def learn(self, line: bytes, *, first: First) -> None:
        """Keep a line of whose sample nothing is wanted. Raises ``ValueError`` like ``sample``."""
        self._begin(first)
        try:
            self._numbering.add_later(first, line)
        except KeyError as error:
            raise ValueError("it refers to a line that cannot be read") from error

    def begin(self, line: bytes) -> None:
        """``line`` begins a numbering, and is not looked into."""
        self.forget()
        told = _OF.search(line)
        self._of = int(told[1]) if told is not None else None

    def forget(self) -> None:
        """What comes next begins a numbering, or a line that began one was lost."""
        self._numbering = _Numbering()

    def _begin(self, first: First) -> None:
        if first == _BEGINNING or not self._numbering.may_go_on_at(first):
            self.forget()

    def _thread(self, number: object) -> ThreadStack:
        made, index = self._numbering.threads, _index(number)
        if index not in made:
            head, numbers = self._at("threads", index)
            thread = {**self._at("heads", _index(head)), "frames": self._frames(numbers)}
            made[index] = ThreadStack.model_validate(thread)
        return made[index]

    def _frames(self, numbers: list[int]) -> tuple[Frame, ...]:
        made = self._numbering.frames
        try:
            return tuple(map(made.__getitem__, numbers))
        except KeyError:
            return tuple([made.get(_index(number)) or self._frame(number) for number in numbers])

    def _frame(self, number: int) -> Frame:
        place, variables = self._at("frames", number)
        frame = Frame.model_validate({**self._at("places", _index(place)), "locals": variables})
        self._numbering.frames[number] = frame
        return frame

    def _at(self, kind: str, number: int) -> Any:
        return self._numbering.at(kind, number, parse=self._parse)


def _first(numbers: object) -> First:
    if not isinstance(numbers, list) or len(numbers) != len(KINDS):
        raise KeyError("first")
    places, frames, heads, threads = map(_index, numbers)
    return places, frames, heads, threads


def _index(number: object) -> int:
    """``number`` where it can be one of ours. Raises ``IndexError``: a negative one would be found from the end."""
    if type(number) is not int or number < 0:
        raise IndexError(number)
    return number
