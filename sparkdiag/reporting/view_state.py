"""What the live view shows, as lines of plain text. Pure: no clock, no terminal."""

import textwrap

from sparkdiag.evidence.base import Value
from sparkdiag.evidence.observation import Observation
from sparkdiag.evidence.verdict import Forecast, RankFinding, Verdict
from sparkdiag.harmless.excerpt import excerpt
from sparkdiag.reporting.phrases import leading_forecast, seconds
from sparkdiag.reporting.stack_view import top_frame

_LABEL = 10
_MOST_RANKS = 8
_BAR_CHARS = 20
_MOST_LINES = 2


class Task(Value):
    """Long work below, such as an environment being built."""

    name: str
    total: float | None = None
    unit: str = ""
    at: float = 0
    began_s: float = 0

    def text(self, now_s: float) -> str:
        """``torch: 120/230 MB, about 12 s left``; without a total only how far it is."""
        scale, unit = (1e6, "MB") if self.unit == "bytes" else (1.0, self.unit)
        if self.total is None or self.total <= 0:
            return f"{self.name}: {self.at / scale:.0f} {unit}".rstrip() if self.at else self.name
        done = f"{self.name}: {self.at / scale:.0f}/{self.total / scale:.0f} {unit}".rstrip()
        spent_s = now_s - self.began_s
        if 0 < self.at < self.total and spent_s > 1:
            done += f", about {spent_s * (self.total - self.at) / self.at:.0f} s left"
        return done


class ViewState(Value):
    """Everything the view knows. Times are in seconds on the view's own clock, zero when it opened."""

    phase: str = ""
    detail: str = ""
    phase_began_s: float = 0
    note: str = ""
    """The last one, where notes do not stay on the screen by themselves."""
    task: Task | None = None
    observation: Observation | None = None
    verdict: Verdict | None = None


class ViewLine(Value):
    """One line: what it is about, the text, and how it should look where looks are to be had."""

    label: str
    text: str
    style: str = ""

    def fitted(self, columns: int) -> tuple[str, ...]:
        """The line as plain text, at most two lines of at most ``columns`` characters."""
        columns = max(columns, 1)
        text = f"{self.label:<{_LABEL}}{self.text}"
        if len(text) <= columns:
            return (text,)
        if columns < 2 * _LABEL:
            return (_cut(text, columns),)
        wrapped = textwrap.wrap(text, columns, subsequent_indent=" " * _LABEL, drop_whitespace=True)
        if len(wrapped) <= _MOST_LINES:
            return tuple(wrapped)
        return (*wrapped[: _MOST_LINES - 1], _cut(f"{wrapped[_MOST_LINES - 1]} …", columns))


def _cut(text: str, columns: int) -> str:
    return text if len(text) <= columns else text[: columns - 1] + "…"


def view_lines(state: ViewState, *, now_s: float) -> tuple[ViewLine, ...]:
    """The view at ``now_s``, top to bottom."""
    lines = [_phase_line(state, now_s)]
    if state.note:
        lines.append(_line("note", state.note))
    if state.task is not None:
        lines.append(_line("work", state.task.text(now_s)))
        lines += [_line("", bar)] if (bar := _bar(state.task)) else []
    if state.observation is not None:
        lines += _observed(state.observation, state.verdict)
    if state.verdict is not None:
        lines += _judged(state.verdict)
    return tuple(lines)


def one_line(state: ViewState, *, now_s: float) -> str:
    """The same in one line, for logs."""
    parts = [f"{state.phase} {now_s - state.phase_began_s:.0f} s"]
    if state.task is not None:
        parts.append(state.task.text(now_s))
    observation, verdict = state.observation, state.verdict
    if observation is not None:
        parts += [f"KV {used}"] if (used := _kv(observation)) else []
    if verdict is not None:
        suspect = verdict.ranks[0] if verdict.ranks else None
        if suspect is not None and suspect.top_function:
            parts.append(f"{suspect.name} in {suspect.top_function}")
            parts += [suspect.loop_progress] if suspect.loop_progress else []
        if verdict.forecasts:
            parts.append(_forecast(leading_forecast(verdict.forecasts)))
        parts.append(_so_far(verdict))
    return excerpt(" | ".join(parts), limit=400)


