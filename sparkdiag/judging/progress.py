"""Progress from inside the frame: calls, layers and chunks as one measure of work that is done.

py-spy's locals show where the suspect's nested loops stand. Within one call that is a fraction; over a prefill, calls
follow each other through layers and chunks, so the measure counts *chunks finished + the part of the current one*.
"""

import math
import re
from collections import Counter
from dataclasses import dataclass

from sparkdiag.evidence.stacks import Frame, LocalValue
from sparkdiag.judging.numbers import count
from sparkdiag.judging.signature import Look
from sparkdiag.scenario.model import LayerClock, LoopVariable, Scenario, Signature

_LAYER = re.compile(r"(?:^|\.)layers?\.(\d{1,6})(?:\.|$)")
_LAST_INT = re.compile(r"(\d{1,6})(?!.*\d)", re.DOTALL)
_FALL_CHUNKS = 1.5
"""A fall by more is no mere distance between two ranks."""
_CONFIRMED_BY = 3
_MISREAD_IN_A_ROW = 2


@dataclass(frozen=True, slots=True)
class CallPosition:
    """Where one call stands. ``call`` is equal for samples of the same call, ``passed`` within ``total`` passes."""

    at_s: float
    pid: int
    call: tuple[object, ...]
    passed: int
    total: int
    layer: int | None
    rows: int | None
    keys: int | None
    loops: tuple[tuple[str, int, int], ...]
    """(index's name, index, stop) of each loop that has begun."""

    @property
    def words(self) -> str:
        """For people: ``layer 1, head_start 2/8, k_start 512/6000, 6000 keys``."""
        parts = [f"layer {self.layer}"] if self.layer is not None else []
        parts += [f"{name} {index}/{stop}" for name, index, stop in self.loops]
        if self.keys is not None:
            parts.append(f"{self.keys} keys")
        return ", ".join(parts)

    @property
    def fraction(self) -> float:
        return self.passed / self.total


@dataclass(frozen=True, slots=True)
class PrefillPlan:
    """What the whole prefill consists of, in tokens; where a call's keys put it."""

    tokens: int
    chunk_tokens: int
    tokens_per_key: int
    layers: int | None

    @property
    def chunks(self) -> float:
        return self.tokens / self.chunk_tokens

    def total(self) -> tuple[float, float]:
        """(chunks, key-weighted chunks) of the whole prompt."""
        return self.features(self.tokens, 0.0)

    def features(self, done_tokens: float, part_tokens: float) -> tuple[float, float]:
        """(chunks, key-weighted chunks) once ``done_tokens`` are finished and ``part_tokens`` of the next chunk.

        A chunk that ends at position p costs a + b * keys(p), so its share of ``b`` weighs p / chunk_tokens.
        """
        whole, rest = divmod(done_tokens / self.chunk_tokens, 1)
        weighted = whole * (whole + 1) / 2 + rest * (whole + rest)
        end = min(done_tokens + self.chunk_tokens, self.tokens) / self.chunk_tokens
        part = part_tokens / self.chunk_tokens
        return whole + rest + part, weighted + part * end


def layer_of(value: LocalValue) -> int | None:
    """``model.layers.3.self_attn.indexer.k_cache`` -> 3; else the last integer in the text; an integer as it is."""
    if isinstance(value, str):
        found = _LAYER.search(value[:500]) or _LAST_INT.search(value[:500])
        return int(found.group(1)) if found else None
    return count(value)


def _layer(look: Look, clock: LayerClock | None) -> int | None:
    if clock is None or look.sighting is None:
        return None
    found = look.sighting.thread.find(clock.function)
    return layer_of(found[1].locals.get(clock.variable)) if found else None


