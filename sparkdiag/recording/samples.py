"""``stacks.jsonl`` read back: every sample, or of a very long run an even part of each process's."""

import math
import re
from pathlib import Path

from sparkdiag.evidence.stacks import SamplingStats, StackSample
from sparkdiag.recording.lines import count_of, parsed, read_stream
from sparkdiag.recording.stack_reader import StackReader

MOST_SAMPLES = 20_000
"""A look a second at each of four processes for over an hour: so many are read whole, and judged again."""
SAMPLES_OF_MORE = 10_000
"""Of more than those: no picture shows as many, and each one more costs whoever renders 5 KB and half a millisecond."""
_HEAD = re.compile(
    rb'\{"process":(\d{1,18}),"started_s":([\d.e+-]{1,30}),"ended_s":([\d.e+-]{1,30}),'
    rb'"source":"(?:py-spy|in-process)","error":(null|"(?:[^"\\]|\\.){0,2000}"),"late":(true|false)'
    rb'(,"fresh":true)?(?:,"first":\[(\d{1,9}),(\d{1,9}),(\d{1,9}),(\d{1,9})\])?'
)
"""How our writer begins a line: all that is asked of a sample which is passed over."""


class Samples:
    """What is kept of a run's samples, and what all of them come to."""

    def __init__(self, *, from_s: float, until_s: float | None, keep_each: int = 1) -> None:
        self.kept: list[StackSample] = []
        """In time: not before the server was ready, not after the verdict."""
        self.in_time = 0
        self.last_s: float | None = None
        """When the latest of all samples ended."""
        self._until_s, self._from_s, self._keep_each = until_s, from_s, keep_each
        self._lines = StackReader(parse=parsed)
        self._seen: dict[int, int] = {}
        self._taken = self._late = self._failed = 0
        self._longest_s = 0.0
        self._source = "none"

    @property
    def in_all(self) -> int | None:
        """How many samples are in time, where only a part of them was kept; None where all were."""
        return self.in_time if self.in_time > len(self.kept) else None

    @property
    def stats(self) -> SamplingStats:
        """For a run that did not come to say so itself."""
        return SamplingStats.model_validate(
            {
                "taken": self._taken,
                "late": self._late,
                "failed": self._failed,
                "longest_s": self._longest_s,
                "mode": self._source,
            }
        )

    def take(self, line: bytes) -> None:
        """One line. Raises ``ValueError`` where it cannot be read."""
        if self._keep_each == 1:
            self._take_whole(line)
            return
        try:
            if not self._is_passed(line):
                self._take_whole(line)
        except ValueError:
            # What comes next may refer to it, and lines that are passed over are not looked into.
            self._lines.forget()
            raise

    def _take_whole(self, line: bytes) -> None:
        sample = self._lines.sample(parsed(line))
        self._source = sample.source
        self._late += sample.late
        self._failed += sample.error is not None
        in_time = self._is_in_time(sample.started_s, sample.ended_s)
        seen = self._count(sample.pid, sample.started_s, sample.ended_s, in_time=in_time)
        if in_time and seen % self._keep_each == 0:
            self.kept.append(sample)

    def _is_passed(self, line: bytes) -> bool:
        """Whether the sample need not be made. Raises ``ValueError`` where the line refers to one that was lost."""
        head = _HEAD.match(line)
        if head is None or line[-1:] != b"}":
            return False
        number, began, ended, error, late, fresh, places, frames, heads, threads = head.groups()
        pid, started_s, ended_s = int(number), float(began), float(ended)
        in_time = self._is_in_time(started_s, ended_s)
        if in_time and self._seen.get(pid, 0) % self._keep_each == 0:
            return False
        if fresh is not None:
            self._lines.begin(line)
        if places is not None:
            self._lines.learn(line, first=(int(places), int(frames), int(heads), int(threads)))
        self._late += late == b"true"
        self._failed += error != b"null"
        self._count(pid, started_s, ended_s, in_time=in_time)
        return True

    def _is_in_time(self, started_s: float, ended_s: float) -> bool:
        return started_s >= self._from_s and (self._until_s is None or ended_s <= self._until_s)

    def _count(self, pid: int, started_s: float, ended_s: float, *, in_time: bool) -> int:
        """How many of the process came before, in time."""
        self._taken += 1
        if ended_s - started_s > self._longest_s:
            self._longest_s = ended_s - started_s
        if (self.last_s is None or ended_s > self.last_s) and math.isfinite(ended_s):
            self.last_s = ended_s
        before = self._seen.get(pid, 0)
        if in_time:
            self._seen[pid] = before + 1
            self.in_time += 1
        return before


def read_samples(
    folder: Path, problems: list[str], *, from_s: float, until_s: float | None, most: int = MOST_SAMPLES
) -> Samples:
    """Those of ``stacks.jsonl`` that started at ``from_s`` or later and ended by ``until_s``."""
    lines = count_of(folder / "stacks.jsonl", [b"\n"])[b"\n"]
    keep_each = 1 if lines <= most else -(-lines // min(most, SAMPLES_OF_MORE))
    samples = Samples(from_s=from_s, until_s=until_s, keep_each=keep_each)
    read_stream(folder, "stacks", problems, take=samples.take)
    return samples
