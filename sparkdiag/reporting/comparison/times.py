"""The times of two runs beside each other: measured, foreseen, or at least so long. Pure."""

import math

from sparkdiag.evidence.comparison import ComparedSide, ComparedTime
from sparkdiag.evidence.stored import StoredRun
from sparkdiag.reporting.phrases import leading_forecast, seconds

NOISE = 1.25
"""Two single runs that differ by less are not said to differ: equal runs of the lab took 8.0 to 9.5 s on a quiet
machine (docs/measured.md)."""


def first_token(stored: StoredRun) -> ComparedTime:
    """From sending to the first token: measured, else foreseen, else at least as long as it was waited for."""
    client, verdict = stored.observation.client, stored.record.verdict
    measured_s = client.time_to_first_token_s
    if measured_s is None:
        measured_s = stored.record.timings_s.prompt_to_first_token_s
    if measured_s is not None:
        return ComparedTime(seconds=measured_s, source="measured")
    if verdict is not None and verdict.outcome in ("stalled", "inconclusive") and verdict.forecasts:
        forecast = leading_forecast(verdict.forecasts)
        return ComparedTime(seconds=forecast.best_s, low_s=forecast.low_s, high_s=forecast.high_s, source="forecast")
    if client.sent is not None and (verdict is None or verdict.outcome != "crashed"):
        until_s = min(stored.observation.now_s, client.end.t_s if client.end is not None else math.inf)
        waited_s = until_s - client.sent.t_s
        return ComparedTime(seconds=waited_s, source="at least") if waited_s > 0 else ComparedTime()
    return ComparedTime()


def total_s(stored: StoredRun) -> float | None:
    """From sending to the last token, where the response ended by itself."""
    client = stored.observation.client
    if client.sent is None or client.end is None or client.end.how != "finished":
        return None
    return client.end.t_s - client.sent.t_s


def time_text(time: ComparedTime) -> str:
    """``8.1 s (measured)``, ``383 s (6.4 min) (forecast, 240 to 461 s)``, ``at least 40.0 s``, ``not known``."""
    if time.seconds is None:
        return "not known"
    match time.source:
        case "forecast":
            span = f", {time.low_s:.0f} to {time.high_s:.0f} s" if None not in (time.low_s, time.high_s) else ""
            return f"{seconds(time.seconds)} (forecast{span})"
        case "at least":
            return f"at least {seconds(time.seconds)}"
        case _:
            return f"{seconds(time.seconds)} (measured)"


def ratio_of(a: ComparedTime, b: ComparedTime) -> float | None:
    """The longer time by the shorter one; None where that says nothing."""
    if a.seconds is None or b.seconds is None or min(a.seconds, b.seconds) <= 0:
        return None
    shorter, longer = sorted((a, b), key=lambda time: time.seconds or 0.0)
    if shorter.source == "at least" or shorter.seconds is None or longer.seconds is None:
        return None
    return longer.seconds / shorter.seconds


def sentence_of(a: ComparedSide, b: ComparedSide, *, names: tuple[str, str], ratio: float | None, why_none: str) -> str:
    """What the two times say about each other, in words; each with how it is known."""
    sides = ((names[0], a.first_token), (names[1], b.first_token))
    beside = " against ".join(f"{time_text(time)} for {name}" for name, time in sides)
    if ratio is None:
        return f"To the first token: {beside}; no factor can be told from these{why_none}"
    (fast, faster), (slow, slower) = sorted(sides, key=lambda side: side[1].seconds or 0.0)
    if "forecast" in (faster.source, slower.source) and _overlap(faster, slower):
        return f"To the first token: {beside}; the forecast's range holds both, so no difference is claimed"
    if ratio < NOISE:
        return f"To the first token: {beside}; one run each, so a factor of {ratio:.2f} may be noise"
    least = "at least " if slower.source == "at least" else ""
    return (
        f"{slow} takes {least}{ratio:.1f} times as long to the first token as {fast}{_range(faster, slower)}: "
        f"{time_text(slower)} against {time_text(faster)}"
    )


def _range(faster: ComparedTime, slower: ComparedTime) -> str:
    """`` (14.2 to 27.3 by the forecast's range)``, where one of the two is foreseen."""
    if "forecast" not in (faster.source, slower.source):
        return ""
    low = (slower.low_s or slower.seconds or 0.0) / (faster.high_s or faster.seconds or 1.0)
    high = (slower.high_s or slower.seconds or 0.0) / (faster.low_s or faster.seconds or 1.0)
    return f" ({low:.1f} to {high:.1f} by the forecast's range)"


def _overlap(faster: ComparedTime, slower: ComparedTime) -> bool:
    """Whether the ranges of the two, a measured time being its own range, have a value in common."""
    high_s = faster.high_s if faster.source == "forecast" and faster.high_s is not None else faster.seconds
    low_s = slower.low_s if slower.source == "forecast" and slower.low_s is not None else slower.seconds
    return high_s is not None and low_s is not None and low_s <= high_s
