"""What the run folder's streams hold, and which value goes to which stream."""

from typing import Annotated, Literal, get_args

from pydantic import Field

from sparkdiag.evidence.base import Value
from sparkdiag.evidence.client import AnswerScored, PromptSent, ResponseEnd, TokenChunk
from sparkdiag.evidence.ledger import (
    DispatchCall,
    DispatchNotWrapped,
    DispatchProcess,
    DispatchTotals,
    DispatchWrapped,
)
from sparkdiag.evidence.processes import ServerExit
from sparkdiag.evidence.stacks import SamplingStats, StackSample
from sparkdiag.evidence.timeline import TimelineEvent

Stream = Literal["timeline", "stacks", "client", "dispatch"]
STREAMS: tuple[Stream, ...] = ("timeline", "stacks", "client")
"""The streams every run folder has from its start; ``dispatch`` appears with the probe's first record."""
EVERY_STREAM: tuple[Stream, ...] = get_args(Stream)


class SamplingTotals(Value):
    """``timeline.jsonl``: what sampling did and cost so far; the last one counts."""

    event: Literal["sampling"] = "sampling"
    stats: SamplingStats


class ServerEnded(Value):
    """``timeline.jsonl``: the server ended without being asked to."""

    event: Literal["server_exit"] = "server_exit"
    exit: ServerExit


TimelineLine = Annotated[TimelineEvent | SamplingTotals | ServerEnded, Field(discriminator="event")]
ClientLine = Annotated[PromptSent | TokenChunk | ResponseEnd | AnswerScored, Field(discriminator="event")]


def routed(value: Value) -> tuple[Stream, Value]:
    """The stream ``value`` belongs to, and the value as it is written there."""
    match value:
        case StackSample():
            return "stacks", value
        case PromptSent() | TokenChunk() | ResponseEnd() | AnswerScored():
            return "client", value
        case DispatchCall() | DispatchProcess() | DispatchWrapped() | DispatchNotWrapped() | DispatchTotals():
            return "dispatch", value
        case SamplingStats():
            return "timeline", SamplingTotals(stats=value)
        case ServerExit():
            return "timeline", ServerEnded(exit=value)
        case _:
            return "timeline", value
