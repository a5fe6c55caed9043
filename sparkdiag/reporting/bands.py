"""Where each process was, over time: looks one after the other in one function become a span. Pure.

What the coloured bands of the timeline and the slices of a trace are made of.
"""

from sparkdiag.evidence.base import Value
from sparkdiag.evidence.observation import Observation
from sparkdiag.evidence.processes import ProcessInfo
from sparkdiag.evidence.stacks import StackSample
from sparkdiag.reporting.stack_view import top_frame


class Span(Value):
    """From the first to the last look in a row that saw ``function`` (run clock); a single look has its own length."""

    from_s: float
    to_s: float
    function: str
    looks: int


class Band(Value):
    """One process's spans, in order of time; between two of them nobody looked, or saw something else begin."""

    process: ProcessInfo
    spans: tuple[Span, ...]


def bands(observation: Observation, *, function: str | None, workers_only: bool = False) -> tuple[Band, ...]:
    """Of each process that was looked at, workers first; ``function`` (the suspect) wins over what it calls."""
    shown = observation.workers if workers_only else observation.processes
    by_pid: dict[int, list[StackSample]] = {process.pid: [] for process in shown}
    for sample in observation.samples:
        if sample.usable and sample.pid in by_pid:
            by_pid[sample.pid].append(sample)
    workers = {process.pid for process in observation.workers}
    ordered = sorted(shown, key=lambda one: (one.pid not in workers, one.name, one.pid))
    return tuple(
        Band(process=process, spans=_spans(by_pid[process.pid], function)) for process in ordered if by_pid[process.pid]
    )


def _spans(samples: list[StackSample], function: str | None) -> tuple[Span, ...]:
    made: list[tuple[float, float, str, int]] = []
    for sample in samples:
        frame = top_frame(sample, function=function)
        name = frame.function if frame is not None else "no Python frame"
        if made and made[-1][2] == name:
            made[-1] = (made[-1][0], sample.ended_s, name, made[-1][3] + 1)
        else:
            made.append((sample.started_s, sample.ended_s, name, 1))
    return tuple(Span(from_s=begin, to_s=end, function=name, looks=looks) for begin, end, name, looks in made)
