"""Captures as run folders: everything that is known of a stall is on the disk before the vigil goes on."""

import os
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sparkdiag.evidence.base import Value
from sparkdiag.evidence.run import RunRecord, Timings
from sparkdiag.evidence.stacks import StackSample
from sparkdiag.evidence.timeline import NoteEvent, PhaseEvent, ProcessesEvent
from sparkdiag.recording.folder import RunFolder
from sparkdiag.reproducing.ending import keep_report, stored_run
from sparkdiag.watching.looks import looks_of
from sparkdiag.watching.verdict import verdict_of
from sparkdiag.watching.vigil_seams import Evidence, OpenCapture

SOURCE = "vigil"
"""Of the notes that a vigil writes."""


class RunFolderCaptures:
    """Makes a run folder a capture. Its clock begins with the oldest thing that is kept in it."""

    def __init__(
        self,
        runs_dir: Path,
        *,
        new_record: Callable[[], RunRecord],
        dcp: int,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """``new_record`` describes the watched server as of now; status, times and findings are filled in here."""
        self._runs_dir = runs_dir
        self._new_record = new_record
        self._dcp = dcp
        self._now = now

    def open(self, evidence: Evidence) -> OpenCapture:
        """Raises ``RunFolderError`` where no folder can be made; what the disk refuses after that is remembered."""
        found_at = self._now()
        zero_s = _zero_s(evidence)
        record = self._new_record()
        folder = RunFolder.create(
            self._runs_dir, scenario_name=f"watch-{evidence.label}", short_sha=None, dcp=self._dcp, now=found_at
        )
        began_at = found_at - timedelta(seconds=evidence.found_s - zero_s)
        record = record.model_copy(
            update={"started_at": began_at.isoformat(timespec="seconds"), "status": "running", "verdict": None}
        )
        capture = _Capture(folder, record, evidence=evidence, zero_s=zero_s)
        try:
            capture.write()
        except BaseException:
            capture.close(ending="the vigil was ended while this was written", interrupted=True)
            raise
        return capture


class _Capture:
    def __init__(self, folder: RunFolder, record: RunRecord, *, evidence: Evidence, zero_s: float) -> None:
        self._folder = folder
        self._record = record
        self._evidence = evidence
        self._zero_s = zero_s
        self._newest_s = evidence.found_s

    @property
    def path(self) -> Path:
        return self._folder.path

    @property
    def size_bytes(self) -> int:
        with suppress(OSError), os.scandir(self._folder.path) as entries:
            return sum(entry.stat(follow_symlinks=False).st_size for entry in entries)
        return 0

    def write(self) -> None:
        """All that is known by now; the verdict last, because a reader takes nothing later than it for its evidence."""
        evidence = self._evidence
        self._folder.write_record(self._record)
        for value in self._known():
            self.add(value)
        diagnosis = evidence.diagnosis
        if diagnosis is not None:
            verdict = verdict_of(
                diagnosis,
                looks=looks_of(evidence.samples, evidence.processes),
                now_s=evidence.found_s - self._zero_s,
            )
            self._record = self._record.model_copy(update={"verdict": verdict, "diagnosis": diagnosis})
        self._folder.write_record(self._record)
        self._report()

    def _known(self) -> tuple[Value, ...]:
        evidence = self._evidence
        first_s = evidence.history[0].t_s if evidence.history else self._zero_s
        known: list[Value] = [
            ProcessesEvent(t_s=self._zero_s, processes=evidence.processes),
            PhaseEvent(t_s=first_s, phase="ready", detail="what it said of itself before, kept by the vigil"),
            PhaseEvent(t_s=evidence.began_s, phase="observing", detail="nothing was seen to move from here on"),
            *evidence.history,
            *((evidence.kv_capacity,) if evidence.kv_capacity is not None else ()),
            *evidence.samples,
            NoteEvent(t_s=evidence.found_s, source=SOURCE, text=f"kept as {evidence.label}: {evidence.because}"),
        ]
        return tuple(known)

    def add(self, value: Value) -> None:
        shifted = _shifted(value, self._zero_s)
        self._newest_s = max(self._newest_s, _stamp_s(value))
        self._folder.append(shifted)

    def close(self, *, ending: str, interrupted: bool) -> tuple[str, ...]:
        self.add(NoteEvent(t_s=self._newest_s, source=SOURCE, text=ending))
        self.add(PhaseEvent(t_s=self._newest_s, phase="done", detail=ending))
        self._record = self._record.model_copy(
            update={
                "status": "interrupted" if interrupted else "finished",
                "error": ending if interrupted else None,
                "timings_s": Timings(total_s=self._newest_s - self._zero_s),
            }
        )
        self._folder.write_record(self._record)
        self._report()
        self._folder.close()
        return self._folder.problems

    def _report(self) -> None:
        """A report is made from the folder at any time: that none can be made now costs nothing that was seen."""
        with suppress(Exception):
            keep_report(self._folder, stored_run(self._folder, self._record))


def _zero_s(evidence: Evidence) -> float:
    stamps = [point.t_s for point in evidence.history[:1]] + [sample.started_s for sample in evidence.samples]
    return min([evidence.began_s, evidence.found_s, *stamps])


def _shifted(value: Value, zero_s: float) -> Value:
    if isinstance(value, StackSample):
        return value.model_copy(update={"started_s": value.started_s - zero_s, "ended_s": value.ended_s - zero_s})
    t_s = getattr(value, "t_s", None)
    return value if t_s is None else value.model_copy(update={"t_s": t_s - zero_s})


def _stamp_s(value: Value) -> float:
    return value.ended_s if isinstance(value, StackSample) else float(getattr(value, "t_s", 0.0))
