"""A closer look: rounds of stacks over half a minute, ended early by anything that shows movement."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from sparkdiag.evidence.diagnosis import Diagnosis
from sparkdiag.evidence.stacks import StackSample
from sparkdiag.watching.lookout import Lookout
from sparkdiag.watching.patience import LONGEST_LOOK_S, SETTLED_FROM_S, Patience
from sparkdiag.watching.signs import traffic_of
from sparkdiag.watching.vigil_seams import Clock, Judge, StackSource


@dataclass(frozen=True, slots=True)
class CloserLook:
    """What a closer look gave."""

    outcome: Literal["judged", "moved", "slept"]
    """``moved``: a counter moved, or the requests were over; ``slept``: the clock jumped, so it says nothing."""
    samples: tuple[StackSample, ...]
    diagnosis: Diagnosis | None
    """None where there was no stack to judge, or no time to."""
    problem: str
    """Why there is no diagnosis; empty where there is one."""
    cpu_s: float


class CloserLooks:
    """Takes them."""

    def __init__(self, *, stacks: StackSource | None, judge: Judge, clock: Clock, patience: Patience) -> None:
        self._stacks = stacks
        self._judge = judge
        self._clock = clock
        self._patience = patience

    def take(
        self,
        lookout: Lookout,
        *,
        poll: Callable[[], None],
        earlier: tuple[StackSample, ...] = (),
        output: bool = False,
    ) -> CloserLook:
        """``poll`` asks the server meanwhile; ``earlier``: samples from just before that count too. ``output``: that
        counters move is known, only a token or the end of a request is movement."""
        if self._stacks is None:
            return CloserLook("judged", (), None, "no stacks can be taken", 0.0)
        began_s, stood = self._clock.now_s(), _moment(lookout, output=output)
        samples, cpu_s = list(earlier), 0.0
        diagnosis, problem = None, ""
        for offset_s in self._patience.rounds_s:
            slept = self._sleep_until(began_s + offset_s)
            if offset_s > 0:
                poll()
            if slept:
                return CloserLook("slept", tuple(samples), None, "the clock jumped", cpu_s)
            if _moment(lookout, output=output) != stood or (lookout.seen.told and not lookout.seen.in_flight):
                return CloserLook("moved", tuple(samples), None, "things moved", cpu_s)
            taken = self._stacks.look()
            samples += taken.samples
            cpu_s += taken.cpu_s
            if offset_s >= SETTLED_FROM_S:
                diagnosis, problem = self.judged(tuple(samples), lookout)
                if diagnosis is not None and diagnosis.finding in ("moving", "healthy"):
                    break
            if self._clock.now_s() - began_s > LONGEST_LOOK_S:
                break
        return CloserLook("judged", tuple(samples), diagnosis, problem, cpu_s)

    def judged(self, samples: tuple[StackSample, ...], lookout: Lookout) -> tuple[Diagnosis | None, str]:
        """The diagnosis, or why there is none: whatever goes wrong in it must not end a vigil of hours."""
        if not any(sample.usable for sample in samples):
            errors = sorted({sample.error for sample in samples if sample.error})
            return None, f"no stack could be taken: {errors[0]}" if errors else "no stack could be taken"
        try:
            return self._judge(samples, processes=lookout.processes, traffic=traffic_of(lookout.seen)), ""
        except Exception as error:  # a broken judge must not blind the vigil: what was seen is kept all the same
            return None, f"the stacks could not be judged: {type(error).__name__}"

    def _sleep_until(self, at_s: float) -> bool:
        """True when far more time went by than was asked for."""
        wait_s = at_s - self._clock.now_s()
        if wait_s > 0:
            self._clock.sleep(wait_s)
        return abs(self._clock.now_s() - at_s) > self._patience.gap_s


def _moment(lookout: Lookout, *, output: bool) -> int:
    return lookout.seen.outputs if output else lookout.seen.movements
