"""The scenario's facts, read from the frame of the entry function: ``chunk.local_total_seq_lens`` and the like."""

import operator
import sys
from types import FrameType
from typing import Any

from .attributes import MISSING, Attributes
from .summaries import Summaries

MOST_FRAMES = 64
CO_OPTIMIZED = 1
LARGEST_COUNTED = 64
DICT_OF_LOCALS = sys.version_info < (3, 13)


class Facts:
    def __init__(
        self,
        names: "list[str]",
        *,
        guards: "frozenset[str]",
        entries: "frozenset[str]",
        packages: "frozenset[str]",
        summaries: Summaries,
    ) -> None:
        self._facts = tuple((name, *name.split(".")) for name in names)
        self._locals = tuple(dict.fromkeys(fact[1] for fact in self._facts))
        self._all = operator.itemgetter(*self._locals) if len(self._locals) > 1 else None
        self._guards = guards
        self._entries = entries
        self._packages = packages
        self._summaries = summaries
        self._attributes = Attributes(summaries)

    def seen(self, frame: "FrameType | None") -> "dict[str, Any]":
        """Of the nearest call of an entry function, outwards from ``frame``."""
        entry = self._entry(frame) if self._facts else None
        if entry is None:
            return {}
        values = self._values(entry)
        found = {}
        for name, local, *attributes in self._facts:
            value = values.get(local, MISSING)
            for attribute in attributes:
                if value is not MISSING:
                    value = self._attributes.read(value, attribute)
            if value is not MISSING:
                found[name] = self._summaries.value(value, text=True)
        return found

    def counted(self, seen: "dict[str, Any]") -> "tuple[tuple[str, Any], ...]":
        """Those that a guard asks for, where they take few values."""
        found: list[tuple[str, Any]] = []
        for name in self._guards:
            value = seen.get(name, MISSING)
            if value is None or type(value) is bool:
                found.append((name, value))
            elif type(value) is int:
                small = -LARGEST_COUNTED <= value <= LARGEST_COUNTED
                found.append((name, value if small else f">{LARGEST_COUNTED}" if value > 0 else f"<-{LARGEST_COUNTED}"))
        return tuple(found)

    def _entry(self, frame: "FrameType | None") -> "FrameType | None":
        for _ in range(MOST_FRAMES):
            if frame is None:
                return None
            if frame.f_code.co_name in self._entries:
                module = frame.f_globals.get("__name__")
                if type(module) is str and module.partition(".")[0] in self._packages:
                    return frame
            frame = frame.f_back
        return None

    def _values(self, frame: FrameType) -> "dict[str, Any]":
        """The locals that are asked for. ``stacks.Sampler._locals`` tells what is left alone, and why it is emptied."""
        code = frame.f_code
        if frame.f_trace is not None or not code.co_flags & CO_OPTIMIZED or "locals" in code.co_names:
            return {}
        try:
            # In one step: the sampler's thread may empty the same dict.
            if self._all is not None:
                return dict(zip(self._locals, self._all(frame.f_locals)))  # noqa: B905
            return {self._locals[0]: frame.f_locals[self._locals[0]]}
        except KeyError:
            values: Any = frame.f_locals
            return {name: values[name] for name in self._locals if name in values}
        finally:
            if DICT_OF_LOCALS:
                frame.f_locals.clear()
