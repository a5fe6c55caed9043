"""What the stand-ins call: one record a call, made in the server's own threads, so without locks and in little time.

A call costs one or two microseconds when it is only counted; a line some ten times that (``budget.py`` says who has
one).
"""

import contextlib
import itertools
import sys
from _thread import get_ident
from collections import deque
from time import monotonic
from types import FrameType
from typing import Any

from . import budget, device
from .facts import Facts
from .summaries import Summaries, class_name

SLOW_S = 0.004
"""A call of this length always has its line, which costs 0.15 ms."""
MOST_WAITING = 50_000
"""Lines not yet written; twice a second they are."""
MOST_COUNTS = 500
"""Different answers under different facts, a thread; beyond that:"""
OTHER = "<other>"
MOST_NAMED = 32
"""Values of ``*args`` and ``**kwargs`` that are told."""

NOTHING_SEEN: Any = ({}, ())


class Call:
    """One call under way. Filled in by ``Recorded.begin``: an ``__init__`` would cost as much as all the rest."""

    __slots__ = (
        "arguments",
        "began",
        "budget",
        "capturing",
        "detailed",
        "function",
        "lane",
        "number",
        "outer",
        "seen",
        "synced",
        "told",
    )

    arguments: "tuple[Any, ...] | dict[str, Any]"
    """As they are told, where it has its line from the start: what the call does to them is not what it was given."""
    began: float
    budget: budget.Budget
    capturing: bool
    detailed: bool
    """Whether it will have its line."""
    function: "Recorded"
    lane: "Lane"
    number: int
    outer: "Call | None"
    seen: "tuple[dict[str, Any], tuple[tuple[str, Any], ...]] | None"
    """The facts, and those of them that are counted; None until they are read."""
    synced: bool
    told: bool
    """Whether its line was written while it went on."""


class Lane:
    """One thread of the server: its innermost call under way, and its counts."""

    __slots__ = ("counts", "ident", "inner", "unwritten")

    def __init__(self, ident: int) -> None:
        self.ident = ident
        self.inner: Call | None = None
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
        now = monotonic()
        self.on = True
        self.numbers = itertools.count(1)
        self.lanes: dict[int, Lane] = {}
        self.waiting: deque[tuple[Any, ...]] = deque()
        self.dropped = 0
        self.prefill = budget.Budget(at_once=budget.PREFILL_AT_ONCE, per_s=budget.PREFILL_PER_S, now_s=now)
        self.others = budget.Budget(at_once=budget.OTHERS_AT_ONCE, per_s=budget.OTHERS_PER_S, now_s=now)

    def lane(self, ident: int) -> Lane:
        """A thread that was not seen before."""
        return self.lanes.setdefault(ident, Lane(ident))

    def keep(self, line: "tuple[Any, ...]") -> None:
        """For the probe's thread to write."""
        if len(self.waiting) >= MOST_WAITING:
            self.dropped += 1
        else:
            self.waiting.append(line)

    def called(self) -> bool:
        """Whether any call was seen."""
        return any(lane.counts or lane.inner for lane in list(self.lanes.values()))


