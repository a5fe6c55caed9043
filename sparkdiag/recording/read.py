"""A run folder read back, offline: what can be read is read, and ``problems`` says what is missing."""

import json
from collections.abc import Iterator
from functools import reduce
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from sparkdiag.errors import RunFolderError
from sparkdiag.evidence.client import ClientEvent, ClientOutcome
from sparkdiag.evidence.ledger import DispatchCall, DispatchLine, DispatchProcess, DispatchTotals
from sparkdiag.evidence.observation import Observation
from sparkdiag.evidence.processes import ProcessInfo, ServerExit
from sparkdiag.evidence.run import RunRecord
from sparkdiag.evidence.stacks import SamplingStats, StackSample
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
from sparkdiag.recording.events import ClientLine, SamplingTotals, ServerEnded, Stream, TimelineLine
from sparkdiag.recording.folder import RECORD
from sparkdiag.recording.in_use import is_held
from sparkdiag.recording.record import check_schema, open_regular, read_record
from sparkdiag.recording.stack_lines import StackReader

__all__ = ["StoredRun", "read_run"]

_LONGEST_LINE = 16 * 1024 * 1024
_TIMELINE: TypeAdapter[Any] = TypeAdapter(TimelineLine)
_CLIENT: TypeAdapter[Any] = TypeAdapter(ClientLine)
_STACKS: TypeAdapter[Any] = TypeAdapter(StackSample)
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
    problems: list[str] = []
    record = read_record(folder, problems)
    timeline = _read_stream(folder, "timeline", _TIMELINE, problems)
    samples = _read_stream(folder, "stacks", _STACKS, problems)
    client = _read_stream(folder, "client", _CLIENT, problems)
    # Only a run with the probe has it, and only from the probe's first line on.
    has_ledger = (folder / "dispatch.jsonl").is_file()
    dispatch = _read_stream(folder, "dispatch", _DISPATCH, problems) if has_ledger else []
    return StoredRun(
        run_dir=str(folder),
        record=record,
        held=is_held(folder) if record.status == "running" else None,
        observation=_observation(record, timeline, samples, client).model_copy(
            update={"dispatch": _dispatch(dispatch)}
        ),
        phases=tuple(event for event in timeline if isinstance(event, PhaseEvent)),
        notes=tuple(event for event in timeline if isinstance(event, NoteEvent)),
        problems=tuple(problems),
    )


def _read_stream(folder: Path, stream: Stream, adapter: TypeAdapter[Any], problems: list[str]) -> list[Any]:
    name = f"{stream}.jsonl"
    values: list[Any] = []
    bad: list[int] = []
    last = 0
    stacks = StackReader()
    try:
        for last, document in _documents(folder / name):
            if last == 1 and isinstance(document, dict) and "stream" in document:
                check_schema(document.get("schema"), name, problems)
                continue
            if last == 1:
                problems.append(f"{name} has no header line")
            try:
                values.append(adapter.validate_python(stacks.sample(document) if stream == "stacks" else document))
            except ValueError:  # pydantic's among them
                bad.append(last)
    except FileNotFoundError:
        problems.append(f"{name} is missing")
    except OSError as error:
        problems.append(f"{name} cannot be read: {error.strerror or error}")
    if bad == [last] and last > 1:
        problems.append(f"{name}: the last line is torn; it was left out")
    elif bad:
        problems.append(f"{name}: left out {len(bad)} of {last} lines that cannot be read (first: line {bad[0]})")
    return values


def _documents(path: Path) -> Iterator[tuple[int, object]]:
    """Line numbers and what they hold; None for a line that is no JSON or too long."""
    with open_regular(path) as file:
        number = 0
        while line := file.readline(_LONGEST_LINE):
            number += 1
            if not line.strip():
                continue
            try:
                yield number, json.loads(line.decode("utf-8", errors="replace"))
            except (ValueError, RecursionError):
                yield number, None


def _observation(record: RunRecord, timeline: list[Any], samples: list[StackSample], client: list[Any]) -> Observation:
    """As the judge saw it when it decided: what came after (the cancelled request, the shutdown) is not evidence."""
    now_s = _decided_or_last(record, timeline, samples, client)
    seen = [event for event in timeline if getattr(event, "t_s", 0.0) <= now_s]
    ready = [event.t_s for event in timeline if isinstance(event, PhaseEvent) and event.phase == "ready"]
    ready_at_s = ready[0] if ready else None
    capacities = [event for event in seen if isinstance(event, KvCapacity)]
    return Observation(
        now_s=now_s,
        ready_at_s=ready_at_s,
        processes=_processes(seen),
        samples=tuple(
            sorted(
                (s for s in samples if s.ended_s <= now_s and s.started_s >= (ready_at_s or 0.0)),
                key=lambda sample: sample.ended_s,
            )
        ),
        sampling=_sampling(timeline, samples),
        metrics=tuple(event for event in seen if isinstance(event, MetricPoint)),
        kv_capacity=capacities[-1] if capacities else None,
        gpus=tuple(event for event in seen if isinstance(event, GpuPoint)),
        cpu=tuple(event for event in seen if isinstance(event, CpuPoint)),
        client=_client(client, now_s),
        server_exit=_exit(timeline, now_s),
    )


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


def _decided_or_last(record: RunRecord, timeline: list[Any], samples: list[StackSample], client: list[Any]) -> float:
    if record.verdict is not None and record.verdict.decided_at_s is not None:
        return record.verdict.decided_at_s
    stamps = [float(getattr(event, "t_s", 0.0)) for event in (*timeline, *client)]
    stamps += [event.exit.at_s for event in timeline if isinstance(event, ServerEnded)]
    return max([*stamps, *(sample.ended_s for sample in samples)], default=0.0)


def _processes(timeline: list[Any]) -> tuple[ProcessInfo, ...]:
    """Everybody who was ever seen, as seen last: a tree on its way down says nothing about the stall."""
    events = [event for event in timeline if isinstance(event, ProcessesEvent) and event.processes]
    known: dict[tuple[int, float], ProcessInfo] = {}
    for event in events:
        known |= {(process.pid, process.started_at_s): process for process in event.processes}
    return tuple(known.values())


def _sampling(timeline: list[Any], samples: list[StackSample]) -> SamplingStats:
    totals = [event.stats for event in timeline if isinstance(event, SamplingTotals)]
    if totals:
        return totals[-1]
    spent = [sample.ended_s - sample.started_s for sample in samples]
    return SamplingStats(
        taken=len(samples),
        late=sum(sample.late for sample in samples),
        failed=sum(sample.error is not None for sample in samples),
        longest_s=max(spent, default=0.0),
        mode=samples[-1].source if samples else "none",
    )


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
