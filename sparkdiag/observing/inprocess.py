"""The probe's own stacks, where ptrace is refused: read as they are appended, trusted no more than a dump.

The probe's sampler runs as a thread inside each server process while the control file exists. A thread inside sees the
loop variables too, but waits for the GIL like everybody: where the model holds it, samples come late or not at all.
"""

import json
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from sparkdiag.evidence.stacks import Frame, LocalValue, StackSample, ThreadStack
from sparkdiag.harmless.excerpt import excerpt
from sparkdiag.harmless.names import is_telling
from sparkdiag.observing.appended import AppendedLines
from sparkdiag.observing.dump_json import (
    MOST_DIGITS,
    MOST_FRAMES,
    MOST_LOCALS,
    MOST_THREADS,
    NAME_CHARACTERS,
    PATH_CHARACTERS,
    kept_text,
)

CONTROL_FILE = "sample.on"
_CPU = re.compile(rb'"cpu_s":([0-9]{1,9}\.[0-9]{1,9})\}\s*$')
READ_LIMIT_BYTES = 4 * 2**20
"""A look at one file; what is left is read at the next."""


def switch_on(folder: Path, *, period_s: float) -> None:
    """Ask the probe in every process to sample. Raises ``OSError``."""
    (folder / CONTROL_FILE).write_text(json.dumps({"period_s": round(period_s, 3)}), encoding="utf-8")


def switch_off(folder: Path) -> None:
    """Ask the probe to stop; nothing to do where the folder is gone."""
    with suppress(OSError):
        (folder / CONTROL_FILE).unlink(missing_ok=True)


def parse_line(
    line: bytes | str, *, pid: int, clock_offset_s: float, kept_names: frozenset[str] = frozenset()
) -> StackSample | None:
    """One line of a stacks file; None for one that is no sample (torn, full, foreign).

    ``clock_offset_s`` is what the monotonic clock showed when the run clock was zero.
    """
    try:
        document = json.loads(line)
        threads = document["threads"][:MOST_THREADS]
        return StackSample(
            pid=pid,
            started_s=float(document["started_monotonic_s"]) - clock_offset_s,
            ended_s=float(document["ended_monotonic_s"]) - clock_offset_s,
            source="in-process",
            threads=tuple(_thread(ThreadStack.model_validate(raw), kept_names) for raw in threads),
        )
    except (ValueError, KeyError, TypeError, RecursionError, ValidationError):
        return None


def told_cpu_s(line: bytes) -> float:
    """What taking the sample cost the process it was taken in: the line's last field; 0 where it is not told."""
    found = _CPU.search(line[-60:])
    return min(float(found[1]), 60.0) if found else 0.0


def _thread(raw: ThreadStack, kept_names: frozenset[str]) -> ThreadStack:
    name = raw.thread_name
    return raw.model_copy(
        update={
            "thread_name": None if name is None else excerpt(name, limit=NAME_CHARACTERS),
            "frames": tuple(_frame(frame, kept_names) for frame in raw.frames[:MOST_FRAMES]),
        }
    )


def _frame(raw: Frame, kept_names: frozenset[str]) -> Frame:
    short = raw.short_filename
    return Frame(
        function=excerpt(raw.function, limit=NAME_CHARACTERS),
        filename=excerpt(raw.filename, limit=PATH_CHARACTERS),
        short_filename=None if short is None else excerpt(short, limit=PATH_CHARACTERS),
        line=raw.line,
        locals=dict(list(_kept(raw.locals.items(), kept_names))[:MOST_LOCALS]),
    )


def _kept(variables: Iterable[tuple[str, Any]], kept_names: frozenset[str]) -> Iterable[tuple[str, LocalValue]]:
    for name, value in variables:
        if not name.isidentifier() or len(name) > NAME_CHARACTERS or is_telling(name):
            continue
        if isinstance(value, int) and abs(value) < 10**MOST_DIGITS:
            yield name, value
        elif isinstance(value, str) and name in kept_names:
            yield name, kept_text(value)


class InProcessReader:
    """Reads what the probe appended since the last look. One thread at a time."""

    def __init__(
        self, folder: Path, *, clock: Callable[[], float], monotonic: Callable[[], float], kept_names: frozenset[str]
    ) -> None:
        self._folder = folder
        self._clock_offset_s = monotonic() - clock()
        self._kept_names = kept_names
        self._files = AppendedLines()
        self._cpu_s = 0.0
        self.full: frozenset[int] = frozenset()
        """Processes whose file has reached its bound."""

    def read(self, pids: frozenset[int]) -> tuple[StackSample, ...]:
        """The new samples of these processes, in order of their end; a torn last line is left for the next look."""
        samples: list[StackSample] = []
        for pid in pids:
            lines, _more = self._files.new(self._folder / f"stacks-{pid}.jsonl", at_most_bytes=READ_LIMIT_BYTES)
            for line in lines:
                sample = parse_line(line, pid=pid, clock_offset_s=self._clock_offset_s, kept_names=self._kept_names)
                if sample is not None:
                    samples.append(sample)
                    self._cpu_s += told_cpu_s(line)
                elif len(line) < 200 and b'"full"' in line:
                    self.full |= {pid}
        return tuple(sorted(samples, key=lambda sample: sample.ended_s))

    def take_cpu_s(self) -> float:
        """CPU seconds that the samples read since the last call cost the server, as the probe tells it."""
        taken_s, self._cpu_s = self._cpu_s, 0.0
        return taken_s
