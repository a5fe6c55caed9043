"""What the stand-ins call: one record a call, made in the server's own threads, so without locks and in little time.

A call costs about a microsecond when it is only counted. A line is made of it when it took long, or when few lines
were made lately: any prefill has a line for every call, a decode at thousands of calls a second has not.
"""

import itertools
import sys
from _thread import get_ident
from collections import deque
from time import monotonic
from typing import Any

from .facts import Facts
from .summaries import Summaries, class_name

SLOW_S = 0.002
"""A call of this length always gets its line: making it is below 1 % of that."""
LINES_AT_ONCE = 20_000.0
"""Lines beyond the rate below: the incident's whole prefill, 58 chunks of 61 layers, however fast it is."""
LINES_PER_S = 400.0
MOST_OVERDRAWN = -2_000.0
MOST_WAITING = 50_000
"""Lines not yet written; twice a second they are."""
MOST_COUNTS = 500
"""Different answers under different facts, a thread; beyond that:"""
OTHER = "<other>"


class Call:
    """One call under way."""

    __slots__ = (
        "arguments",
        "began",
        "capturing",
        "detailed",
        "function",
        "number",
        "parent",
        "synced",
        "told",
        "under",
    )

    arguments: "tuple[Any, ...]"
    began: float
    capturing: bool
    detailed: bool
    function: "Recorded"
    number: int
    parent: "int | None"
    synced: bool
    told: bool
    under: "Lane"


class Lane:
    """One thread of the server: its calls under way, innermost last, and its counts."""

    __slots__ = ("counts", "ident", "stack", "unwritten")

    def __init__(self, ident: int) -> None:
        self.ident = ident
        self.stack: list[Call] = []
        self.counts: dict[tuple[int, str, tuple[Any, ...]], list[float]] = {}
        self.unwritten = 0


class Recorder:
    """Everything recorded in this process."""

    def __init__(self, *, facts: Facts, summaries: Summaries, texts: "frozenset[str]", synced: bool = False) -> None:
        self.facts = facts
        self.summaries = summaries
        self.texts = texts
        self.sync_wanted = synced
        self.functions: list[Recorded] = []
        self.start()

    def start(self) -> None:
        """From nothing: at first, and in a forked child, which has none of its parent's threads."""
        self.on = True
        self.numbers = itertools.count(1)
        self.lanes: dict[int, Lane] = {}
        self.waiting: deque[tuple[Any, ...]] = deque()
        self.dropped = 0
        self.tokens = LINES_AT_ONCE
        self.refilled = monotonic()

    def may_detail(self, now: float) -> bool:
        """Whether an outermost call may have a line, and those within it."""
        tokens = min(LINES_AT_ONCE, self.tokens + (now - self.refilled) * LINES_PER_S)
        self.refilled = now
        self.tokens = tokens
        return tokens > 0

    def keep(self, line: "tuple[Any, ...]") -> None:
        """For the probe's thread to write."""
        if len(self.waiting) >= MOST_WAITING:
            self.dropped += 1
        else:
            self.waiting.append(line)

    def called(self) -> bool:
        """Whether any call was seen."""
        return any(lane.counts or lane.stack for lane in list(self.lanes.values()))


class Recorded:
    """One watched function."""

    def __init__(self, recorder: Recorder, *, name: str, module: str, role: str, parameters: "tuple[str, ...]") -> None:
        self.recorder = recorder
        self.name = name
        self.module = module
        self.role = role
        self.parameters = parameters
        self.sync = recorder.sync_wanted and role == "leaf"
        self.index = len(recorder.functions)
        recorder.functions.append(self)

    def begin(self, arguments: "tuple[Any, ...]") -> "Call | None":
        """Before the original runs."""
        recorder = self.recorder
        if not recorder.on:
            return None
        ident = get_ident()
        lane = recorder.lanes.get(ident)
        if lane is None:
            lane = recorder.lanes[ident] = Lane(ident)
        call = Call()
        call.function = self
        call.arguments = arguments
        call.under = lane
        call.number = next(recorder.numbers)
        call.told = call.synced = call.capturing = False
        stack = lane.stack
        if self.sync:
            call.synced = _synchronized()
        call.began = began = monotonic()
        if stack:
            outer = stack[-1]
            call.parent = outer.number
            call.detailed = outer.detailed and recorder.tokens > MOST_OVERDRAWN
        else:
            call.parent = None
            call.detailed = recorder.may_detail(began)
        stack.append(call)
        return call

    def returned(self, call: "Call | None", result: object) -> None:
        """After it. Nothing that goes wrong here is the server's concern."""
        if call is None:
            return
        try:
            if call.synced:
                call.synced = _synchronized()
            took = monotonic() - call.began
            self._ended(call, took, self.recorder.summaries.answer(result), result, None)
        except Exception:
            self.recorder.dropped += 1

    def raised(self, call: "Call | None") -> None:
        """Likewise, while its exception is being handled."""
        if call is None:
            return
        try:
            took = monotonic() - call.began
            call.synced = False
            kind = sys.exc_info()[0]
            name = class_name(kind) if kind is not None else "?"
            self._ended(call, took, "raised " + name, None, name)
        except Exception:
            self.recorder.dropped += 1

    def _ended(self, call: Call, took: float, answer: str, result: object, raised: "str | None") -> None:
        lane = call.under
        stack = lane.stack
        while stack and stack.pop() is not call:  # what an exception out of nowhere left there
            pass
        facts: tuple[Any, ...] = ()
        if call.detailed or took >= SLOW_S:
            facts = self._detail(call, took, result, raised)
        else:
            lane.unwritten += 1
        call.arguments = ()
        counts = lane.counts
        key = (self.index, answer, facts)
        count = counts.get(key)
        if count is None:
            if len(counts) >= MOST_COUNTS:
                key = (self.index, OTHER, ())
            count = counts.setdefault(key, [0, 0.0])
        count[0] += 1
        count[1] += took

    def _detail(self, call: Call, took: float, result: object, raised: "str | None") -> "tuple[Any, ...]":
        """Make its line, and that of the calls around it; the facts that are counted."""
        recorder = self.recorder
        recorder.tokens -= 1
        for outer in call.under.stack:
            outer.detailed = True
        summaries = recorder.summaries
        seen = {} if self.role == "entry" else recorder.facts.seen(sys._getframe(3).f_back)
        answer = None if raised else summaries.value(result)
        recorder.keep(
            (
                call.number,
                call.parent,
                self,
                call.began,
                took,
                call.synced,
                _capturing(),
                self.told_arguments(call),
                answer,
                raised,
                seen,
            )
        )
        return recorder.facts.counted(seen)

    def told_arguments(self, call: Call) -> "dict[str, Any]":
        """Summaries by parameter name."""
        value, texts = self.recorder.summaries.value, self.recorder.texts
        return {name: value(one, text=name in texts) for name, one in zip(self.parameters, call.arguments)}  # noqa: B905


def _cuda() -> "dict[str, Any] | None":
    """``torch.cuda``, where the server has initialised it."""
    torch = sys.modules.get("torch.cuda")
    if torch is None:
        return None
    names = vars(torch)
    return names if names.get("_initialized") is True else None


def _capturing() -> bool:
    try:
        cuda = _cuda()
        return cuda is not None and bool(cuda["is_current_stream_capturing"]())
    except Exception:
        return False


def _synchronized() -> bool:
    """Wait for the device, if that may be done now."""
    try:
        cuda = _cuda()
        if cuda is None or cuda["is_current_stream_capturing"]():
            return False
        cuda["synchronize"]()
    except Exception:
        return False
    return True
