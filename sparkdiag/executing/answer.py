"""What the confined child said, as data: checked, bounded, made harmless, reduced to the kernels that were reached.

It comes from a process that ran a revision's code, so nothing in it is believed beyond "this revision says so".
"""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

from pydantic import Field, ValidationError

from sparkdiag.evidence.base import Value
from sparkdiag.evidence.route import ExecutedCall
from sparkdiag.executing.order import leaves
from sparkdiag.harmless.excerpt import one_line
from sparkdiag.scenario.model import Scenario

MOST_CALLS = 10_000
LONGEST = 500

Key = tuple[int, str, bool | None]
"""Job, function, ``clean_logits``."""


class Event(Value):
    """Something that ran, or (``declined``) a kernel that gave False and so did not do it."""

    kind: str = Field(max_length=20)
    name: str = Field(max_length=200)
    slot: str = Field(default="", max_length=200)
    """The module-level name that was called: ``_fp8_fp4_mqa_logits_impl``."""
    stack: tuple[str, ...] = Field(default=(), max_length=64)
    """The revision's functions, the outermost first."""
    at: tuple[str, int] | None = None


class Heard(Value):
    """How one call ended."""

    job: int
    function: str = Field(max_length=200)
    clean: bool | None = None
    began: bool = False
    events: tuple[Event, ...] = Field(default=(), max_length=1000)
    assumed: tuple[str, ...] = Field(default=(), max_length=200)
    unknown: str | None = None
    """What a decision hung on that the twin does not have."""
    broken: str | None = None
    """A file that does not parse, with its line."""
    raised: str | None = None
    at: str | None = None


class Ready(Value):
    python: str = Field(max_length=40)
    torch: str = Field(max_length=60)
    sandbox: tuple[str, ...] = Field(max_length=10)


class Answer:
    """Collects what is heard."""

    def __init__(self) -> None:
        self.ready: Ready | None = None
        self.no_torch = False
        self.calls: dict[Key, Heard] = {}

    def hear(self, said: Mapping[str, Any]) -> None:
        """One line of the child; what has not the form of an answer is dropped."""
        try:
            if "ready" in said and self.ready is None:
                self.ready = Ready.model_validate(said["ready"])
            elif "problem" in said:
                self.no_torch = self.no_torch or said["problem"] == "no torch"
            elif "call" in said and isinstance(said["call"], dict) and len(self.calls) < MOST_CALLS:
                fields = {name: value for name, value in said["call"].items() if name in Heard.model_fields}
                heard = Heard.model_validate(fields)
                self.calls[heard.job, heard.function, heard.clean] = heard
        except ValidationError:
            return

    @property
    def python(self) -> str:
        return "" if self.ready is None else shown(f"Python {self.ready.python}, torch {self.ready.torch}")

    @property
    def sandbox(self) -> tuple[str, ...]:
        return () if self.ready is None else tuple(shown(line) for line in self.ready.sandbox)

    def outcome(self, key: Key, why: str, *, scenario: Scenario) -> ExecutedCall | None:
        """How a call ended, not yet compared; None where it never began."""
        heard = self.calls.get(key)
        if heard is None:
            return None
        raised = heard.raised and (f"{heard.raised} ({heard.at})" if heard.at else heard.raised)
        if heard.began:
            raised = why or "the child ended before it did"
        elif heard.broken:
            raised = f"SyntaxError: {heard.broken}"
        kernels = frozenset({*scenario.route.kernels, *leaves(scenario)})
        reached = reached_by(heard.events, kernels=kernels, support=scenario.route.support)
        return ExecutedCall(
            function=key[1],
            clean_logits=key[2],
            reached=tuple(shown(name) for name in reached),
            raised=None if raised is None else shown(raised),
            because=shown(_why(heard, reached)),
        )


def _why(heard: Heard, reached: tuple[str, ...]) -> str:
    """What the answer hangs on beside the configuration, in words."""
    told = []
    if heard.unknown and not reached:
        told.append(f"not known, because it hangs on {heard.unknown}")
    elif heard.unknown:
        told.append(f"not followed further, which hangs on {heard.unknown}")
    if heard.assumed:
        told.append(f"assumed: {', '.join(heard.assumed)}")
    return "; ".join(told)


def reached_by(events: tuple[Event, ...], *, kernels: frozenset[str], support: tuple[str, ...]) -> tuple[str, ...]:
    """The kernels that ran, in order, each once. Pure.

    Of the scenario's kernels the outermost on the stack; else whose op it is. One that gave False before anything was
    computed did not run.
    """
    worked = {_outermost(event, kernels) for event in events if event.kind not in ("work", "declined")}
    declined = {event.name for event in events if event.kind == "declined"} - worked
    found: dict[str, None] = {}
    for event in events:
        kernel = _outermost(event, kernels)
        if event.kind == "declined" or kernel in declined:
            continue
        if kernel is not None:
            found[kernel] = None
        elif event.kind != "work" and not _supports(event, support):
            found[_own_name(event)] = None
    return tuple(found)


def _outermost(event: Event, kernels: frozenset[str]) -> str | None:
    names = (*event.stack, event.slot, event.name)
    return next((name for name in names if name in kernels), None)


def _supports(event: Event, support: tuple[str, ...]) -> bool:
    names = [event.name, event.name.rpartition(".")[2], event.slot, *event.stack]
    if event.stack and event.at is not None and event.at[0].endswith("ops.py"):
        names.append(f"ops.{event.stack[-1]}")  # as it is called where ``_custom_ops`` is imported as ``ops``
    return any(fnmatchcase(name, pattern) for name in names if name for pattern in support)


def _own_name(event: Event) -> str:
    if event.kind == "external":
        return event.slot or event.name
    if event.kind == "op" or not event.stack:
        return event.name
    return event.stack[-1]


def shown(text: str) -> str:
    """Text from the child as it may be shown."""
    return one_line(text, limit=LONGEST)
