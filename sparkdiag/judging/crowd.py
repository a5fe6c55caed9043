"""Who else had the machine while a request was under way: what was slow for want of CPU time is no stall."""

from collections.abc import Sequence
from dataclasses import dataclass

from sparkdiag.evidence.timeline import BUSY_SHARE, CpuPoint
from sparkdiag.judging.numbers import finite


@dataclass(frozen=True, slots=True)
class Crowd:
    """Other programs beside one request."""

    others_share: float = 0.0
    """Of the machine's CPU time, from sending on."""
    starved_until_s: float | None = None
    """The end of the last look at which others kept the machine busy while sparkdiag had the server yield to them."""
    words: str = ""
    """For people; empty where others hardly mattered."""


def crowd_of(points: Sequence[CpuPoint], *, sent_s: float, until_s: float) -> Crowd:
    """From the looks that ended while the request was under way. One look is enough to doubt what came before it."""
    known = [
        point
        for point in points
        if (t_s := finite(point.t_s)) is not None
        and sent_s <= t_s <= until_s
        and finite(point.others_share) is not None
        and (span_s := finite(point.span_s)) is not None
        and span_s > 0
    ]
    if not known:
        return Crowd()
    share = sum(point.others_share * point.span_s for point in known) / sum(point.span_s for point in known)
    starving = [point for point in known if point.starving]
    if starving:
        until = max(point.t_s for point in starving)
        most = max(point.others_share for point in starving)
        words = (
            f"other programs used up to {most:.0%} of the machine's CPU time while sparkdiag had the server yield to "
            f"them, until {until - sent_s:.1f} s after sending"
        )
        return Crowd(others_share=share, starved_until_s=until, words=words)
    words = f"other programs used {share:.0%} of the machine's CPU time meanwhile" if share > BUSY_SHARE else ""
    return Crowd(others_share=share, words=words)
