"""Loops found in the locals: integers that advance within one call, with nobody naming them. Pure.

Of nested loops the outer one is the progress and the inner one the fraction of its pass: ``k_start`` begins anew while
``head_start`` advances. Where calls are shorter than the time between two looks, a size that grows from one call to the
next (the keys of a prefill) is what can be seen of it.
"""

from collections.abc import Sequence
from itertools import pairwise

from sparkdiag.diagnosing.chains import Chain, Sample, chains_of
from sparkdiag.diagnosing.following import Followed, follow
from sparkdiag.diagnosing.loop_names import is_end, is_index, is_never, is_size, is_step
from sparkdiag.diagnosing.loop_rate import follows_a_clock, run_told, stretch_of
from sparkdiag.diagnosing.tracks import ENOUGH_BITS, Track, track_of
from sparkdiag.evidence.diagnosis import LoopFinding
from sparkdiag.evidence.dump import ProcessDump

MOST_FINDINGS = 6
_GROWS_FROM = 6
"""A size must have grown so often from call to call."""


def loops_in(looks: Sequence[ProcessDump]) -> tuple[LoopFinding, ...]:
    """Integer locals that advance, outermost loop first: within one call, and where there are none, or beside them, the
    size that grows from call to call. Only counters that rise are found."""
    return loops_of(follow(looks), pid=next((look.pid for look in looks if look.pid is not None), None))


def loops_of(followed: Sequence[Sequence[Followed]], *, pid: int | None) -> tuple[LoopFinding, ...]:
    """The same of threads that are followed already."""
    found: list[LoopFinding] = []
    for series in followed:
        chains = chains_of(series)
        for chain in chains:
            found += _of_call(chain, pid)
        found += _of_calls(chains, pid)
    return tuple(found[:MOST_FINDINGS])


def _of_call(chain: Chain, pid: int | None) -> list[LoopFinding]:
    segments = [segment for segment in chain.segments() if len(segment) > 1]
    if not segments:
        return []
    tracks = _tracks(chain, segments)
    samples = chain.samples
    advancing = [track for track in tracks if track.advances and not _is_clock(track, samples)]
    outermost = [t for t in advancing if not any(o is not t and _is_inner(t, o, samples) for o in advancing)]
    kept = _without_followers(outermost, samples)
    if not kept:
        return []
    # Both with ends of their own, and neither the other's multiple: a loop within a loop, in the order of their first
    # assignments.
    nests = kept[0].stop is not None
    outer = [kept[0], *[track for track in kept[1:] if not nests or track.stop is None]]
    known = {name for track in outer for name in (track.name, track.edge)}
    inner = [track for track in tracks if track.name not in known and _is_inner(track, outer[0], samples)]
    inner = _without_followers([*[track for track in kept if track not in outer], *inner], samples)
    nested = next((track for track in inner if track.stop is not None), None)
    return [
        *[_advancing(track, nested if track is outer[0] else None, chain, pid) for track in outer],
        *[_beginning_anew(track, outer[0], chain, pid) for track in inner],
    ]


def _tracks(chain: Chain, segments: Sequence[Sequence[int]]) -> list[Track]:
    """The locals that change within a call and may be an index, in the order of their first assignments."""
    moving, constants = _sorted_locals(chain, segments)
    tracks: dict[str, Track] = {}
    taken: list[str] = []
    for name in sorted(moving, key=lambda name: not is_index(name)):
        track = tracks[name] = track_of(name, chain, segments, constants, taken)
        if track.kin and track.stop is not None:
            taken.append(track.stop)
    return [tracks[name] for name in moving]


def _is_clock(track: Track, samples: Sequence[Sample]) -> bool:
    return track.stop is None and follows_a_clock(track, samples)


def _sorted_locals(chain: Chain, segments: Sequence[Sequence[int]]) -> tuple[list[str], dict[str, int]]:
    """(locals that change within calls and may be an index, those that do not change with their last values)."""
    moving: set[str] = set()
    last: dict[str, int] = {}
    for segment in segments:
        held = [chain.samples[index].values for index in segment]
        for place, (one, other) in enumerate(pairwise(held)):
            after = held[place + 2] if place + 2 < len(held) else None
            before = held[place - 1] if place else None
            for name, value in other.items():
                was = one.get(name, value)
                if value == was or name in moving:
                    continue
                # A value that is there once, between two others that are the same, was misread.
                back = (after is not None and after.get(name) == was) or (
                    before is not None and before.get(name) == value
                )
                if not back:
                    moving.add(name)
        last |= held[-1]
    constants = {name: value for name, value in last.items() if name not in moving}
    named = [name for name in last if name in moving]
    return [name for name in named if not is_never(name) and (is_index(name) or not is_size(name))], constants


