"""The dispatch ledger of this process: what is set up at the start, and what the probe's thread does twice a second."""

import contextlib
import json
import os
import sys
import threading
from time import monotonic
from typing import Any

from . import identity
from .calls import Call, Recorded, Recorder
from .facts import Facts
from .imports import Finder
from .platforms import platform_facts
from .summaries import Summaries
from .wrapping import Wrapper
from .writing import LineFile, encode

OPEN_S = 1.0
"""A call that goes on for longer is written before it has returned."""
TOTALS_EVERY_S = 5.0
TOTALS_SHARE = 0.01
"""Of the process's age: counts of a long life are written less often."""
SCAN_EVERY_S = 2.0
SCAN_LATER_EVERY_S = 20.0
EARLY_S = 120.0
NEVER_FOUND_AFTER_S = 2.0
EXIT_WAIT_S = 1.0


class Ledger:
    def __init__(self, folder: str, settings: "dict[str, Any]", *, texts: "frozenset[str]", synced: bool) -> None:
        roles = {str(name): str(role) for name, role in settings["functions"].items()}
        packages = frozenset(map(str, settings["packages"]))
        names = [str(name) for name in settings["facts"]]
        summaries = Summaries()
        facts = Facts(
            names,
            guards=frozenset(map(str, settings["guards"])),
            entries=frozenset(name for name, role in roles.items() if role == "entry"),
            packages=packages,
            summaries=summaries,
        )
        self.folder = folder
        self.recorder = Recorder(facts=facts, summaries=summaries, texts=texts | frozenset(names), synced=synced)
        self.wrapper = Wrapper(self.recorder, roles=roles, packages=packages)
        self.finder = Finder(packages, self.wrapper.done)
        self._begin()

    def _begin(self) -> None:
        self.file = LineFile(self.folder)
        self.heads: dict[int, str] = {}
        self.began = self.scanned = monotonic()
        self.first_call_s: float | None = None
        self.told_wrapped = self.written = self.lost = 0
        self.told_refused: set[tuple[str, str]] = set()
        self.told_never_found = False
        self.told_process: dict[str, Any] | None = None
        self.told_totals: tuple[Any, ...] = ()
        self.totals_s = 0.0
        self.platform: dict[str, Any] = {}
        self.busy = threading.Lock()

    def start(self) -> None:
        """Wrap what is there, and hear of what comes."""
        sys.meta_path.insert(0, self.finder)
        self.wrapper.scan()

    def forked(self) -> None:
        """In a forked child: the functions stay wrapped, everything else is new."""
        self.recorder.start()
        self._begin()

    def stop(self) -> None:
        """Record nothing from here on."""
        self.recorder.on = False

    def at_exit(self) -> None:
        self.stop()
        if self.busy.acquire(timeout=EXIT_WAIT_S):
            try:
                self._write(last=True)
            finally:
                self.busy.release()

    def tend(self) -> None:
        """Write what has come; now and then look for functions that no import told of."""
        now = monotonic()
        if now - self.scanned > (SCAN_EVERY_S if now - self.began < EARLY_S else SCAN_LATER_EVERY_S):
            self.scanned = now
            self.wrapper.scan()
        if self.busy.acquire(blocking=False):
            try:
                self._write(last=False)
            finally:
                self.busy.release()

    def _write(self, *, last: bool) -> None:
        now = monotonic()
        # Before the finished ones: a call found open here can have its other line only among those.
        opened = [] if last else self._open_calls(now)
        finished = [self.recorder.waiting.popleft() for _ in range(len(self.recorder.waiting))]
        if self.first_call_s is None and self.recorder.called():
            self.first_call_s = now
        lines = self._news(now)
        process = self._process() if lines or opened or finished or self.told_process else None
        if process is not None and process != self.told_process:
            lines.insert(0, process)
            self.told_process = process
        calls = [self._line(one) for one in finished]
        written = self.file.append([encode(line) for line in lines] + opened + calls) if lines or opened or calls else 0
        done = max(0, written - len(lines) - len(opened))
        self.written += done
        self.lost += len(calls) - done
        self._totals(now, last=last)

    def _news(self, now: float) -> "list[dict[str, Any]]":
        pid = os.getpid()
        lines: list[dict[str, Any]] = []
        for recorded, line in self.wrapper.wrapped[self.told_wrapped :]:
            lines.append(
                {"event": "wrapped", "pid": pid, "function": recorded.name, "module": recorded.module, "line": line}
            )
            self.told_wrapped += 1
        for key, why in list(self.wrapper.refused.items()):
            if key not in self.told_refused:
                self.told_refused.add(key)
                lines.append({"event": "not_wrapped", "pid": pid, "function": key[0], "module": key[1], "reason": why})
        if not self.told_never_found and self.first_call_s and now - self.first_call_s > NEVER_FOUND_AFTER_S:
            self.told_never_found = True
            why = "no module imported so far has it"
            lines += [
                {"event": "not_wrapped", "pid": pid, "function": name, "module": None, "reason": why}
                for name in self.wrapper.never_found()
            ]
        return lines

    def _open_calls(self, now: float) -> "list[str]":
        lines = []
        for lane in list(self.recorder.lanes.values()):
            call = lane.inner
            while call is not None:
                if not call.told and now - call.began > OPEN_S:
                    call.told = True
                    with contextlib.suppress(Exception):
                        lines.append(self._open_line(call, thread=lane.ident))
                call = call.outer
        return lines

    def _open_line(self, call: Call, *, thread: int) -> str:
        function = call.function
        seen = {}
        if function.role != "entry":
            seen = self.recorder.facts.seen(sys._current_frames().get(thread))
        arguments = function.told_arguments(call.arguments)
        parent = call.outer.number if call.outer is not None else None
        return self._line((call.number, parent, function, call.began, None, False, False, arguments, None, None, seen))

    def _line(self, call: "tuple[Any, ...]") -> str:
        """Put together from text: thousands of lines are made beside a prefill."""
        number, parent, function, began, took, synced, capturing, arguments, returned, raised, seen = call
        took_s = "null" if took is None else f"{took:.7f}"
        plain = f'"number":{number},"began_s":{began:.6f},"took_s":{took_s},'
        rest = {"arguments": arguments, "seen": seen, "returned": returned}
        # What is so by default is not written.
        for name, value in (("parent", parent), ("raised", raised)):
            if value is not None:
                rest[name] = value
        for name, value in (("synced", synced), ("capturing", capturing)):
            if value:
                rest[name] = value
        return self._head(function) + plain + encode(rest)[1:]

    def _head(self, function: Recorded) -> str:
        head = self.heads.get(function.index)
        if head is None:
            said = {"event": "call", "pid": os.getpid(), "function": function.name, "module": function.module}
            head = self.heads[function.index] = encode(said)[:-1] + ","
        return head

    def _process(self) -> "dict[str, Any]":
        if self.first_call_s is not None and not self.platform:
            with contextlib.suppress(Exception):
                self.platform = platform_facts()
        return {"event": "process", "pid": os.getpid(), **identity.ranks(), "platform": self.platform}

    def _totals(self, now: float, *, last: bool) -> None:
        age_s = now - self.began
        if not last and now - self.totals_s < max(TOTALS_EVERY_S, age_s * TOTALS_SHARE):
            return
        counts: dict[tuple[int, str, tuple[Any, ...]], list[float]] = {}
        unwritten = 0
        for lane in list(self.recorder.lanes.values()):
            unwritten += lane.unwritten
            for key, (calls, took) in list(lane.counts.items()):
                count = counts.setdefault(key, [0, 0.0])
                count[0] += calls
                count[1] += took
        told = (sum(calls for calls, _ in counts.values()), unwritten)
        if not counts or told == self.told_totals:
            return
        self.totals_s = now
        line = {
            "event": "totals",
            "pid": os.getpid(),
            "counts": [self._count(key, calls=calls, took=took) for key, (calls, took) in counts.items()],
            "written": self.written,
            "dropped": unwritten + self.lost + self.recorder.dropped,
        }
        if self.file.append([encode(line)], totals=True):
            self.told_totals = told

    def _count(self, key: "tuple[int, str, tuple[Any, ...]]", *, calls: float, took: float) -> "dict[str, Any]":
        function = self.recorder.functions[key[0]]
        return {
            "function": function.name,
            "module": function.module,
            "answer": key[1],
            "facts": dict(key[2]),
            "calls": int(calls),
            "took_s": round(took, 6),
        }


def from_environment(folder: str, *, texts: "frozenset[str]") -> "Ledger | None":
    """None where no ledger is asked for."""
    with contextlib.suppress(Exception):
        settings = json.loads(os.environ.get("SPARKDIAG_PROBE_LEDGER", ""))
        return Ledger(folder, settings, texts=texts, synced=os.environ.get("SPARKDIAG_PROBE_SYNC") == "1")
    return None
