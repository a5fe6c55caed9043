"""The run's course in a dozen or so rows: when, KV use, prompt tokens, where the ranks were. Pure."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import TypeVar

from sparkdiag.evidence.base import Value
from sparkdiag.evidence.observation import Observation
from sparkdiag.evidence.timeline import MetricPoint
from sparkdiag.reporting.phrases import loop_text
from sparkdiag.reporting.stack_view import signature_for, top_frame
from sparkdiag.scenario.model import Signature

Kept = TypeVar("Kept")


class Row(Value):
    """``t_s`` counts from the sending of the prompt where one was sent, else from the run's start."""

    t_s: float
    kv_cache_usage: float | None = None
    prompt_tokens_total: float | None = None
    process: str = ""
    top: str = ""
    loop: str = ""


def thinned(values: Sequence[Kept], most: int) -> tuple[Kept, ...]:
    """At most ``most`` of ``values``, evenly spread, the first and the last among them."""
    if len(values) <= most:
        return tuple(values)
    if most < 2:
        return tuple(values[-1:])[:most]
    step = (len(values) - 1) / (most - 1)
    return tuple(values[round(index * step)] for index in range(most))


def rows(
    observation: Observation, *, function: str | None, signatures: Sequence[Signature], most: int = 16
) -> tuple[Row, ...]:
    """One row a look at one worker (the one with the suspect function most on its stack), else one a scrape."""
    zero_s = observation.client.sent.t_s if observation.client.sent is not None else 0.0
    pid = _followed(observation, function)
    samples = [one for one in observation.samples if one.pid == pid and one.usable and one.at_s >= zero_s]
    if not samples:
        points = thinned([one for one in observation.metrics if one.t_s >= zero_s], most)
        return tuple(_with_metrics(Row(t_s=one.t_s - zero_s), one) for one in points)
    names = {process.pid: process.name for process in observation.processes}
    made = []
    for sample in thinned(samples, most):
        row = Row(t_s=sample.at_s - zero_s, process=names.get(sample.pid, str(sample.pid)))
        frame = top_frame(sample, function=function)
        if frame is not None:
            loop = loop_text(frame, signature_for(frame, signatures))
            row = row.model_copy(update={"top": frame.name, "loop": loop})
        made.append(_with_metrics(row, _nearest(observation.metrics, sample.at_s)))
    return tuple(made)


def _followed(observation: Observation, function: str | None) -> int | None:
    counts = {process.pid: (0, 0) for process in observation.workers}
    for sample in observation.samples:
        if sample.pid in counts and sample.usable:
            seen, all_of_them = counts[sample.pid]
            frame = top_frame(sample, function=function)
            hit = function is not None and frame is not None and frame.name == function
            counts[sample.pid] = (seen + hit, all_of_them + 1)
    return max(counts, key=lambda pid: counts[pid], default=None)


def _nearest(points: Sequence[MetricPoint], at_s: float) -> MetricPoint | None:
    """The last scrape before ``at_s`` that the server answered, else the first after it."""
    answered = [point for point in points if point.error is None]
    index = bisect_left(answered, at_s, key=lambda point: point.t_s)
    return answered[max(index - 1, 0)] if answered else None


def _with_metrics(row: Row, point: MetricPoint | None) -> Row:
    if point is None:
        return row
    return row.model_copy(
        update={"kv_cache_usage": point.kv_cache_usage, "prompt_tokens_total": point.prompt_tokens_total}
    )
