"""Stuck: nothing moved for as long as the scenario is patient. Every doubt means "not stuck"."""

from dataclasses import dataclass

from sparkdiag.evidence.stacks import Frame
from sparkdiag.evidence.timeline import MetricPoint
from sparkdiag.evidence.verdict import Baseline
from sparkdiag.judging.numbers import count, finite
from sparkdiag.judging.process_set import WAITING
from sparkdiag.judging.progress import CallPosition, layer_of, position_of
from sparkdiag.judging.scene import Scene
from sparkdiag.judging.signature import Look, collective_index, kind_of_state
from sparkdiag.scenario.model import LayerClock, Patience, Scenario

_UNSURE_PATIENCE = 3.0
"""Times ``stuck_s`` where a standstill could be one long GPU step, or KV use cannot be read."""


@dataclass(frozen=True, slots=True)
class Standstill:
    """Found stuck."""

    kind: str
    function: str
    role: str
    pid: int | None
    since_s: float
    until_s: float
    samples: int
    words: str
    sources_kv: bool


@dataclass(frozen=True, slots=True)
class _Stretch:
    """The latest run of equal looks of one worker."""

    looks: list[Look]
    position: CallPosition | None

    @property
    def last(self) -> Look:
        return self.looks[-1]

    def count_since(self, at_s: float) -> int:
        return sum(look.at_s >= at_s for look in self.looks)


def _frames_key(frames: tuple[Frame, ...], clock: LayerClock | None) -> tuple[object, ...]:
    """Functions, lines and every integer local: whatever loop is on the stack, its index is in here."""
    key: list[object] = []
    for frame in frames[:80]:
        key.append((frame.function, frame.line))
        key.extend((name, value) for name, value in frame.locals.items() if count(value) is not None)
        if clock is not None and frame.name == clock.function:
            key.append(layer_of(frame.locals.get(clock.variable)))
    return tuple(key)


def _standing_key(look: Look, clock: LayerClock | None) -> tuple[object, ...]:
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


def _stretch(looks: list[Look], clock: LayerClock | None, *, after_s: float) -> _Stretch | None:
    if not looks:
        return None
    key = _standing_key(looks[-1], clock)
    first = len(looks) - 1
    while first > 0 and looks[first - 1].at_s >= after_s and _standing_key(looks[first - 1], clock) == key:
        first -= 1
    return _Stretch(looks=looks[first:], position=position_of(looks[-1], clock))


def _last_move_s(points: list[MetricPoint]) -> float | None:
    """When KV use or a counter was last seen to change; None where it never was."""
    moved: float | None = None
    last: tuple[float | None, ...] | None = None
    for point in points:
        now: tuple[float | None, ...] = (point.kv_cache_usage, point.generation_tokens_total, point.iterations_total)
        if last is not None:
            if any(a is not None and b is not None and a != b for a, b in zip(last, now, strict=True)):
                moved = point.t_s
            now = tuple(b if b is not None else a for a, b in zip(last, now, strict=True))
        last = now
    return moved


def _read_flat(points: list[MetricPoint], *, since_s: float) -> bool:
    """Whether KV use was read at least twice since then (by when it no longer changed)."""
    return sum(finite(point.kv_cache_usage) is not None for point in points if point.t_s >= since_s) >= 2


def _queued(points: list[MetricPoint]) -> bool:
    last = points[-1] if points else None
    return last is not None and not (last.requests_running or 0) and (last.requests_waiting or 0) > 0


def _arrived(scene: Scene) -> bool:
    """Whether the engine was seen to have the request: until then the API server may still be reading a long prompt."""
    return any((point.requests_running or 0) >= 1 for point in scene.metrics) or any(
        look.state not in ("idle", "reply-wait") for looks in scene.looks.values() for look in looks
    )


def _needed_s(patience: Patience, *, blind: bool, unsure: bool, baseline: Baseline | None) -> float:
    needed = patience.stuck_s
    if blind:
        needed *= _UNSURE_PATIENCE
    if unsure:
        healthy = finite(baseline.seconds) if baseline else None
        needed = max(needed, healthy if healthy is not None else _UNSURE_PATIENCE * patience.stuck_s)
    return needed


def find_standstill(scene: Scene, scenario: Scenario, baseline: Baseline | None) -> Standstill | None:
    """The standstill that the latest looks of *every* worker agree on; None where one moved or could not be seen."""
    token = scene.last_token_s if scene.last_token_s is not None else scene.first_token_s
    moves = (scene.moment.sent_s, token, _last_move_s(scene.metrics))
    moved = max(move for move in moves if move is not None)
    stretches = [_stretch(scene.looks[worker.pid], scenario.layer_clock, after_s=moved) for worker in scene.workers]
    still = [stretch for stretch in stretches if stretch is not None]
    patience = scenario.patience
    if not still or len(still) < len(stretches) or _queued(scene.metrics):
        return None
    since = max(moved, *(stretch.looks[0].at_s for stretch in still))
    until = min(stretch.last.at_s for stretch in still)
    if any(stretch.count_since(since) < patience.min_samples for stretch in still):
        return None
    if scene.moment.now_s - until > patience.stuck_s:
        return None
    flat = _read_flat(scene.metrics, since_s=since)
    culprit = _culprit(still)
    if culprit.last.state in ("idle", "reply-wait") and not _arrived(scene):
        return None
    unsure = culprit.last.state in ("gpu-wait", "collective-wait", "jit-compile")
    if until - since < _needed_s(patience, blind=not flat, unsure=unsure, baseline=baseline):
        return None
    return _named(culprit, scene, since=since, until=until, kv=flat)


def _culprit(still: list[_Stretch]) -> _Stretch:
    """The one the others wait for: a suspect first, then whoever does not wait for a process, then a collective."""

    def rank(stretch: _Stretch) -> tuple[int, int]:
        state = stretch.last.state
        order = 0 if state == "suspect" else 1 if state not in WAITING else 2 if state == "collective-wait" else 3
        return order, stretch.last.pid

    return min(still, key=rank)


def _named(culprit: _Stretch, scene: Scene, *, since: float, until: float, kv: bool) -> Standstill:
    look = culprit.last
    role = next((worker.role for worker in scene.workers if worker.pid == look.pid), "worker")
    name = next((worker.name for worker in scene.workers if worker.pid == look.pid), str(look.pid))
    if look.sighting is not None:
        kind: str = look.sighting.signature.kind
        at = f" at {culprit.position.words}" if culprit.position and culprit.position.words else ""
        words = f"{name} stands in {look.function}{at}"
    elif look.state in ("idle", "reply-wait"):
        kind = "unknown"
        words = "every worker waits for its next call while the request is in flight: a lost message"
    else:
        kind = kind_of_state(look.state)
        words = f"{name} stands in {look.function} ({look.state})"
    return Standstill(
        kind=kind,
        function=look.function,
        role=role,
        pid=look.pid,
        since_s=since,
        until_s=until,
        samples=culprit.count_since(since),
        words=words,
        sources_kv=kv,
    )
