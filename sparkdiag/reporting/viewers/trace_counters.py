"""What was measured over time, as a trace's counters: the server's numbers, GPUs, the progress of the loop. Pure."""

from collections.abc import Iterable
from typing import Any

from sparkdiag.evidence.stored import StoredRun
from sparkdiag.judging.numbers import finite
from sparkdiag.judging.progress import CallPosition, plan_of, position_of, work_points
from sparkdiag.judging.signature import look_at
from sparkdiag.reporting.phrases import scenario_of
from sparkdiag.reporting.timeline_rows import thinned
from sparkdiag.reporting.viewers.events import Track, moment_us

Reading = tuple[int, float]
"""(microseconds, value)."""
Series = dict[tuple[str, str], list[Reading]]
"""By name and unit."""

MOST_READINGS = 100_000
"""Of all counters of a run together; beyond, each is thinned evenly to its share."""
_MOST_SERIES = 200
"""More GPUs than that are none."""
_METRICS = (
    ("KV cache use", "%", "kv_cache_usage", 100.0),
    ("prompt tokens", "tokens", "prompt_tokens_total", 1.0),
    ("generated tokens", "tokens", "generation_tokens_total", 1.0),
    ("requests running", "requests", "requests_running", 1.0),
    ("requests waiting", "requests", "requests_waiting", 1.0),
)
_GPU = (
    ("utilisation", "%", "utilisation_percent"),
    ("power", "W", "power_w"),
    ("memory used", "MiB", "memory_used_mib"),
)


def counters(stored: StoredRun, track: Track, *, left_out: list[str]) -> list[dict[str, Any]]:
    """Every curve of the run."""
    series = _of_metrics(stored) | _of_gpus(stored) | _of_cpu(stored) | _of_loop(stored)
    shown = dict(list(series.items())[:_MOST_SERIES])
    share = max(2, MOST_READINGS // max(1, len(shown)))
    if any(len(readings) > share for readings in shown.values()):
        left_out.append(f"of each counter all but about {share} readings")
    if len(series) > len(shown):
        left_out.append(f"{len(series) - len(shown)} counters")
    return [
        track.counter(name, at_us=at_us, unit=unit, value=value)
        for (name, unit), readings in shown.items()
        for at_us, value in thinned(readings, share)
    ]


def _add(series: Series, name: str, unit: str, at_s: float, value: float | None) -> None:
    at_us, number = moment_us(at_s), finite(value)
    if at_us is not None and number is not None:
        series.setdefault((name, unit), []).append((at_us, number))


def _of_metrics(stored: StoredRun) -> Series:
    series: Series = {}
    for point in stored.observation.metrics:
        for name, unit, field, scale in _METRICS:
            value = finite(getattr(point, field))
            _add(series, name, unit, point.t_s, None if value is None else value * scale)
    return series


def _of_gpus(stored: StoredRun) -> Series:
    series: Series = {}
    for point in stored.observation.gpus:
        for name, unit, field in _GPU:
            _add(series, f"GPU {point.index} {name}", unit, point.t_s, getattr(point, field))
    return series


def _of_cpu(stored: StoredRun) -> Series:
    series: Series = {}
    for point in stored.observation.cpu:
        _add(series, "CPU of the server", "% of the machine", point.t_s, 100 * point.server_share)
        _add(series, "CPU of others", "% of the machine", point.t_s, 100 * point.others_share)
    return series


def _of_loop(stored: StoredRun) -> Series:
    """How much of the prefill's work the suspect's loop variables show as done, over all workers; and within each call,
    where its loops stand."""
    scenario, sent = scenario_of(stored), stored.observation.client.sent
    workers = {process.pid: process.name for process in stored.observation.workers}
    if scenario is None:
        return {}
    first_s = finite(stored.observation.client.first_token_s)
    positions = [
        position
        for sample in thinned(stored.observation.samples, MOST_READINGS // 4)
        if sample.usable
        and sample.pid in workers
        and (position := position_of(look_at(sample, scenario.signatures), scenario.layer_clock)) is not None
    ]
    series: Series = {}
    for position in positions:
        name = f"{workers[position.pid]}: loops of the call"
        _add(series, name, "% done", position.at_s, 100 * position.fraction)
    if sent is not None:
        in_prefill = [one for one in positions if sent.t_s <= one.at_s <= (one.at_s if first_s is None else first_s)]
        dcp = stored.record.dcp.size if stored.record.dcp is not None else None
        plan = plan_of(scenario, prompt_tokens=sent.tokens, dcp=dcp or scenario.server.dcp, positions=in_prefill)
        for at_s, done in _work(in_prefill, plan) if plan is not None else ():
            _add(series, "prefill by its loops", "% done", at_s, 100 * done)
    return series


def _work(positions: list[CallPosition], plan: Any) -> Iterable[tuple[float, float]]:
    total = plan.total()[1]
    return [(point.at_s, min(1.0, point.weighted / total)) for point in work_points(positions, plan)] if total else []