class Recorded:
    """One watched function. ``inner_names``: what ``*args`` stand for, where it passes them to a function it wraps."""

    def __init__(
        self,
        recorder: Recorder,
        *,
        name: str,
        module: str,
        role: str,
        parameters: "tuple[str, ...]",
        stars: "tuple[bool, bool]" = (False, False),
        inner_names: "tuple[str, ...]" = (),
    ) -> None:
        self.recorder = recorder
        self.name = name
        self.module = module
        self.role = role
        self.parameters = parameters
        self.stars = stars
        self.inner_names = inner_names
        self.sync = recorder.sync_wanted and role == "leaf"
        self.sized: int | None = None
        """Which argument tells how many rows a call has."""
        self.index = len(recorder.functions)
        recorder.functions.append(self)

    def begin(self, arguments: "tuple[Any, ...]") -> "Call | None":
        """Before the original runs."""
        recorder = self.recorder
        if not recorder.on or recorder.summaries.tracing():
            return None
        ident = get_ident()
        lane = recorder.lanes.get(ident)
        if lane is None:
            lane = recorder.lane(ident)
        call = Call()
        call.function = self
        call.arguments = arguments
        call.lane = lane
        call.number = next(recorder.numbers)
        call.told = False
        call.seen = None
        call.synced = self.sync and device.synchronized()
        call.outer = outer = lane.inner
        call.began = began = monotonic()
        if outer is not None:
            call.budget = own = outer.budget
            call.detailed = outer.detailed and own.left > budget.MOST_OVERDRAWN
        else:
            call.budget = own = recorder.prefill if self._many_rows(arguments) else recorder.others
            call.detailed = own.allows(began)
        if call.detailed:
            self._tell_now(call, arguments)
        lane.inner = call
        return call

    def returned(self, call: "Call | None", result: object) -> None:
        """After it. Nothing that goes wrong here is the server's concern."""
        if call is None:
            return
        try:
            if call.synced:
                call.synced = device.synchronized()
            took = monotonic() - call.began
            call.lane.inner = call.outer  # also past what an exception out of nowhere left there
            facts: tuple[Any, ...] = ()
            if call.detailed or took >= SLOW_S:
                facts = self._detail(call, took, result, None)
            else:
                call.lane.unwritten += 1
            call.arguments = ()
            answers = self.recorder.summaries.answers
            kind = type(result)
            answer = None
            if result is None or kind is bool:
                answer = answers[result]
            elif type(kind) is type:  # another metaclass may hash in its own way
                answer = answers.get(kind)
            self._count(call.lane, answer or self.recorder.summaries.answer(result), facts, took)
        except Exception:
            self.recorder.dropped += 1

    def raised(self, call: "Call | None") -> None:
        """Likewise, while its exception is being handled."""
        if call is None:
            return
        try:
            took = monotonic() - call.began
            call.lane.inner = call.outer
            call.synced = False
            kind = sys.exc_info()[0]
            name = class_name(kind) if kind is not None else "?"
            facts: tuple[Any, ...] = ()
            if call.detailed or took >= SLOW_S:
                facts = self._detail(call, took, None, name)
            else:
                call.lane.unwritten += 1
            call.arguments = ()
            self._count(call.lane, "raised " + name, facts, took)
        except Exception:
            self.recorder.dropped += 1

    def _count(self, lane: Lane, answer: str, facts: "tuple[Any, ...]", took: float) -> None:
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
        """Make its line, and see to those of the calls around it; the facts that are counted."""
        recorder = self.recorder
        call.budget.left -= 1
        outer = call.outer
        parent = outer.number if outer is not None else None
        while outer is not None and not outer.detailed:
            outer.detailed = True
            outer = outer.outer
        if call.seen is None:
            self._look(call, sys._getframe(2).f_back)  # outwards: returned or raised, the stand-in
        seen, counted = call.seen or NOTHING_SEEN
        answer = None if raised else recorder.summaries.value(result)
        arguments = self.told_arguments(call.arguments)
        recorder.keep(
            (call.number, parent, self, call.began, took, call.synced, call.capturing, arguments, answer, raised, seen)
        )
        return counted

    def _tell_now(self, call: Call, arguments: "tuple[Any, ...]") -> None:
        with contextlib.suppress(Exception):  # tried again, and counted as dropped, at the end
            call.arguments = self.told_arguments(arguments)
            self._look(call, sys._getframe(2).f_back)  # outwards: begin, the stand-in
            call.began = monotonic()

    def _look(self, call: Call, frame: "FrameType | None") -> None:
        """Read what is known around the call. Within a call that is not the entry's nothing of it can have changed."""
        outer, facts = call.outer, self.recorder.facts
        known = outer is not None and outer.seen is not None
        call.capturing = outer.capturing if known else device.capturing()  # type: ignore[union-attr]
        if self.role == "entry":
            call.seen = NOTHING_SEEN
        elif known and outer.function.role != "entry":  # type: ignore[union-attr]
            call.seen = outer.seen  # type: ignore[union-attr]
        else:
            seen = facts.seen(frame)
            call.seen = (seen, facts.counted(seen))

    def _many_rows(self, arguments: "tuple[Any, ...]") -> bool:
        where = self.sized
        if where is None:
            where = self.sized = self._where_sized(arguments)
        if where < 0:
            return False
        shape = self.recorder.summaries.shape(arguments[where])
        return bool(shape) and type(shape[0]) is int and shape[0] >= budget.MANY_ROWS

    def _where_sized(self, arguments: "tuple[Any, ...]") -> int:
        for where, value in enumerate(arguments):
            if self.recorder.summaries.shape(value):
                return where
        return -1

    def told_arguments(self, arguments: "tuple[Any, ...] | dict[str, Any]") -> "dict[str, Any]":
        """Summaries by parameter name; as they are where they were made before."""
        if isinstance(arguments, dict):
            return arguments
        value, texts = self.recorder.summaries.value, self.recorder.texts
        if not any(self.stars):
            return {name: value(one, text=name in texts) for name, one in zip(self.parameters, arguments)}  # noqa: B905
        return {name: value(one, text=name in texts) for name, one in self._spread(arguments)[:MOST_NAMED]}

    def _spread(self, arguments: "tuple[Any, ...]") -> "list[tuple[str, Any]]":
        """``*args`` under the names they have in the wrapped function, ``**kwargs`` under their own."""
        several, by_name = self.stars
        plain = len(self.parameters) - several - by_name
        found = list(zip(self.parameters[:plain], arguments))  # noqa: B905
        if several:
            names = self.inner_names[plain:]
            extra = arguments[plain]
            found += zip(names, extra)  # noqa: B905
            if len(extra) > len(names):
                found.append((self.parameters[plain], extra[len(names) :]))
        if by_name:
            found += arguments[-1].items()
        return found
