"""A run as Chrome trace events, for Perfetto and others: stacks as slices, counters, what happened when. Pure.

"Trace Event Format", its JSON object form. Processes and threads are numbered from 1 on, whatever the run's pids: two
runs may share those.
"""

import json
from typing import Any

from sparkdiag.evidence.ledger import DispatchCall
from sparkdiag.evidence.stored import StoredRun
from sparkdiag.reporting.bands import bands
from sparkdiag.reporting.phrases import headline
from sparkdiag.reporting.viewers.events import Numbers, Track
from sparkdiag.reporting.viewers.looks import looks_of, process_label, run_name, shown, suspect_of
from sparkdiag.reporting.viewers.trace_counters import counters
from sparkdiag.reporting.viewers.trace_moments import moments
from sparkdiag.reporting.viewers.trace_slices import MOST_SLICES, band_slices, call_slices, stack_slices

MOST_LOOKS = 50_000
"""Of all runs together."""


def trace_json(*runs: StoredRun) -> str:
    """The document as text, ASCII only, times in microseconds from each run's start.

    What is beyond the bounds is left out evenly; ``otherData`` says what.
    """
    numbers = Numbers()
    events: list[dict[str, Any]] = []
    told: dict[str, str] = {}
    for run in runs:
        name = run_name(run)
        made, left_out = _run_events(run, numbers, prefix=f"{name}: " if len(runs) > 1 else "", share=len(runs))
        events += made
        told[name] = shown(headline(run))
        if left_out:
            told[f"{name}: left out"] = "; ".join(left_out)
    # Of slices that begin together the longest is the outermost: it has to come first.
    events.sort(key=lambda event: (event["ph"] != "M", event.get("ts", 0), -event.get("dur", 0)))
    version = shown(runs[0].record.sparkdiag_version) if runs else ""
    document = {
        "displayTimeUnit": "ms",
        "otherData": {"exporter": f"sparkdiag {version}".strip(), **told},
        "traceEvents": events,
    }
    return json.dumps(document, ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def _run_events(
    run: StoredRun, numbers: Numbers, *, prefix: str, share: int
) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """One run's events, and what was left out of them."""
    left_out: list[str] = []
    whole = Track.process(numbers, f"{prefix}run", sort=0)
    events = whole.named() + moments(run, whole) + counters(run, whole, left_out=left_out)
    looks = {one.process.pid: one for one in looks_of(run, most=MOST_LOOKS // share)}
    drawn = {band.process.pid: band for band in bands(run.observation, function=suspect_of(run))}
    calls = _calls(run)
    names = {process.pid: process_label(process) for process in run.observation.processes}
    names |= {pid: process_label(one.process) for pid, one in looks.items()}
    pids = [*looks, *(pid for pid in calls if pid not in looks)]
    most = MOST_SLICES // max(1, share * len(pids))
    for sort, pid in enumerate(pids, start=1):
        track = Track.process(numbers, prefix + names.get(pid, f"process (pid {pid})"), sort=sort)
        events += track.named()
        if pid in drawn:
            events += band_slices(drawn[pid], track)
        if pid in looks:
            events += stack_slices(looks[pid], track, most=most, left_out=left_out)
        if pid in calls:
            until_s = run.observation.now_s
            events += call_slices(calls[pid], track, until_s=until_s, most=most, left_out=left_out)
    return events, tuple(left_out)


def _calls(run: StoredRun) -> dict[int, list[DispatchCall]]:
    found: dict[int, list[DispatchCall]] = {}
    for line in run.observation.dispatch:
        if isinstance(line, DispatchCall):
            found.setdefault(line.pid, []).append(line)
    return found