def _without_followers(tracks: Sequence[Track], samples: Sequence[Sample]) -> list[Track]:
    """One of those that go together: the far edge of a pass goes with its start, a count of passes with their index.
    Beside one whose end is known, a name that says nothing is a count."""
    best = sorted(tracks, key=lambda track: (track.stop is None, not track.kin))
    kept: list[Track] = []
    for track in best:
        if any(track.name == other.edge or _go_together(track, other, samples) for other in kept):
            continue
        if kept and kept[0].stop is not None and track.stop is None and not is_index(track.name):
            continue
        if is_end(track.name) and any(track.stop == other.stop for other in kept):
            continue
        kept.append(track)
    return kept


def _go_together(one: Track, other: Track, samples: Sequence[Sample]) -> bool:
    """Whether one is the other times a number, plus a number."""
    both = [
        (samples[i].values[one.name], samples[i].values[other.name])
        for run in one.runs
        for i in run
        if other.name in samples[i].values
    ]
    if len(set(both)) < 3:
        return False
    (x0, y0), (x1, y1) = min(both), max(both)
    if x1 == x0 or y1 == y0:
        return False
    agree = sum(abs((y - y0) * (x1 - x0) - (x - x0) * (y1 - y0)) <= abs(x1 - x0) for x, y in both)
    return agree > 0.75 * len(both)


def _is_inner(track: Track, outer: Track, samples: Sequence[Sample]) -> bool:
    """Whether it begins anew just when ``outer`` advances."""
    rises = wrong = wraps = changes = 0
    for run in outer.runs:
        for before, after in pairwise(run):
            one, other = samples[before].values, samples[after].values
            if track.name not in one or track.name not in other:
                continue
            delta = other[track.name] - one[track.name]
            changes += delta != 0
            if other[outer.name] == one[outer.name]:
                rises += delta > 0
                wrong += delta < 0
            else:
                wraps += delta < 0
    if not changes or wrong > max(1, rises // 6) * (rises > 2):
        return False
    if not wraps and track.advances:
        return False
    return rises + track.prior_bits >= ENOUGH_BITS


def _advancing(track: Track, nested: Track | None, chain: Chain, pid: int | None) -> LoopFinding:
    told = run_told(track)
    stretch = stretch_of(track, nested, chain.samples, told)
    first, last = chain.samples[told[0]], chain.samples[told[-1]]
    stop = last.values.get(track.stop) if track.stop is not None else None
    left_s = None
    if stop is not None and stretch.per_s:
        left_s = max(0.0, stop - stretch.position) / stretch.per_s
    return LoopFinding(
        pid=pid,
        function=chain.function,
        variable=track.name,
        first=first.values[track.name],
        last=last.values[track.name],
        looks=len(told),
        over_s=stretch.over_s,
        per_s=stretch.per_s,
        stop_variable=track.stop if stop is not None else None,
        stop=stop,
        left_s=left_s,
    )


def _beginning_anew(track: Track, outer: Track, chain: Chain, pid: int | None) -> LoopFinding:
    told = [i for i in run_told(outer) if track.name in chain.samples[i].values] or list(track.runs[-1])
    first, last = chain.samples[told[0]], chain.samples[told[-1]]
    stop = last.values.get(track.stop) if track.stop is not None else None
    return LoopFinding(
        pid=pid,
        function=chain.function,
        variable=track.name,
        first=first.values[track.name],
        last=last.values[track.name],
        looks=len(told),
        stop_variable=track.stop if stop is not None else None,
        stop=stop,
        scope="pass",
        around=outer.name,
    )


def _of_calls(chains: Sequence[Chain], pid: int | None) -> list[LoopFinding]:
    """The size that grew most often from call to call without ever falling for good; the outermost of equals."""
    best: tuple[Track, Chain] | None = None
    for chain in chains:
        segments = chain.segments()
        if len(segments) <= _GROWS_FROM:
            continue
        firsts = [segment[0] for segment in segments]
        for name in chain.samples[firsts[-1]].values:
            if is_never(name) or is_step(name) or is_end(name) or not (is_size(name) or is_index(name)):
                continue
            track = track_of(name, chain, [firsts], {}, ())
            if _grows(track) and (best is None or track.rises > best[0].rises):
                best = track, chain
    if best is None:
        return []
    found = _advancing(best[0], None, best[1], pid)
    return [found.model_copy(update={"scope": "calls"})]


def _grows(track: Track) -> bool:
    looks = sum(len(run) for run in track.runs) + track.outliers
    return (
        track.again == 0
        and track.rises >= _GROWS_FROM
        and track.rises - 3 * track.outliers >= 4
        and (track.outliers <= looks // 6)
    )
