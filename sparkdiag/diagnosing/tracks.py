"""One integer local over the looks at its function: how it runs, and how much that speaks for a loop. Pure.

Evidence is counted in bits. A rise where a rise or a fall was as likely is one bit; that a value lies below a size
whose name belongs to it, or goes in steps of a chunk size, is worth as much as a few rises; a fall that is not the
start of another call costs more than a rise brings. What that comes to in wrong findings is measured in
``tests/unit/diagnosing/test_diagnosing_loop_errors.py``.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

from sparkdiag.diagnosing.chains import Chain, Sample
from sparkdiag.diagnosing.loop_names import bound_for, is_end, is_index, is_step, same_stem

ENOUGH_BITS = 7.0
_INDEX_BITS, _STRANGE_BITS = 2.0, -2.0
_KIN_BITS, _BOUND_BITS, _STEP_BITS, _EDGE_BITS = 2.5, 1.0, 3.0, 2.0
_OUTLIER_BITS, _AGAIN_BITS = 3.0, 2.0
_MOST = 0.8
_RISES_A_CALL = 3
"""For each time that it begins anew it must have risen so often: else the looks are too far apart to tell, ..."""
_STEADY_RISES, _STEADY_SHARE, _STEADY_BITS, _STEADY_A_CALL = 8, 0.2, 3.0, 1.5
"""... unless it always rises at the same pace, which values of different calls would not."""


@dataclass(frozen=True, slots=True)
class Track:
    """``runs`` are indices of samples through which it never falls, each within what may be one call."""

    name: str
    runs: tuple[tuple[int, ...], ...]
    outliers: int
    again: int
    """How often it began anew within what looked like one call."""
    rises: int
    prior_bits: float
    stop: str | None = None
    kin: bool = False
    """Whether the names of index and ``stop`` belong together."""
    step: str | None = None
    edge: str | None = None
    """The local that runs ahead of it by one pass: ``k_end``."""
    steady: bool = False

    @property
    def bits(self) -> float:
        return (
            self.rises
            - _OUTLIER_BITS * self.outliers
            - _AGAIN_BITS * self.again
            + self.prior_bits
            + _STEADY_BITS * self.steady
        )

    @property
    def structured(self) -> bool:
        """Its frame says that it is a loop's index: a value misread once cannot make it one."""
        return self.kin and (self.step is not None or self.edge is not None)

    @property
    def advances(self) -> bool:
        looks = sum(len(run) for run in self.runs) + self.outliers
        if self.rises < 1 or self.bits < ENOUGH_BITS or self.outliers > (max(1, looks // 6) if looks > 3 else 0):
            return False
        a_call = _STEADY_A_CALL if self.steady else _RISES_A_CALL
        return self.rises >= a_call * self.again and (self.rises > 1 or self.structured)


def track_of(
    name: str, chain: Chain, segments: Sequence[Sequence[int]], constants: Mapping[str, int], taken: Collection[str]
) -> Track:
    """``constants``: locals of the frame that stay the same within its calls, with their last values."""
    samples = chain.samples
    held = [index for segment in segments for index in segment if name in samples[index].values]
    values = sorted(samples[index].values[name] for index in held)
    highest = values[int(_MOST * (len(values) - 1))] if values else 0
    bound = bound_for(name, highest, constants, taken)
    stop = bound[0] if bound else None
    track = Track(
        name=name, runs=(), outliers=0, again=0, rises=0, prior_bits=0.0, stop=stop, kin=bool(bound and bound[1])
    )
    runs: list[tuple[int, ...]] = []
    outliers = again = rises = 0
    for segment in segments:
        likely = [index for index in segment if _plausible(samples[index], name, stop)]
        outliers += sum(name in samples[index].values for index in segment) - len(likely)
        found, dropped = _runs([(index, samples[index].values[name]) for index in likely])
        runs += found
        outliers += dropped
        again += max(0, len(found) - 1)
        rises += sum(samples[b].values[name] > samples[a].values[name] for run in found for a, b in pairwise(run))
    kept = [index for run in runs for index in run]
    step = _step_for(name, samples, kept, constants)
    edge = _edge_for(name, samples, kept)
    return replace(
        track,
        runs=tuple(runs),
        outliers=outliers,
        again=again,
        rises=rises,
        step=step,
        edge=edge,
        steady=_is_steady(name, samples, runs),
        prior_bits=_prior(name, track, step, edge),
    )


def _is_steady(name: str, samples: Sequence[Sample], runs: Sequence[Sequence[int]]) -> bool:
    """Whether most rises are of one pace."""
    paces = []
    for run in runs:
        for a, b in pairwise(run):
            before, after = samples[a], samples[b]
            if before.at_s is not None and after.at_s is not None and after.at_s > before.at_s:
                paces.append((after.values[name] - before.values[name]) / (after.at_s - before.at_s))
    rising = [pace for pace in paces if pace > 0]
    if len(rising) < _STEADY_RISES:
        return False
    middle = median(rising)
    return median(abs(pace - middle) for pace in rising) <= _STEADY_SHARE * middle


def _prior(name: str, track: Track, step: str | None, edge: str | None) -> float:
    bits = _INDEX_BITS if is_index(name) else _STRANGE_BITS
    if track.stop is not None:
        bits += _KIN_BITS if track.kin else _BOUND_BITS
    return bits + (_STEP_BITS if step else 0.0) + (_EDGE_BITS if edge else 0.0)


def _plausible(sample: Sample, name: str, stop: str | None) -> bool:
    value = sample.values.get(name)
    if value is None or value < 0:
        return False
    return stop is None or value <= sample.values.get(stop, value)


def _runs(points: Sequence[tuple[int, int]]) -> tuple[list[tuple[int, ...]], int]:
    """(runs that never fall, values left out). A value that stands out alone, up or down, between two that fit each
    other was misread; a fall that stays is the start of another call."""
    runs: list[list[tuple[int, int]]] = []
    dropped = 0
    for place, (index, value) in enumerate(points):
        following = points[place + 1][1] if place + 1 < len(points) else None
        if not runs or value >= runs[-1][-1][1]:
            runs.append([(index, value)]) if not runs else runs[-1].append((index, value))
            continue
        run = runs[-1]
        if len(run) > 1 and value >= run[-2][1] and _outstanding(run, value):
            run[-1] = (index, value)
            dropped += 1
        elif following is not None and following >= run[-1][1]:
            dropped += 1
        else:
            runs.append([(index, value)])
    return [tuple([index for index, _ in run]) for run in runs], dropped


def _outstanding(run: Sequence[tuple[int, int]], value: int) -> bool:
    """Whether the run's last value is farther above its neighbours than they are from each other."""
    return run[-1][1] - value >= value - run[-2][1]


def _step_for(name: str, samples: Sequence[Sample], kept: Sequence[int], constants: Mapping[str, int]) -> str | None:
    """The local in whose multiples it goes."""
    for other in constants:
        if other == name or not is_step(other) or not same_stem(name, other):
            continue
        pairs = [(samples[i].values[name], samples[i].values.get(other, 0)) for i in kept]
        told = [value % step == 0 for value, step in pairs if step > 1 and value]
        if len(told) > 1 and sum(told) >= _MOST * len(told):
            return other
    return None


def _edge_for(name: str, samples: Sequence[Sample], kept: Sequence[int]) -> str | None:
    """The local that is ahead of it by the same distance in most looks."""
    if is_end(name):
        return None
    for other in samples[kept[-1]].values if kept else ():
        if not is_end(other) or not same_stem(name, other):
            continue
        ahead = [samples[i].values[other] - samples[i].values[name] for i in kept if other in samples[i].values]
        distance, times = Counter(ahead).most_common(1)[0] if ahead else (0, 0)
        if len(ahead) > 1 and distance > 0 and 2 * times > len(ahead):
            return other
    return None