def _passes(loop: LoopVariable, frame: Frame) -> tuple[int, int] | None:
    """(passes finished, passes in all) of one loop."""
    index, stop = count(frame.locals.get(loop.index)), count(frame.locals.get(loop.stop))
    step = 1 if loop.step is None else count(frame.locals.get(loop.step))
    if index is None or not stop or not step:
        return None
    total = -(-stop // step)
    return min(index // step, total - 1), total


def _loops(signature: Signature, frame: Frame) -> tuple[tuple[str, int, int], ...]:
    values = frame.locals
    found = ((loop.index, count(values.get(loop.index)), count(values.get(loop.stop))) for loop in signature.loop)
    return tuple([(name, index, stop) for name, index, stop in found if index is not None and stop is not None])


def position_of(look: Look, clock: LayerClock | None) -> CallPosition | None:
    """The call's position from the suspect frame's locals; None when they are not there (yet)."""
    if look.sighting is None:
        return None
    signature, frame = look.sighting.signature, look.sighting.frame
    passed, total = 0, 1
    for loop in signature.loop:
        passes = _passes(loop, frame)
        if passes is None:
            # Unset while the call sets up, and the inner one before the outer's first pass: counted as not begun.
            break
        passed, total = passed * passes[1] + passes[0], total * passes[1]
    layer = _layer(look, clock)
    keys = count(frame.locals.get(signature.keys)) if signature.keys else None
    rows = count(frame.locals.get(signature.rows)) if signature.rows else None
    identity = tuple([frame.locals.get(name) for name in signature.call_identity])
    thread = look.sighting.thread
    call = (look.pid, thread.os_thread_id or thread.thread_id, look.sighting.depth, identity, layer, rows, keys)
    return CallPosition(
        at_s=look.at_s,
        pid=look.pid,
        call=call,
        passed=passed,
        total=total,
        layer=layer,
        rows=rows,
        keys=keys,
        loops=_loops(signature, frame),
    )


def plan_of(scenario: Scenario, *, prompt_tokens: int, dcp: int, positions: list[CallPosition]) -> PrefillPlan | None:
    """The prefill's plan. A call's keys are local to the rank with DCP; where more keys are seen (twice: once may be
    misread) than that allows, they are taken as global, and where even that cannot be, nothing is planned."""
    chunk = scenario.server.chunk_tokens
    if prompt_tokens <= 0:
        return None
    seen = Counter(position.keys for position in positions if position.keys)
    most = max((keys for keys, times in seen.items() if times > 1), default=0)
    layers = scenario.work.layers or _layers_seen(positions)
    ratio = scenario.work.compress_ratio
    for per_key in (ratio * max(1, dcp), ratio):
        plan = PrefillPlan(tokens=prompt_tokens, chunk_tokens=chunk, tokens_per_key=per_key, layers=layers)
        if most * per_key <= _most_tokens(plan):
            return plan
    return None


def _layers_seen(positions: list[CallPosition]) -> int | None:
    """Layers counted from what is seen, once two chunks (two key counts) were."""
    layers = {position.layer for position in positions if position.layer is not None}
    chunks = {position.keys for position in positions}
    return len(layers) if layers and len(chunks) >= 3 else None


@dataclass(frozen=True, slots=True)
class WorkPoint:
    """A moment and the work finished by then, in the plan's two features."""

    at_s: float
    chunks: float
    weighted: float


def _layer_part(position: CallPosition, plan: PrefillPlan, order: dict[int, int]) -> float:
    """Share of the chunk's layers that lies behind the call."""
    layers = plan.layers or 1
    if layers == 1:
        return 0.0
    if position.layer is None:
        return 0.5 - 0.5 / layers
    index = position.layer if position.layer < layers else order.get(position.layer, 0)
    return min(index, layers - 1) / layers


def work_points(positions: list[CallPosition], plan: PrefillPlan) -> list[WorkPoint]:
    """Positions as work, never backwards; a prefill that ran again (preemption) begins anew, see ``forwards``."""
    likely = [position for position in positions if _possible(position, plan)]
    widest: dict[int, int] = {}
    for position in likely:
        if position.keys is not None and position.rows:
            widest[position.keys] = max(widest.get(position.keys, 0), position.rows)
    order = {layer: n for n, layer in enumerate(sorted({p.layer for p in likely if p.layer is not None}))}
    return forwards(
        [
            _work_point(position, plan, widest=widest.get(position.keys or 0), order=order)
            for position in sorted(likely, key=lambda p: p.at_s)
        ]
    )


def _possible(position: CallPosition, plan: PrefillPlan) -> bool:
    """A look that does not stop the process can read an integer while it is replaced: more keys or rows than the
    prompt or a chunk has were never there."""
    keys, rows = position.keys, position.rows or 0
    return keys is not None and keys * plan.tokens_per_key <= _most_tokens(plan) and rows <= plan.chunk_tokens


def _most_tokens(plan: PrefillPlan) -> float:
    return plan.tokens * 1.03 + 64 * plan.tokens_per_key


def forwards(points: list[WorkPoint]) -> list[WorkPoint]:
    """``points`` in order of time without those that fall back. A small fall is two ranks a little apart. A larger one
    is a misread value unless the next ones confirm it; then it was the point before that was misread, or the prefill
    runs again and begins anew."""
    kept: list[WorkPoint] = []
    fallen: list[WorkPoint] = []
    for point in points:
        if kept and point.chunks < kept[-1].chunks - _FALL_CHUNKS:
            fallen.append(point)
            if len(fallen) == _CONFIRMED_BY:
                kept, fallen = _resumed(kept, fallen), []
        elif not kept or point.chunks >= kept[-1].chunks:
            kept.append(point)
            fallen = []
    return kept


def _resumed(kept: list[WorkPoint], fallen: list[WorkPoint]) -> list[WorkPoint]:
    rising = [point for n, point in enumerate(fallen) if all(point.chunks >= before.chunks for before in fallen[:n])]
    below = [point for point in kept if point.chunks <= rising[0].chunks]
    return [*below, *rising] if len(kept) - len(below) <= _MISREAD_IN_A_ROW else rising


def _work_point(position: CallPosition, plan: PrefillPlan, *, widest: int | None, order: dict[int, int]) -> WorkPoint:
    end = min((position.keys or 0) * plan.tokens_per_key, plan.tokens)
    slack = plan.tokens_per_key
    if end >= plan.tokens - slack:
        start = (math.ceil(plan.tokens / plan.chunk_tokens) - 1) * plan.chunk_tokens
        end = plan.tokens
    else:
        start = max(0, end - plan.chunk_tokens)
    chunk_rows = max(1, end - start)
    rows = min(position.rows or chunk_rows, chunk_rows)
    behind = _rows_behind(rows, chunk_rows=chunk_rows, widest=widest)
    in_layer = min(1.0, (behind + position.fraction * rows) / chunk_rows)
    part = _layer_part(position, plan, order) + in_layer / (plan.layers or 1)
    chunks, weighted = plan.features(start, min(1.0, part) * chunk_rows)
    return WorkPoint(at_s=position.at_s, chunks=chunks, weighted=weighted)


def _rows_behind(rows: int, *, chunk_rows: int, widest: int | None) -> float:
    """Rows of the chunk before this call. Newer vLLM splits a chunk's rows by a logits limit into equal calls and a
    shorter last one (VLLM_SPARSE_INDEXER_MAX_LOGITS_MB); which of the equal ones it is does not show: the middle."""
    if rows >= 0.98 * chunk_rows:
        return 0.0
    if widest is not None and rows < widest:
        return chunk_rows - rows
    return rows * max(0, chunk_rows // rows - 1) / 2
