"""What several texts are to each other: moments of the same processes, parts of one server, or good and bad. Pure."""

from collections.abc import Sequence
from typing import Literal

from sparkdiag.diagnosing.grouping import same_places, same_processes
from sparkdiag.evidence.dump import Pasted, ProcessDump

Order = Literal["compare", "over-time", "together"]


def order_of_texts(texts: Sequence[Pasted]) -> Order:
    """By pids and ranks alone. Two texts with no process in common that show the same ranks are of two servers."""
    if len(texts) < 2:
        return "together"
    if all(same_processes(texts[0].looks, other.looks) for other in texts[1:]):
        return "over-time"
    if len(texts) == 2 and texts[0].looks and texts[1].looks and same_places(texts[0].looks, texts[1].looks):
        return "compare"
    return "together"


def at_moments(texts: Sequence[Pasted], *, apart_s: float | None) -> list[Pasted]:
    """Each text a later look at the same processes; ``apart_s``, the seconds between two texts, counts where the dumps
    name no time."""
    return [
        text.model_copy(update={"looks": tuple(_at(look, moment * apart_s) for look in text.looks)})
        if apart_s is not None
        else text
        for moment, text in enumerate(texts)
    ]


def _at(look: ProcessDump, at_s: float) -> ProcessDump:
    return look if look.at_s is not None else look.model_copy(update={"at_s": at_s})
