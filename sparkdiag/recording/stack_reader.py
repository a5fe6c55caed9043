"""``stacks.jsonl`` read back into samples: ``stack_lines`` says how they lie there. Pure."""

from typing import Any

from sparkdiag.evidence.stacks import Frame, StackSample, ThreadStack
from sparkdiag.recording.stack_lines import KINDS, MOST_NUMBERED

First = tuple[int, int, int, int]
"""The numbers that a line's first new place, frame, head and thread get."""
_OWN = frozenset((*KINDS, "process", "first", "fresh", "stack", "of"))
_BEGINNING: First = (0, 0, 0, 0)


class _Numbering:
    """What the lines of one numbering brought."""

    def __init__(self) -> None:
        self.threads: dict[int, ThreadStack] = {}
        self.frames: dict[int, Frame] = {}
        self._known: dict[str, dict[int, Any]] = {kind: {} for kind in KINDS}
        self._next = _BEGINNING
        """What the next line's ``first`` has to be."""

    def add(self, first: First, line: dict[str, Any]) -> None:
        """Take up what ``line`` brings. Raises ``KeyError`` where lines before it were lost."""
        if first != self._next:
            raise KeyError("first")
        if sum(first) > 2 * MOST_NUMBERED:
            raise KeyError("no numbering goes on for so long")
        ends = []
        for kind, number in zip(KINDS, first, strict=True):
            new = line.get(kind, ())
            self._known[kind].update(enumerate(new, start=number))
            ends.append(number + len(new))
        self._next = ends[0], ends[1], ends[2], ends[3]

    def is_beyond(self, first: First) -> bool:
        """Whether a line that begins there must be of another numbering: none counts backwards."""
        return any(new < known for new, known in zip(first, self._next, strict=True))

    def at(self, kind: str, number: int) -> Any:
        """The thing of this number. Raises ``KeyError`` where the line that brought it was lost."""
        return self._known[kind][number]


class StackReader:
    """Lines come in their order; one that cannot be read is passed over, and may cost others.

    A thread or frame that stands in many samples is made once and is the same value in all of them.
    """

    def __init__(self) -> None:
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
                if first == _BEGINNING or self._numbering.is_beyond(first):
                    self.forget()
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

    def forget(self) -> None:
        """What comes next begins a numbering, or a line that began one was lost."""
        self._numbering = _Numbering()

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
        return self._numbering.at(kind, number)


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
