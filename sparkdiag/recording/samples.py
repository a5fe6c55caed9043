"""``stacks.jsonl`` read back: every sample, or of a very long run an even part of each process's."""

import math
import re
from pathlib import Path

from sparkdiag.evidence.stacks import SamplingStats, StackSample
from sparkdiag.recording.lines import line_count, parsed, read_stream
from sparkdiag.recording.stack_lines import StackReader

MOST_SAMPLES = 60_000
"""A look a second at each of four processes for four hours. Each one more costs a reader 3 KB and 30 microseconds."""
_HEAD = re.compile(
    rb'\{"process":(?P<pid>\d{1,18}),"started_s":(?P<started>[\d.e+-]{1,30}),"ended_s":(?P<ended>[\d.e+-]{1,30}),'
    rb'"source":"(?P<source>py-spy|in-process)","error":(?P<error>null|"(?:[^"\\]|\\.){0,2000}"),"late":(?P<late>true|false)'
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
        self._lines = StackReader()
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
        if self._keep_each > 1 and self._is_passed(line):
            return
        sample = self._lines.sample(parsed(line))
        started_s, ended_s = sample.started_s, sample.ended_s
        self._count(started_s, ended_s, source=sample.source, late=sample.late, failed=sample.error is not None)
        if self._is_in_time(started_s, ended_s) and self._is_next(sample.pid):
            self.kept.append(sample)

    def _is_passed(self, line: bytes) -> bool:
        """Whether the sample need not be made. Raises ``ValueError`` where the line refers to one that was lost."""
        head = _HEAD.match(line)
        if head is None or not line.endswith((b"}\n", b"}")):
            return False
        started_s, ended_s, pid = float(head["started"]), float(head["ended"]), int(head["pid"])
        in_time = self._is_in_time(started_s, ended_s)
        if in_time and self._seen.get(pid, 0) % self._keep_each == 0:
            return False
        if b'"first":' in line or b'"fresh":' in line:
            self._lines.learn(parsed(line))
        self._count(
            started_s,
            ended_s,
            source=head["source"].decode(),
            late=head["late"] == b"true",
            failed=head["error"] != b"null",
        )
        if in_time:
            self._is_next(pid)
        return True

    def _is_in_time(self, started_s: float, ended_s: float) -> bool:
        return started_s >= self._from_s and (self._until_s is None or ended_s <= self._until_s)

    def _is_next(self, pid: int) -> bool:
        """Counts one more of the process; whether it is one of those that are kept."""
        before = self._seen.get(pid, 0)
        self._seen[pid] = before + 1
        self.in_time += 1
        return before % self._keep_each == 0

    def _count(self, started_s: float, ended_s: float, *, source: str, late: bool, failed: bool) -> None:
        self._taken += 1
        self._late += late
        self._failed += failed
        self._source = source
        self._longest_s = max(self._longest_s, ended_s - started_s)
        if math.isfinite(ended_s):
            self.last_s = ended_s if self.last_s is None else max(self.last_s, ended_s)


def read_samples(
    folder: Path, problems: list[str], *, from_s: float, until_s: float | None, most: int = MOST_SAMPLES
) -> Samples:
    """Those of ``stacks.jsonl`` that started at ``from_s`` or later and ended by ``until_s``."""
    keep_each = -(-line_count(folder / "stacks.jsonl") // most)
    samples = Samples(from_s=from_s, until_s=until_s, keep_each=max(1, keep_each))
    read_stream(folder, "stacks", problems, take=samples.take)
    return samples
