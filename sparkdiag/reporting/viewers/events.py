"""Single trace events, in the words of the Trace Event Format, and who they belong to. Pure."""

from dataclasses import dataclass
from typing import Any

from sparkdiag.reporting.viewers.looks import is_moment


class Numbers:
    """Processes and threads, counted over all runs of a file: a viewer takes equal numbers for one process."""

    def __init__(self) -> None:
        self._last = 0

    def next(self) -> int:
        self._last += 1
        return self._last


@dataclass(slots=True)
class Track:
    """A process of the trace, with the threads that it got."""

    numbers: Numbers
    pid: int
    name: str
    sort: int
    threads: int = 0

    @classmethod
    def process(cls, numbers: Numbers, name: str, *, sort: int) -> "Track":
        return cls(numbers=numbers, pid=numbers.next(), name=name, sort=sort)

    def named(self) -> list[dict[str, Any]]:
        """What gives the process its name and its place."""
        return [
            {"ph": "M", "pid": self.pid, "tid": 0, "name": "process_name", "args": {"name": self.name}},
            {"ph": "M", "pid": self.pid, "tid": 0, "name": "process_sort_index", "args": {"sort_index": self.sort}},
        ]

    def thread(self, name: str) -> tuple[int, list[dict[str, Any]]]:
        """A new thread's number, and what gives it its name; below those that the process has."""
        tid = self.numbers.next()
        self.threads += 1
        of_it = {"ph": "M", "pid": self.pid, "tid": tid}
        return tid, [
            {**of_it, "name": "thread_name", "args": {"name": name}},
            {**of_it, "name": "thread_sort_index", "args": {"sort_index": self.threads}},
        ]

    def slice(self, tid: int, name: str, *, from_us: int, to_us: int, args: dict[str, Any]) -> dict[str, Any]:
        """A stretch of time; ``to_us`` is later than ``from_us``."""
        return {
            "ph": "X",
            "pid": self.pid,
            "tid": tid,
            "name": name,
            "cat": "sparkdiag",
            "ts": from_us,
            "dur": to_us - from_us,
            "args": args,
        }

    def instant(self, tid: int, name: str, *, at_us: int, args: dict[str, Any]) -> dict[str, Any]:
        """A moment, drawn over the whole process."""
        where = {"pid": self.pid, "tid": tid, "name": name, "cat": "sparkdiag"}
        return {"ph": "i", **where, "ts": at_us, "s": "p", "args": args}

    def counter(self, name: str, *, at_us: int, unit: str, value: float) -> dict[str, Any]:
        """A reading; viewers draw those of one name as a curve."""
        return {"ph": "C", "pid": self.pid, "tid": 0, "name": name, "ts": at_us, "args": {unit: value}}


def micro(at_s: float) -> int:
    return round(at_s * 1e6)


def moment_us(at_s: float | None) -> int | None:
    """None for what no viewer can show."""
    return micro(at_s) if at_s is not None and is_moment(at_s) else None
