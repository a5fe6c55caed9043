"""The probe's dispatch ledger, followed as it is appended: read in bounded looks, trusted no more than a dump.

The probe writes ``dispatch-<pid>.jsonl`` inside each server process. A thread of its own takes up what is new about
once a second, puts its times on the run clock, and hands it on; nothing of it is kept in memory here.
"""

import json
import math
import os
import re
import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import JsonValue, TypeAdapter, ValidationError

from sparkdiag.evidence.base import Value
from sparkdiag.evidence.ledger import DispatchCall, DispatchLine, DispatchProcess, DispatchTotals
from sparkdiag.evidence.timeline import NoteEvent
from sparkdiag.harmless.excerpt import excerpt
from sparkdiag.harmless.names import is_telling
from sparkdiag.observing.appended import AppendedLines
from sparkdiag.observing.dump_json import MOST_DIGITS
from sparkdiag.observing.ticker import Ticker

PERIOD_S = 1.0
LAST_WAIT_S = 0.7
"""The probe hands its lines to the file every half second: so long after the verdict the last of them have arrived."""
STOP_WITHIN_S = 3.0
TOTALS_EVERY_S = 30.0
"""Totals replace each other: only the newest of a process is handed on, now and then and at the end."""
READ_LIMIT_BYTES = 2 * 2**20
"""Of one file at one look; what is left is read at the next."""
MOST_LAST_LOOKS = 16
LONGEST_LINE_BYTES = 64 * 2**10
MOST_FILES = 256
MOST_LINES = 200_000
"""Of one run: 58 chunks of 61 layers with 4 functions on 2 ranks are 28,304."""
MOST_ENTRIES, MOST_DEPTH, TEXT_CHARACTERS, NAME_CHARACTERS = 32, 4, 200, 200
_NAME = re.compile(r"dispatch-([0-9]{1,10})\.jsonl")
_LINE: TypeAdapter[DispatchLine] = TypeAdapter(DispatchLine)


def parse_line(line: bytes | str, *, pid: int, clock_offset_s: float) -> DispatchLine | None:
    """One line of a process' file, its times on the run clock; None for one that is none (torn, foreign, hostile).

    ``clock_offset_s`` is what the monotonic clock showed when the run clock was zero.
    """
    if len(line) > LONGEST_LINE_BYTES:
        return None
    try:
        document = json.loads(line)
        if not isinstance(document, dict) or document.get("pid") != pid:
            return None
        parsed = _LINE.validate_python(_kept_document(document))
    except (ValueError, TypeError, RecursionError, ValidationError):
        return None
    if not isinstance(parsed, DispatchCall):
        return parsed
    if not math.isfinite(parsed.began_s) or not 0 <= (parsed.took_s or 0.0) < math.inf or parsed.number < 1:
        return None
    return parsed.model_copy(update={"began_s": parsed.began_s - clock_offset_s})


def _kept_document(document: dict[str, Any]) -> dict[str, Any]:
    """``document`` with texts made harmless and everything of bounded size; its own numbers stay numbers."""
    return {_text(name): _kept(value, depth=0) for name, value in list(document.items())[:MOST_ENTRIES]}


def _kept(value: Any, *, depth: int) -> JsonValue:
    match value:
        case str():
            return _text(value)
        case bool() | None:
            return value
        case int():
            return value if abs(value) < 10**MOST_DIGITS else f"an integer of {len(str(abs(value)))} digits"
        case float():
            return value if math.isfinite(value) else str(value)
        case list() if depth < MOST_DEPTH:
            return [_kept(one, depth=depth + 1) for one in value[: 8 * MOST_ENTRIES]]
        case dict() if depth < MOST_DEPTH:
            return {
                _text(name): _kept(one, depth=depth + 1)
                for name, one in list(value.items())[:MOST_ENTRIES]
                if not is_telling(name)
            }
    return f"<{type(value).__name__}>"


@lru_cache(maxsize=4096)
def _text(text: str) -> str:
    """Cached: the same few names and shapes come again and again."""
    return excerpt(text, limit=TEXT_CHARACTERS)


