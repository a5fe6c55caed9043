"""The sentences that the terminal, the Markdown report and others share: plain text, made safe by whoever shows it."""

from collections.abc import Sequence
from shlex import join

from pydantic import ValidationError

from sparkdiag.evidence.observation import Observation
from sparkdiag.evidence.run import Containment
from sparkdiag.evidence.stacks import Frame, SamplingStats
from sparkdiag.evidence.stored import StoredRun
from sparkdiag.evidence.verdict import Baseline, Forecast, Verdict
from sparkdiag.scenario.model import Scenario, Signature

BASELINES = {
    "control-run": "a control run",
    "reference": "the scenario's reference",
    "fast-kernel": "the fast kernel timed on the same shapes",
    "given": "a figure the user gave",
}
CONTAINMENT: dict[Containment, str] = {
    "yes": "yes",
    "no": "no",
    "not-in-this-clone": "not in this clone",
    "unknown": "not known",
}
_STATUS = {
    "running": "the run has not ended, or ended without saying so",
    "finished": "the run ended without one",
    "interrupted": "the run was interrupted",
    "failed": "the run failed",
    "unknown": "its own record cannot be read",
}
OVERSPENT = 1.05
"""Plans beyond the budget times this are said to be."""
_RECORD = "run.json"
_ONLY_STREAMS = " How the run ended, what was asked and what was proved is not known; below is what its streams hold."


def seconds(value: float | None) -> str:
    """``0.42 s``, ``41.3 s``, ``812 s (13.5 min)``; a dash for None."""
    if value is None:
        return "–"
    if abs(value) < 1:
        return f"{value:.2f} s"
    if abs(value) < 100:
        return f"{value:.1f} s"
    if abs(value) < 7200:
        return f"{value:.0f} s ({value / 60:.1f} min)"
    return f"{value:.0f} s ({value / 3600:.1f} h)"


def moment(observation: Observation, at_s: float) -> str:
    """``57.3 s after sending``, ``283 s (4.7 min) before sending``; without a prompt of ours since the run's start."""
    sent = observation.client.sent
    if sent is None:
        return f"{seconds(at_s)} after the start"
    side = "after" if at_s >= sent.t_s else "before"
    return f"{seconds(abs(at_s - sent.t_s))} {side} sending"


def size(bytes_: float) -> str:
    """``812 B``, ``3.4 MiB``, ``2.0 GiB``."""
    for unit in ("B", "KiB", "MiB"):
        if bytes_ < 1024:
            return f"{bytes_:.0f} {unit}" if unit == "B" else f"{bytes_:.1f} {unit}"
        bytes_ /= 1024
    return f"{bytes_:.1f} GiB"


def headline(stored: StoredRun) -> str:
    """``stalled (crawling)``, ``completed``, or how far a run without a verdict came."""
    verdict = stored.record.verdict
    if verdict is None:
        return f"no verdict: {_without_verdict(stored)}"
    if verdict.outcome == "stalled":
        return f"stalled ({verdict.mode})" if verdict.mode else "stalled"
    if verdict.outcome == "completed" and verdict.needle is not None:
        return f"completed, answer {verdict.needle}"
    return verdict.outcome


def verdict_sentence(stored: StoredRun) -> str:
    """The verdict in one or two sentences of plain text."""
    verdict = stored.record.verdict
    if verdict is None:
        error = stored.record.error
        text = f"There is no verdict: {_without_verdict(stored)}" + (f" ({error})." if error else ".")
        return text + (_ONLY_STREAMS if record_is_lost(stored) else "")
    match verdict.outcome:
        case "stalled":
            return _stalled(verdict)
        case "completed":
            return _completed(stored, verdict)
        case "crashed":
            return f"The server crashed: {verdict.reason or 'no reason is known'}."
        case "inconclusive":
            return f"Inconclusive: {verdict.reason or 'no reason is known'}." + _against_baseline(verdict)


def record_is_lost(stored: StoredRun) -> bool:
    """Whether ``run.json`` tells nothing: then what it would say is not known, not "never shown"."""
    return stored.record.status == "unknown"


def why_record_is_lost(stored: StoredRun) -> str:
    """``run.json is missing``, as whoever read the folder found it."""
    found = (problem for problem in stored.problems if problem.startswith(_RECORD))
    return next(found, _STATUS["unknown"])


def _without_verdict(stored: StoredRun) -> str:
    if record_is_lost(stored):
        return why_record_is_lost(stored)
    if stored.record.status == "running" and stored.held is not None:
        return "the run still goes on" if stored.held else "the run was killed before it could say how it ended"
    return _STATUS[stored.record.status]


def _stalled(verdict: Verdict) -> str:
    where = f" in {verdict.function}" if verdict.function else ""
    kind = f" ({verdict.kind})" if verdict.kind else ""
    if verdict.mode == "stuck":
        return f"The prefill is stuck{where}{kind}: the same call, with no advance at all."
    return f"The prefill is crawling{where}{kind}." + _against_baseline(verdict)


def _completed(stored: StoredRun, verdict: Verdict) -> str:
    first = stored.observation.client.time_to_first_token_s
    if first is None:
        first = stored.record.timings_s.prompt_to_first_token_s
    needle = f", the answer is {verdict.needle}" if verdict.needle else ""
    text = f"The request completed{needle}" + (f"; first token after {seconds(first)}." if first is not None else ".")
    if verdict.baseline is not None and first is not None:
        text += f" Healthy is {baseline_text(verdict.baseline)}."
    return text


