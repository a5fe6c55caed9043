"""The newest looks at one worker that are all the same: how long it has stood where it stands."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from sparkdiag.evidence.stacks import Frame
from sparkdiag.judging.numbers import count
from sparkdiag.judging.progress import layer_of, position_of
from sparkdiag.judging.signature import Look, collective_index
from sparkdiag.scenario.model import LayerClock

_MOST_FRAMES = 80


@dataclass(frozen=True, slots=True)
class Stretch:
    """Equal looks in a row, the newest last."""

    key: tuple[object, ...]
    last: Look
    times_s: tuple[float, ...]
    """When each of them was."""

    def from_s(self, after_s: float) -> float:
        """The first of them that is not before ``after_s``; the last one where all are."""
        place = bisect_left(self.times_s, after_s)
        return self.times_s[min(place, len(self.times_s) - 1)]

    def count_since(self, at_s: float) -> int:
        """How many were not before ``at_s``."""
        return len(self.times_s) - bisect_left(self.times_s, at_s)


def stretch_after(
    before: Stretch | None, looks: Sequence[Look], clock: LayerClock | None, *, rises_s: Sequence[float]
) -> tuple[Stretch | None, float]:
    """(the stretch with more looks in order of time, seconds of the longest stand that ended with them). A stand is
    broken where KV use rose (``rises_s``), and time spent waiting for a call to begin is none."""
    if not looks:
        return before, 0.0
    key, last, times = (before.key, before.last, list(before.times_s)) if before else ((), looks[0], [])
    longest_s = 0.0
    for look in looks:
        here = standing_key(look, clock)
        if here != key:
            if times and last.state not in ("idle", "reply-wait"):
                longest_s = max(longest_s, _longest_gap_s(times[0], times[-1], rises_s))
            key, times = here, []
        last = look
        times.append(look.at_s)
    return Stretch(key=key, last=last, times_s=tuple(times)), longest_s


def _longest_gap_s(first_s: float, last_s: float, rises_s: Sequence[float]) -> float:
    broken = rises_s[bisect_right(rises_s, first_s) : bisect_left(rises_s, last_s)]
    return max(after - before for before, after in pairwise([first_s, *broken, last_s]))


def standing_key(look: Look, clock: LayerClock | None) -> tuple[object, ...]:
    """Equal for looks between which nothing is known to have moved."""
    if look.state in ("idle", "reply-wait"):
        return (look.state,)
    if look.sighting is not None:
        position = position_of(look, clock)
        if position is not None and position.total > 1:
            # The callers too: a chunk's rows may be split into equal calls, told apart by the caller's index alone.
            frames = look.sighting.thread.frames
            callers = frames[len(frames) - look.sighting.depth :]
            return ("call", position.call, position.passed, _frames_key(callers, clock))
        return ("frames", _frames_key(look.sighting.thread.frames, clock))
    main = look.sample.main_thread
    frames = main.frames if main else ()
    # What spins inside a collective changes its line; what calls it does not.
    inner = collective_index(frames) or 0
    return (look.state, _frames_key(frames[inner:], clock))


def _frames_key(frames: tuple[Frame, ...], clock: LayerClock | None) -> tuple[object, ...]:
    """Functions, lines and every integer local: whatever loop is on the stack, its index is in here."""
    key: list[object] = []
    for frame in frames[:_MOST_FRAMES]:
        key.append((frame.function, frame.line))
        key.extend((name, value) for name, value in frame.locals.items() if count(value) is not None)
        if clock is not None and frame.name == clock.function:
            key.append(layer_of(frame.locals.get(clock.variable)))
    return tuple(key)
