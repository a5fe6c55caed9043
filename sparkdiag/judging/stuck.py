"""Stuck: nothing moved for as long as the scenario is patient. Every doubt means "not stuck"."""

from dataclasses import dataclass
from itertools import pairwise

from sparkdiag.evidence.verdict import Baseline
from sparkdiag.judging.numbers import finite
from sparkdiag.judging.process_set import WAITING
from sparkdiag.judging.progress import position_of
from sparkdiag.judging.scene import Scene
from sparkdiag.judging.signature import kind_of_state
from sparkdiag.judging.stretch import Stretch
from sparkdiag.scenario.model import Scenario

_UNSURE_PATIENCE = 3.0
"""Times ``stuck_s`` where a standstill could be one long pass or GPU step, or KV use cannot be read."""
_TIMES_SEEN = 3.0
"""Times the longest stand that was seen to end."""


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
    maybe_slow: bool
    """True where nothing was seen to advance since the prompt was sent: one very long pass would look the same."""


def _needed_s(scene: Scene, scenario: Scenario, culprit: Stretch, *, blind: bool, baseline: Baseline | None) -> float:
    """How long a stand must last before it is one.

    A single pass of a suspect's loop, or a single GPU step, may take longer than ``stuck_s`` on a slow device. What was
    seen to pass between two advances of this very run is the measure; where nothing ever advanced there is none.
    """
    patience, state = scenario.patience, culprit.last.state
    needed = patience.stuck_s * (_UNSURE_PATIENCE if blind else 1.0)
    if state in ("idle", "reply-wait"):
        return needed
    if state in ("gpu-wait", "collective-wait", "jit-compile"):
        healthy = finite(baseline.seconds) if baseline else None
        needed = max(needed, healthy if healthy is not None else _UNSURE_PATIENCE * patience.stuck_s)
    if scene.moved_s is None:
        needed = max(needed, _UNSURE_PATIENCE * patience.stuck_s)
    return max(needed, _TIMES_SEEN * _longest_quiet_s(scene, scenario, culprit))


def _longest_quiet_s(scene: Scene, scenario: Scenario, culprit: Stretch) -> float:
    """The longest stand that was seen to end. A loop that is seen to advance is the finest clock; else a chunk may
    pass without any sign, from one rise of KV use to the next."""
    position = position_of(culprit.last, scenario.layer_clock)
    if position is not None and position.total > 1 and scene.advanced_s is not None:
        return scene.longest_still_s
    rises = [rise.seen_s for rise in scene.meters.rises]
    return max([scene.longest_still_s, *(after - before for before, after in pairwise(rises))])


def find_standstill(scene: Scene, scenario: Scenario, baseline: Baseline | None) -> Standstill | None:
    """The standstill that the latest looks of *every* worker agree on; None where one moved or could not be seen."""
    token = scene.last_token_s if scene.last_token_s is not None else scene.first_token_s
    moves = (scene.counts_from_s, token, scene.meters.moved_s)
    moved = max(move for move in moves if move is not None)
    still = [seen.stretch for seen in scene.seen if seen.stretch is not None]
    patience = scenario.patience
    if not still or len(still) < len(scene.workers) or scene.meters.queued:
        return None
    since = max(moved, *(stretch.from_s(moved) for stretch in still))
    until = min(stretch.last.at_s for stretch in still)
    if any(stretch.count_since(since) < patience.min_samples for stretch in still):
        return None
    if scene.moment.now_s - until > patience.stuck_s:
        return None
    flat = scene.meters.read_since(since)
    culprit = _culprit(still)
    if culprit.last.state in ("idle", "reply-wait") and not scene.arrived:
        return None
    if until - since < _needed_s(scene, scenario, culprit, blind=not flat, baseline=baseline):
        return None
    return _named(culprit, scene, scenario, since=since, until=until, kv=flat)


def _culprit(still: list[Stretch]) -> Stretch:
    """The one the others wait for: a suspect first, then whoever does not wait for a process, then a collective."""

    def rank(stretch: Stretch) -> tuple[int, int]:
        state = stretch.last.state
        order = 0 if state == "suspect" else 1 if state not in WAITING else 2 if state == "collective-wait" else 3
        return order, stretch.last.pid

    return min(still, key=rank)


def _named(culprit: Stretch, scene: Scene, scenario: Scenario, *, since: float, until: float, kv: bool) -> Standstill:
    look = culprit.last
    position = position_of(look, scenario.layer_clock)
    role = next((worker.role for worker in scene.workers if worker.pid == look.pid), "worker")
    name = next((worker.name for worker in scene.workers if worker.pid == look.pid), str(look.pid))
    if look.sighting is not None:
        kind: str = look.sighting.signature.kind
        at = f" at {position.words}" if position and position.words else ""
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
        maybe_slow=scene.moved_s is None and look.state not in ("idle", "reply-wait"),
    )
