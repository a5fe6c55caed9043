"""What a timeline shows of a run: curves, bands and marks on one clock, or why there is nothing to show. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sparkdiag.evidence.stored import StoredRun
from sparkdiag.evidence.timeline import GpuPoint, MetricPoint
from sparkdiag.reporting.pictures.curves import Point
from sparkdiag.reporting.pictures.scale import ticks

_LEAD = 0.04
"""Share of the picture that lies before the prompt was sent."""
_MOST_GPUS = 8


@dataclass(frozen=True, kw_only=True)
class Window:
    """The stretch of time that is shown, in seconds from ``zero_s`` of the run clock: the sending of the prompt."""

    zero_s: float
    begin_s: float
    end_s: float
    from_sending: bool
    highs: tuple[tuple[str, float], ...] = ()
    """The least that the axis of a track, by its title, reaches up to: where two runs are compared."""

    def since(self, at_s: float) -> float:
        return at_s - self.zero_s

    def stretched(self, other: "Window") -> "Window":
        """This run's clock over the longer stretch of the two, and the higher of their axes."""
        return Window(
            zero_s=self.zero_s,
            begin_s=min(self.begin_s, other.begin_s),
            end_s=max(self.end_s, other.end_s),
            from_sending=self.from_sending,
            highs=(*self.highs, *other.highs),
        )


@dataclass(frozen=True, kw_only=True)
class Line:
    """One curve of a track; several are told apart by their dashes and names."""

    name: str
    points: tuple[Point, ...]


@dataclass(frozen=True, kw_only=True)
class CurveTrack:
    """Curves over one axis that begins at zero. ``missing`` says why there are none."""

    title: str
    unit: str
    lines: tuple[Line, ...]
    high: float
    note: str = ""
    missing: str = ""


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A moment worth a name."""

    at_s: float
    label: str


def window_of(stored: StoredRun) -> Window:
    """From shortly before the sending (else from the first thing seen) to the last thing seen."""
    seen = stored.observation
    stamps = [point.t_s for point in (*seen.metrics[:1], *seen.metrics[-1:])]
    stamps += [point.t_s for point in (*seen.gpus[:1], *seen.gpus[-1:])]
    stamps += [sample.ended_s for sample in (*seen.samples[:1], *seen.samples[-1:])]
    sent = seen.client.sent
    zero_s = sent.t_s if sent is not None else min(stamps, default=seen.ready_at_s or 0.0)
    last_s = max([*stamps, seen.now_s, *([seen.client.end.t_s] if seen.client.end is not None else [])])
    span_s = max(last_s - zero_s, 1.0)
    return Window(
        zero_s=zero_s, begin_s=-_LEAD * span_s if sent is not None else 0.0, end_s=span_s, from_sending=sent is not None
    )


def curve_tracks(stored: StoredRun, window: Window, *, progress: Sequence[Point] = ()) -> tuple[CurveTrack, ...]:
    """KV use, prompt tokens, the ``progress`` that was measured, and where there are GPUs their load and power."""
    sent = stored.observation.client.sent
    answered = [point for point in stored.observation.metrics if point.error is None]
    why = "" if answered else _why_no_metrics(stored)
    tracks = [
        _counter("KV cache use", "%", answered, lambda point: _times(point.kv_cache_usage, 100.0), window, why=why),
        _counter(
            "Prompt tokens",
            "",
            answered,
            lambda point: point.prompt_tokens_total,
            window,
            why=why,
            note="counted at the first token only",
            whole=sent.tokens if sent is not None else 0,
        ),
    ]
    if len(progress) > 2:  # its two ends alone are no curve
        tracks.append(_progress(progress))
    gpus = stored.observation.gpus
    if gpus:
        decides = "the same in a stall and in healthy work"
        tracks.append(_of_gpus("GPU load", "%", gpus, lambda point: point.utilisation_percent, window, note=decides))
        tracks.append(_of_gpus("GPU power", "W", gpus, lambda point: point.power_w, window))
    return tuple(replace(track, high=max(track.high, *_least(window, track.title))) for track in tracks)


def _least(window: Window, title: str) -> list[float]:
    return [0.0, *(high for name, high in window.highs if name == title)]


def with_highs(stored: StoredRun, window: Window) -> Window:
    """``window`` that knows how high each of the run's own tracks is."""
    tracks = curve_tracks(stored, window)
    return replace(window, highs=tuple((track.title, track.high) for track in tracks if track.lines))


