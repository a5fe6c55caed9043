"""A run folder read back, offline: what can be read is read, and ``problems`` says what is missing."""

import math
from functools import reduce
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from sparkdiag.errors import RunFolderError
from sparkdiag.evidence.client import ClientEvent, ClientOutcome
from sparkdiag.evidence.ledger import DispatchCall, DispatchLine, DispatchProcess, DispatchTotals
from sparkdiag.evidence.observation import InPart, Observation
from sparkdiag.evidence.processes import ProcessInfo, ServerExit
from sparkdiag.evidence.run import RunRecord
from sparkdiag.evidence.stacks import SamplingStats
from sparkdiag.evidence.stored import StoredRun
from sparkdiag.evidence.timeline import (
    CpuPoint,
    GpuPoint,
    KvCapacity,
    MetricPoint,
    NoteEvent,
    PhaseEvent,
    ProcessesEvent,
)
from sparkdiag.recording.collector import paused_collector
from sparkdiag.recording.events import ClientLine, SamplingTotals, ServerEnded
from sparkdiag.recording.folder import RECORD
from sparkdiag.recording.in_use import is_held
from sparkdiag.recording.lines import read_stream, validated
from sparkdiag.recording.points import Points, read_points
from sparkdiag.recording.record import read_record
from sparkdiag.recording.samples import Samples, read_samples

__all__ = ["StoredRun", "read_run"]

_CLIENT: TypeAdapter[Any] = TypeAdapter(ClientLine)
_DISPATCH: TypeAdapter[Any] = TypeAdapter(DispatchLine)


def read_run(path: Path) -> StoredRun:
    """The run in folder ``path`` (or whose ``run.json`` it is).

    Raises ``RunFolderError`` only when there is no run there at all.
    """
    folder = path.parent if path.name == RECORD else path
    if not folder.is_dir():
        raise RunFolderError(f"no run folder at {path}", remedy="sparkdiag runs list")
    streams = [folder / f"{name}.jsonl" for name in ("timeline", "stacks", "client")]
    if not (folder / RECORD).is_file() and not any(file.is_file() for file in streams):
        raise RunFolderError(f"{folder} is not a run folder: it holds no {RECORD}", remedy="sparkdiag runs list")
    with paused_collector():
        return _read(folder)


def _read(folder: Path) -> StoredRun:
    problems: list[str] = []
    record = read_record(folder, problems)
    points = read_points(folder, problems)
    ready_at_s = _ready_at_s(points.events)
    samples = read_samples(folder, problems, from_s=ready_at_s or 0.0, until_s=_decided_at_s(record))
    client: list[Any] = []
    read_stream(folder, "client", problems, take=lambda line: client.append(validated(line, _CLIENT)))
    observation = _observation(record, points, samples, client).model_copy(
        update={"dispatch": _dispatch(_read_ledger(folder, problems, asked=_has_ledger(record)))}
    )
    told = in_part_sentence(observation)
    return StoredRun(
        run_dir=str(folder),
        record=record,
        held=is_held(folder) if record.status == "running" else None,
        observation=observation,
        phases=tuple(event for event in points.events if isinstance(event, PhaseEvent)),
        notes=tuple(event for event in points.events if isinstance(event, NoteEvent)),
        problems=(*problems, *([told] if told else [])),
    )


def _read_ledger(folder: Path, problems: list[str], *, asked: bool) -> list[DispatchLine]:
    """Only a run with the probe has one, and only from the probe's first line on; ``asked``: it was to write one."""
    lines: list[DispatchLine] = []
    if asked or (folder / "dispatch.jsonl").is_file():
        read_stream(folder, "dispatch", problems, take=lambda line: lines.append(validated(line, _DISPATCH)))
    return lines


def _has_ledger(record: RunRecord) -> bool:
    """Whether the run came so far, with the probe, that its ledger must have begun."""
    return record.dcp is not None and "SPARKDIAG_PROBE_LEDGER" in record.server_env


def _observation(record: RunRecord, points: Points, samples: Samples, client: list[Any]) -> Observation:
    """As the judge saw it when it decided: what came after (the cancelled request, the shutdown) is not evidence."""
    timeline = points.events
    now_s = _decided_or_last(record, timeline, samples, client)
    seen = [event for event in timeline if getattr(event, "t_s", 0.0) <= now_s]
    capacities = [event for event in seen if isinstance(event, KvCapacity)]
    return Observation(
        now_s=now_s,
        ready_at_s=_ready_at_s(timeline),
        processes=_processes(seen),
        samples=tuple(sorted(samples.kept, key=lambda sample: sample.ended_s)),
        sampling=_sampling(timeline, samples),
        metrics=tuple(event for event in seen if isinstance(event, MetricPoint)),
        kv_capacity=capacities[-1] if capacities else None,
        gpus=tuple(event for event in seen if isinstance(event, GpuPoint)),
        cpu=tuple(event for event in seen if isinstance(event, CpuPoint)),
        client=_client(client, now_s),
        server_exit=_exit(timeline, now_s),
        in_part=_in_part(points, samples),
    )