def _against_baseline(verdict: Verdict) -> str:
    """What was foreseen, and against what; the judge has scaled the baseline to this prompt already."""
    healthy = baseline_text(verdict.baseline) if verdict.baseline is not None else ""
    if not verdict.forecasts:
        return f" Healthy is {healthy}." if healthy else ""
    forecast = leading_forecast(verdict.forecasts)
    text = f" {forecast_text(forecast)}"
    if verdict.baseline is None or verdict.baseline.seconds <= 0:
        return f"{text}; there is no healthy baseline to hold it against."
    return f"{text}: {forecast.best_s / verdict.baseline.seconds:.1f} times the healthy {healthy}."


def leading_forecast(forecasts: Sequence[Forecast]) -> Forecast:
    """The newest from the loop variables, the finest clock there is; else the newest of all."""
    return next((one for one in reversed(forecasts) if one.source == "loop-variables"), forecasts[-1])


def prompt_text(stored: StoredRun) -> str | None:
    """``20000 tokens (needle at 35 %), sent when the server was up after 57.2 s; verdict 21.5 s after sending``."""
    sent = stored.observation.client.sent
    if sent is None:
        return None
    timings = stored.record.timings_s
    where = f" at {sent.depth:.0%}" if sent.kind == "needle" else ""
    text = f"{sent.tokens} tokens ({sent.kind}{where}, seed {sent.seed})"
    if timings.ready_s is not None:
        text += f"; the server was ready after {seconds(timings.ready_s)}"
    if timings.prompt_to_verdict_s is not None:
        text += f"; verdict {seconds(timings.prompt_to_verdict_s)} after sending"
    return text


def forecast_text(forecast: Forecast) -> str:
    """``First token foreseen after 812 s (13.5 min), between 700 s and 930 s, from the loop variables``."""
    source = {"loop-variables": "the loop variables", "kv-cache-usage": "the KV cache use"}[forecast.source]
    found = ", which were found and not named by the scenario" if forecast.inferred else ""
    spread = f"between {forecast.low_s:.0f} s and {forecast.high_s:.0f} s"
    return f"First token foreseen after {seconds(forecast.best_s)}, {spread}, from {source}{found}"


def baseline_text(baseline: Baseline) -> str:
    """``18.0 s (a control run: …)``."""
    scaled = f", scaled from {baseline.scaled_from_tokens} tokens" if baseline.scaled_from_tokens else ""
    return f"{seconds(baseline.seconds)} ({BASELINES[baseline.kind]}: {baseline.source}{scaled})"


def scenario_of(stored: StoredRun) -> Scenario | None:
    """The resolved scenario of the run; None when it does not fit this version."""
    try:
        return Scenario.model_validate(stored.record.scenario)
    except ValidationError:
        return None


def again_command(stored: StoredRun) -> str | None:
    """What to type to run it again, as it was typed (secrets are removed already)."""
    return join(stored.record.command) if stored.record.command else None


def loop_text(frame: Frame, signature: Signature | None) -> str:
    """``head_start 2/4, k_start 1024/6000``; empty when the frame shows none of the signature's loops."""
    if signature is None or frame.name != signature.function:
        return ""
    parts = []
    for loop in signature.loop:
        index, stop = frame.locals.get(loop.index), frame.locals.get(loop.stop)
        if index is not None:
            parts.append(f"{loop.index} {index}/{stop}" if stop is not None else f"{loop.index} {index}")
    return ", ".join(parts)


def looking_cost(stats: SamplingStats) -> str:
    """What looking cost this machine, as a sentence or two; what a run before this was counted knows of it."""
    where = "in the server, by the probe" if stats.mode == "in-process" else "in py-spy"
    if stats.share is None:
        return f"{seconds(stats.cpu_s)} of CPU time {where}."
    text = (
        f"Looking cost {percent(stats.share)} of this machine's CPU time over {seconds(stats.observed_s)} on "
        f"{stats.cores} cores: {seconds(stats.cpu_s)} {where} and {seconds(stats.own_cpu_s)} in sparkdiag itself."
    )
    budget, planned = stats.budget_share, stats.planned_share
    if not budget:
        return text
    text += f" The budget for taking stacks is {percent(budget)}"
    if stats.period_s is not None:
        text += f": a look at each process that runs the model every {seconds(stats.period_s)}"
    if planned is not None and planned > budget * OVERSPENT:
        text += f", which costs {percent(planned)}, because sampling.max_period_s allows no longer gap"
    return text + "."


def not_by_pyspy(stats: SamplingStats) -> str | None:
    """How stacks were taken where py-spy could not, why, and what to type; None where py-spy took them."""
    if stats.mode == "py-spy" or stats.reason is None:
        return None
    how = "taken by the probe inside the server" if stats.mode == "in-process" else "not taken"
    return f"{how}: {stats.reason}" + (f"; to let py-spy take them: {stats.remedy}" if stats.remedy else "")


def percent(share: float) -> str:
    """``0.8 %``; one digit more where little is left."""
    return f"{share * 100:.1f} %" if share >= 0.001 else f"{share * 100:.2f} %"