def marks_of(stored: StoredRun, window: Window) -> tuple[Mark, ...]:
    """Ready, sent, first token, the end of the response, verdict, the server's end; in order of time."""
    client, record, seen = stored.observation.client, stored.record, stored.observation
    ends = {"finished": "answer complete", "cancelled": "cancelled", "error": "request failed"}
    found = [
        (seen.ready_at_s if not record.watched else None, "server ready"),
        (client.sent.t_s if client.sent is not None else None, "prompt sent"),
        (client.first_token_s, "first token"),
        (client.end.t_s if client.end is not None else None, ends[client.end.how] if client.end is not None else ""),
        (record.verdict.decided_at_s if record.verdict is not None else None, "verdict"),
        (seen.server_exit.at_s if seen.server_exit is not None else None, "server ended"),
    ]
    made = [Mark(at_s=window.since(at_s), label=label) for at_s, label in found if at_s is not None]
    shown = [mark for mark in made if window.begin_s <= mark.at_s <= window.end_s * 1.001]
    return tuple(sorted(shown, key=lambda mark: mark.at_s))


def rounded_up(value: float) -> float:
    """The first round value at or above ``value``; 1 for nothing."""
    if not value > 0:
        return 1.0
    steps = ticks(value, about=4)
    step = steps[1] - steps[0] if len(steps) > 1 else value
    return steps[-1] if steps[-1] >= value * 0.999 else steps[-1] + step


def _why_no_metrics(stored: StoredRun) -> str:
    failed = [point.error for point in stored.observation.metrics if point.error]
    return f"/metrics gave no answer: {failed[-1]}" if failed else "no reading of /metrics is in this folder"


def _times(value: float | None, factor: float) -> float | None:
    return value * factor if value is not None else None


def _counter(
    title: str,
    unit: str,
    points: Sequence[MetricPoint],
    value: Callable[[MetricPoint], float | None],
    window: Window,
    *,
    why: str,
    note: str = "",
    whole: float = 0.0,
) -> CurveTrack:
    seen = tuple(
        (window.since(point.t_s), number)
        for point in points
        if (number := value(point)) is not None and window.since(point.t_s) >= window.begin_s
    )
    missing = "" if seen else why or "the server does not export it"
    high = rounded_up(max((number for _, number in seen), default=0.0) or whole)
    lines = (Line(name=title, points=seen),) if seen else ()
    return CurveTrack(title=title, unit=unit, lines=lines, high=high, note=note, missing=missing)


def _progress(points: Sequence[Point]) -> CurveTrack:
    line = Line(name="Prefill progress", points=tuple((at, share * 100.0) for at, share in points))
    return CurveTrack(title="Prefill progress", unit="%", lines=(line,), high=100.0, note="by its loop variables")


def _of_gpus(
    title: str,
    unit: str,
    points: Sequence[GpuPoint],
    value: Callable[[GpuPoint], float | None],
    window: Window,
    *,
    note: str = "",
) -> CurveTrack:
    by_gpu: dict[int, list[Point]] = {}
    for point in points:
        number = value(point)
        if number is not None and window.since(point.t_s) >= window.begin_s:
            by_gpu.setdefault(point.index, []).append((window.since(point.t_s), number))
    shown = sorted(by_gpu)[:_MOST_GPUS]
    lines = tuple(Line(name=f"GPU {index}", points=tuple(by_gpu[index])) for index in shown)
    left = len(by_gpu) - len(shown)
    note = f"{note}; {left} more GPUs are not drawn" if left > 0 else note
    highest = max((number for line in lines for _, number in line.points), default=0.0)
    high = 100.0 if unit == "%" else rounded_up(highest)
    return CurveTrack(
        title=title, unit=unit, lines=lines, high=high, note=note, missing="" if lines else "NVML gave no reading"
    )