def _in_part(points: Points, samples: Samples) -> InPart | None:
    found = InPart(
        samples=samples.in_all,
        metrics=points.in_all(MetricPoint),
        gpus=points.in_all(GpuPoint),
        cpu=points.in_all(CpuPoint),
    )
    return found if found != InPart() else None


def in_part_sentence(observation: Observation) -> str | None:
    """``too long to be read whole: 50000 of 500000 samples …``; None where everything was read."""
    whole = observation.in_part
    if whole is None:
        return None
    kinds = (
        ("samples", len(observation.samples), whole.samples),
        ("readings of the server", len(observation.metrics), whole.metrics),
        ("readings of GPUs", len(observation.gpus), whole.gpus),
        ("readings of the CPU", len(observation.cpu), whole.cpu),
    )
    parts = [f"{part} of {count} {what}" for what, part, count in kinds if count is not None]
    judged = ", and it was not judged again" if whole.keeps_from_judging else ""
    return (
        f"the run is too long to be shown whole: {', '.join(parts)} were read, evenly spread; what is counted here is "
        f"counted in these{judged}"
    )


def _ready_at_s(timeline: list[Any]) -> float | None:
    ready = (event.t_s for event in timeline if isinstance(event, PhaseEvent) and event.phase == "ready")
    return next(ready, None)


def _decided_at_s(record: RunRecord) -> float | None:
    decided_at_s = record.verdict.decided_at_s if record.verdict is not None else None
    return decided_at_s if decided_at_s is not None and math.isfinite(decided_at_s) else None


def _dispatch(lines: list[DispatchLine]) -> tuple[DispatchLine, ...]:
    """What counts: of each call, and of what a process says of itself, the last line."""
    latest: dict[object, DispatchLine] = {}
    for line in lines:
        match line:
            case DispatchCall():
                latest[line.pid, line.number] = line
            case DispatchProcess() | DispatchTotals():
                latest[line.pid, line.event] = line
            case _:
                latest[line] = line
    return tuple(latest.values())


def _decided_or_last(record: RunRecord, timeline: list[Any], samples: Samples, client: list[Any]) -> float:
    decided_at_s = _decided_at_s(record)
    if decided_at_s is not None:
        return decided_at_s
    stamps = [float(getattr(event, "t_s", 0.0)) for event in (*timeline, *client)]
    stamps += [event.exit.at_s for event in timeline if isinstance(event, ServerEnded)]
    stamps += [samples.last_s] if samples.last_s is not None else []
    return max((stamp for stamp in stamps if math.isfinite(stamp)), default=0.0)


def _processes(timeline: list[Any]) -> tuple[ProcessInfo, ...]:
    """Everybody who was ever seen, as seen last: a tree on its way down says nothing about the stall."""
    events = [event for event in timeline if isinstance(event, ProcessesEvent) and event.processes]
    known: dict[tuple[int, float], ProcessInfo] = {}
    for event in events:
        known |= {(process.pid, process.started_at_s): process for process in event.processes}
    return tuple(known.values())


def _sampling(timeline: list[Any], samples: Samples) -> SamplingStats:
    totals = [event.stats for event in timeline if isinstance(event, SamplingTotals)]
    return totals[-1] if totals else samples.stats


def _exit(timeline: list[Any], now_s: float) -> ServerExit | None:
    exits = [event.exit for event in timeline if isinstance(event, ServerEnded) and event.exit.at_s <= now_s]
    return exits[-1] if exits else None


def _client(events: list[ClientEvent], now_s: float) -> ClientOutcome:
    """The request under test, without control requests, and with its score whenever that was written."""
    outcome = ClientOutcome()
    control = False
    counted: list[ClientEvent] = []
    for event in events:
        control = event.control if event.event == "sent" else control
        if not control and (event.t_s <= now_s or event.event == "score"):
            counted.append(event)
    outcome = reduce(ClientOutcome.after, counted, outcome)
    return outcome if outcome.end is not None else outcome.model_copy(update={"score": None, "score_because": ""})