class DispatchReader:
    """Reads what the probes appended since the last look. One thread at a time."""

    def __init__(self, folder: Path, *, clock_offset_s: float) -> None:
        self._folder = folder
        self._clock_offset_s = clock_offset_s
        self._files = AppendedLines()
        self._behind = False
        self.skipped = 0
        """Lines that are none of the ledger's."""

    @property
    def behind(self) -> bool:
        """Whether the last look left whole lines for the next."""
        return self._behind

    def read(self) -> Iterator[DispatchLine]:
        """The new lines, process by process; a torn last line is left for the next look."""
        self._behind = False
        for pid in self._pids():
            lines, full = self._files.new(self._folder / f"dispatch-{pid}.jsonl", at_most_bytes=READ_LIMIT_BYTES)
            self._behind |= full
            for line in lines:
                parsed = parse_line(line, pid=pid, clock_offset_s=self._clock_offset_s)
                if parsed is not None:
                    yield parsed
                elif line.strip():
                    self.skipped += 1

    def _pids(self) -> list[int]:
        try:
            with os.scandir(self._folder) as entries:
                found = [int(match[1]) for entry in entries if (match := _NAME.fullmatch(entry.name))]
        except OSError:
            return []
        return sorted(found)[:MOST_FILES]


class DispatchFollower:
    """Hands the ledger's lines to ``sink`` from ``start`` to ``finish``, in a thread of its own."""

    def __init__(
        self,
        folder: Path,
        *,
        clock: Callable[[], float],
        sink: Callable[[Value], None],
        monotonic: Callable[[], float] = time.monotonic,
        most_lines: int = MOST_LINES,
    ) -> None:
        self._clock = clock
        self._sink = sink
        self._most_lines = most_lines
        self._reader = DispatchReader(folder, clock_offset_s=monotonic() - clock())
        self._ticker = Ticker("ledger", self.look, period_s=lambda: PERIOD_S, on_error=self._went_wrong)
        self._processes: dict[int, DispatchProcess] = {}
        self._totals: dict[int, DispatchTotals] = {}
        self._totals_s = 0.0
        self._handed_on = 0
        self._left_out = 0
        self._errors: dict[str, int] = {}

    def start(self) -> None:
        """The first look is made at once."""
        self._ticker.start()

    def finish(self, *, wait_s: float = LAST_WAIT_S) -> None:
        """A last look at what the probes still had to write, ``wait_s`` from now; says what could not be taken up."""
        self._ticker.stop()
        if not self._ticker.join(STOP_WITHIN_S):
            return
        time.sleep(wait_s)
        for _ in range(MOST_LAST_LOOKS):
            self.look()
            if not self._reader.behind:
                break
        self._hand_on_totals()
        for text in self._problems():
            self._hand_on(NoteEvent(t_s=self._clock(), source="ledger", text=text))

    def look(self) -> None:
        """One look at every file."""
        for line in self._reader.read():
            match line:
                case DispatchTotals():
                    self._totals[line.pid] = line
                case DispatchProcess():
                    if self._processes.get(line.pid) != line:
                        self._processes[line.pid] = line
                        self._hand_on(line)
                case _ if self._handed_on < self._most_lines:
                    self._handed_on += 1
                    self._hand_on(line)
                case _:
                    self._left_out += 1
        if self._clock() - self._totals_s >= TOTALS_EVERY_S:
            self._hand_on_totals()

    def _hand_on_totals(self) -> None:
        self._totals_s = self._clock()
        totals, self._totals = self._totals, {}
        for line in totals.values():
            self._hand_on(line)

    def _hand_on(self, value: Value) -> None:
        try:
            self._sink(value)
        except Exception as error:  # a full disk must not end the run
            self._went_wrong(error)

    def _went_wrong(self, error: Exception) -> None:
        name = type(error).__name__
        self._errors[name] = self._errors.get(name, 0) + 1

    def _problems(self) -> Iterator[str]:
        if self._reader.skipped:
            yield f"{_lines(self._reader.skipped)} of the probe's files could not be read and were left out"
        if self._left_out:
            yield f"{_lines(self._left_out)} came after the first {self._most_lines} and were left out"
        for name, count in self._errors.items():
            yield f"not everything of the ledger could be taken up: {name} ({count} times)"


def _lines(count: int) -> str:
    return "1 line" if count == 1 else f"{count} lines"
