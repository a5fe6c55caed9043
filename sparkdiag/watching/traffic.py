"""What a server's own counters say of its requests, and of a prompt of ours among those of others. Pure."""

from collections.abc import Sequence

from sparkdiag.evidence.base import Value
from sparkdiag.evidence.diagnosis import Traffic
from sparkdiag.evidence.timeline import MetricPoint


def traffic_of(points: Sequence[MetricPoint]) -> Traffic | None:
    """Requests as of the last answer, and whether any counter of work changed; None where nothing was told."""
    told = [point for point in points if _told(point)]
    if not told:
        return None
    counters = [_work(point) for point in told]
    known = any(value is not None for value in counters[-1])
    return Traffic(
        running=told[-1].requests_running,
        waiting=told[-1].requests_waiting,
        moved=any(one != counters[0] for one in counters) if known and len(told) > 1 else None,
        over_s=told[-1].t_s - told[0].t_s if len(told) > 1 else None,
        silent_s=_silent_s(told),
    )


def _silent_s(told: Sequence[MetricPoint]) -> float | None:
    """How long requests have been in flight, as far as was seen, without a token for any and without one that ended."""
    now = told[-1]
    if all(value is None for value in _output(now)):
        return None
    silent_s: float | None = None
    for point in reversed(told):
        busy = (point.requests_running or 0) + (point.requests_waiting or 0) > 0
        if not busy or _output(point) != _output(now):
            break
        silent_s = now.t_s - point.t_s
    return silent_s


def _output(point: MetricPoint) -> tuple[float | None, float | None]:
    return point.generation_tokens_total, point.requests_finished_total


def metrics_words(points: Sequence[MetricPoint]) -> str:
    """What can be said from metrics alone: requests, KV cache, tokens; one sentence."""
    told = [point for point in points if _told(point)]
    if not told:
        errors = [point.error for point in points if point.error]
        return f"the server tells nothing of itself ({errors[-1]})" if errors else "the server tells nothing of itself"
    first, last = told[0], told[-1]
    parts = [
        f"{value:.0f} requests {word}"
        for value, word in ((last.requests_running, "running"), (last.requests_waiting, "waiting"))
        if value is not None
    ]
    if last.kv_cache_usage is not None:
        moved = len({point.kv_cache_usage for point in told}) > 1
        parts.append(f"KV cache use {last.kv_cache_usage:.1%}, which {'moved' if moved else 'did not move'}")
    parts += _grown("prompt tokens", [point.prompt_tokens_total for point in told])
    parts += _grown("generated tokens", [point.generation_tokens_total for point in told])
    parts += _grown("engine steps", [point.iterations_total for point in told])
    over_s = last.t_s - first.t_s
    return f"{'; '.join(parts) or 'no counter that is known here'} (over {over_s:.0f} s)"


def _grown(what: str, values: Sequence[float | None]) -> list[str]:
    known = [value for value in values if value is not None]
    if not known:
        return []
    more = known[-1] - known[0]
    return [f"{more:.0f} more {what}" if more else f"no more {what}"]


def _told(point: MetricPoint) -> bool:
    return point.requests_running is not None or any(value is not None for value in _work(point))


def _work(point: MetricPoint) -> tuple[float | None, ...]:
    return (
        point.prompt_tokens_total,
        point.generation_tokens_total,
        point.iterations_total,
        point.requests_finished_total,
        point.kv_cache_usage,
    )


class Company(Value):
    """Who else used the server while a prompt of ours was under way."""

    before_running: float | None = None
    before_waiting: float | None = None
    most_running: float | None = None
    """During, ours included."""
    most_waiting: float | None = None
    others_prompt_tokens: float | None = None
    """That the server counted meanwhile and that were not ours; None where it does not tell."""
    others_generated_tokens: float | None = None

    @property
    def shared(self) -> bool | None:
        """Whether others' requests ran beside ours; None where the server did not say."""
        known = [self.before_running, self.most_running, self.others_prompt_tokens, self.others_generated_tokens]
        if all(value is None for value in known):
            return None
        return bool(
            (self.before_running or 0) + (self.before_waiting or 0) > 0
            or (self.most_running or 0) + (self.most_waiting or 0) > 1
            or (self.others_prompt_tokens or 0) > 0
            or (self.others_generated_tokens or 0) > 0
        )

    @property
    def words(self) -> str:
        """One sentence on whether the time to first token is the prompt's own."""
        if self.shared is None:
            return "whether others used the server meanwhile is not known: its time to first token may be shared"
        if not self.shared:
            return "nobody else used the server meanwhile: its time to first token is its own"
        parts = []
        if self.before_running is not None:
            parts.append(f"{self.before_running:.0f} requests ran before it")
        if self.before_waiting:
            parts.append(f"{self.before_waiting:.0f} waited")
        if self.most_running is not None:
            waited = f" and {self.most_waiting:.0f} waited" if self.most_waiting else ""
            parts.append(f"while it was there up to {self.most_running:.0f} ran{waited}, ours included")
        if self.others_prompt_tokens:
            parts.append(f"{self.others_prompt_tokens:.0f} prompt tokens of others were counted meanwhile")
        if self.others_generated_tokens:
            parts.append(f"{self.others_generated_tokens:.0f} tokens were generated for others")
        return f"its time to first token is shared with other traffic: {', '.join(parts)}"


def company_of(
    points: Sequence[MetricPoint], *, sent_s: float, ended_s: float, own_prompt_tokens: int, own_generated_tokens: int
) -> Company:
    """Told from the points before ``sent_s``, until ``ended_s``, and after; seconds on the points' clock.

    ``own_prompt_tokens`` is 0 as long as the prompt has no first token: the server counts them only then.
    """
    told = [point for point in points if _told(point)]
    before = [point for point in told if point.t_s < sent_s]
    during = [point for point in told if sent_s <= point.t_s <= ended_s]
    last = before[-1] if before else None
    since = told[len(before) - 1 :] if before else []
    return Company(
        before_running=last.requests_running if last is not None else None,
        before_waiting=last.requests_waiting if last is not None else None,
        most_running=_most([point.requests_running for point in during]),
        most_waiting=_most([point.requests_waiting for point in during]),
        others_prompt_tokens=_others([point.prompt_tokens_total for point in since], own_prompt_tokens),
        others_generated_tokens=_others([point.generation_tokens_total for point in since], own_generated_tokens),
    )


def _most(values: Sequence[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _others(values: Sequence[float | None], own: int) -> float | None:
    known = [value for value in values if value is not None]
    return max(0.0, known[-1] - known[0] - own) if len(known) > 1 else None
