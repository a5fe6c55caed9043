"""``stacks.jsonl`` read back: every sample, or of a very long run an even part of them."""

import math
from collections.abc import Iterable
from pathlib import Path

from sparkdiag.evidence.stacks import SamplingStats, StackSample
from sparkdiag.recording.lines import count_of, parsed, read_stream
from sparkdiag.recording.stack_lines import LINES_A_NUMBERING
from sparkdiag.recording.stack_reader import StackReader

MOST_SAMPLES = 20_000
"""A look a second at each of four processes for over an hour: so many are read whole, and judged again."""
SAMPLES_OF_MORE = 10_000
"""Of more than those: no picture shows as many, and each one more costs whoever renders 5 KB and half a millisecond."""
_FRESH = b'"fresh":true'
"""In a line that begins a numbering, so that none before it need be read."""
_REFERRING = b'"stack":'
"""In a line that may refer to lines before it; runs of older states have none."""
_ODD = 2654435761
"""Knuth's multiplicative hash: spreads line numbers so that no process comes too short because they take turns."""


class Samples:
    """What is kept of a run's samples, and what all of them come to."""

    def __init__(
        self, *, from_s: float, until_s: float | None, keep_each: int = 1, lines: int = 0, numberings: int = 0
    ) -> None:
        self.kept: list[StackSample] = []
        """In time: not before the server was ready, not after the verdict."""
        self.last_s: float | None = None
        """When the latest of those that were read ended."""
        self._until_s, self._from_s, self._keep_each = until_s, from_s, keep_each
        self._reader = StackReader()
        self._in_all, self._last_numbering = lines - 1, numberings
        self._line = self._numbering = self._given = self._of_last = 0
        self._is_open = False
        self._taken = self._late = self._failed = 0
        self._longest_s = 0.0
        self._source = "none"

    @property
    def in_all(self) -> int | None:
        """How many samples the folder holds, where only a part of them was read; None where all were."""
        return self._in_all if self._keep_each > 1 else None

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

    def wanted(self, lines: list[bytes]) -> Iterable[int]:
        """Which of these next lines to take: all, or of a very long run the beginnings of numberings and the last one.

        So nothing has to be known of the lines that are passed over, and what is read lies evenly in time.
        """
        return range(len(lines)) if self._keep_each == 1 else self._chosen(lines)

    def _chosen(self, lines: list[bytes]) -> Iterable[int]:
        for index, line in enumerate(lines):
            self._line += 1
            if _FRESH in line:
                self._numbering += 1
                self._is_open = True
            elif self._line == 1 or _REFERRING not in line:  # the header, or a run of an older state
                if self._line == 1 or self._line * _ODD % 2**32 < 2**32 // self._keep_each:
                    yield index
                continue
            if self._numbering == self._last_numbering and self._of_last < 2 * LINES_A_NUMBERING:
                self._of_last += 1
                yield index
            elif self._is_open and self._given * self._keep_each < self._line:
                self._given += 1
                yield index
            else:
                self._is_open = False

    def take(self, line: bytes) -> None:
        """One line. Raises ``ValueError`` where it cannot be read."""
        sample = self._reader.sample(parsed(line))
        self._source = sample.source
        self._taken += 1
        self._late += sample.late
        self._failed += sample.error is not None
        self._longest_s = max(self._longest_s, sample.ended_s - sample.started_s)
        if (self.last_s is None or sample.ended_s > self.last_s) and math.isfinite(sample.ended_s):
            self.last_s = sample.ended_s
        if self._is_in_time(sample.started_s, sample.ended_s):
            self.kept.append(sample)

    def _is_in_time(self, started_s: float, ended_s: float) -> bool:
        return started_s >= self._from_s and (self._until_s is None or ended_s <= self._until_s)


def read_samples(
    folder: Path, problems: list[str], *, from_s: float, until_s: float | None, most: int = MOST_SAMPLES
) -> Samples:
    """Those of ``stacks.jsonl`` that started at ``from_s`` or later and ended by ``until_s``."""
    counts = count_of(folder / "stacks.jsonl", [b"\n", _FRESH])
    lines = counts[b"\n"]
    keep_each = 1 if lines <= most else -(-lines // min(most, SAMPLES_OF_MORE))
    samples = Samples(from_s=from_s, until_s=until_s, keep_each=keep_each, lines=lines, numberings=counts[_FRESH])
    read_stream(folder, "stacks", problems, take=samples.take, wanted=samples.wanted)
    return samples