def _line(label: str, text: str, style: str = "") -> ViewLine:
    return ViewLine(label=label, text=excerpt(text, limit=300), style=style)


def _phase_line(state: ViewState, now_s: float) -> ViewLine:
    detail = f" · {state.detail}" if state.detail else ""
    text = f"{state.phase or 'starting'}, {now_s - state.phase_began_s:.0f} s (run {now_s:.0f} s){detail}"
    return _line("phase", text, "bold")


def _bar(task: Task) -> str:
    if task.total is None or task.total <= 0:
        return ""
    share = min(max(task.at / task.total, 0.0), 1.0)
    full = round(share * _BAR_CHARS)
    return f"{'━' * full}{'╌' * (_BAR_CHARS - full)} {share:.0%}"


def _observed(observation: Observation, verdict: Verdict | None) -> list[ViewLine]:
    lines = []
    sent = observation.client.sent
    if sent is not None:
        metric = next((one for one in reversed(observation.metrics) if one.error is None), None)
        total = metric.prompt_tokens_total if metric is not None else None
        counted = f", the server counts {total:.0f}" if total is not None else ""
        lines.append(_line("prompt", f"{sent.tokens} tokens sent {observation.now_s - sent.t_s:.0f} s ago{counted}"))
    if kv := _kv(observation):
        lines.append(_line("KV cache", kv))
    known = {rank.pid: rank for rank in verdict.ranks} if verdict is not None else {}
    workers = observation.workers
    for process in workers[:_MOST_RANKS]:
        lines.append(_rank_line(process.name, known.get(process.pid), _top(observation, process.pid)))
    if len(workers) > _MOST_RANKS:
        lines.append(_line("", f"… and {len(workers) - _MOST_RANKS} more ranks"))
    return lines


def _rank_line(name: str, finding: RankFinding | None, top: str) -> ViewLine:
    short = name.removeprefix("Worker_")
    if finding is None or finding.top_function is None:
        return _line(short if len(short) < _LABEL else "rank", top if len(short) < _LABEL else f"{short}: {top}")
    text = f"{finding.top_function} {finding.top_share:.0%}"
    if finding.loop_progress:
        text += f" · {finding.loop_progress}"
    if finding.differs:
        text += " · differs from its peers"
    return _line(short, text) if len(short) < _LABEL else _line("rank", f"{short}: {text}")


def _top(observation: Observation, pid: int) -> str:
    for sample in reversed(observation.samples):
        if sample.pid == pid and sample.usable:
            frame = top_frame(sample, function=None)
            return frame.name if frame is not None else "no Python frame"
    return "not sampled yet" if observation.sampling.wanted else "not sampled, by request"


def _kv(observation: Observation) -> str:
    used = next((one.kv_cache_usage for one in reversed(observation.metrics) if one.kv_cache_usage is not None), None)
    return f"{used:.1%} used" if used is not None else ""


def _judged(verdict: Verdict) -> list[ViewLine]:
    lines = []
    if verdict.forecasts:
        lines.append(_line("forecast", _forecast(leading_forecast(verdict.forecasts))))
    if verdict.baseline is not None:
        lines.append(_line("healthy", f"{seconds(verdict.baseline.seconds)} ({verdict.baseline.kind})"))
    style = {"stalled": "bold red", "crashed": "bold red", "completed": "bold green"}.get(verdict.outcome, "")
    lines.append(_line("verdict", _so_far(verdict), style))
    return lines


def _forecast(forecast: Forecast) -> str:
    return f"first token after {seconds(forecast.best_s)}, {forecast.fraction_done:.0%} done"


def _so_far(verdict: Verdict) -> str:
    if not verdict.decided:
        return f"none yet: {verdict.reason}" if verdict.reason else "none yet"
    mode = f" ({verdict.mode})" if verdict.mode else ""
    where = f" in {verdict.function}" if verdict.function else ""
    needle = f", answer {verdict.needle}" if verdict.needle else ""
    return f"{verdict.outcome}{mode}{where}{needle}"
