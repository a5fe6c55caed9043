"""What was seen of a server that sparkdiag did not start, as plain text for a terminal. Pure."""

from pathlib import Path

from sparkdiag.evidence.diagnosis import Diagnosis
from sparkdiag.evidence.stored import StoredRun
from sparkdiag.evidence.timeline import GpuPoint
from sparkdiag.harmless.printable import printable
from sparkdiag.reporting.phrases import looking_cost, not_by_pyspy, verdict_sentence
from sparkdiag.reporting.triage import triage_text
from sparkdiag.reporting.unsampled import unsampled_lines

_MOST_GPUS = 8
_LONGEST = 1200


def watched_summary(stored: StoredRun, *, report: Path | None = None) -> str:
    """What became of a prompt of ours, who ended meanwhile, the diagnosis, what was watched and what that cost."""
    record = stored.record
    first = []
    if stored.observation.client.sent is not None or record.diagnosis is None:
        first += [f"prompt:   {verdict_sentence(stored)}"]
        first += [f"traffic:  {note.text}" for note in stored.notes if note.source == "metrics"]
    first += [f"gone:     {note.text}" for note in stored.notes if note.source == "process-tree"]
    text = _diagnosed(record.diagnosis) if record.diagnosis is not None else ""
    lines = [f"server:   {_server(stored)}", *_dcp(stored), *_gpus(stored.observation.gpus)]
    stacks = not_by_pyspy(stored.observation.sampling)
    lines += [f"stacks:   {stacks}"] if stacks and record.diagnosis is None else []
    if stored.observation.sampling.taken:
        lines.append(f"looking:  {looking_cost(stored.observation.sampling)}")
    missing = [note.text for note in stored.notes if note.source == "no-metrics"]
    lines += [f"missing:  {problem}" for problem in (*missing, *stored.problems[:4])]
    lines.append(f"report:   {report or stored.run_dir}")
    before, after = ([printable(line, limit=_LONGEST) for line in part] for part in (first, lines))
    return "\n".join([*before, *([text] if text else []), *after])


def _diagnosed(found: Diagnosis) -> str:
    if found.looks:
        return triage_text(found)
    return "\n".join(printable(line, limit=_LONGEST) for line in unsampled_lines(found))


def _server(stored: StoredRun) -> str:
    found = stored.record.environment.get("found_by") or "not known how it was found"
    version = stored.record.revision.version
    return f"{found}; " + (f"version {version} as it says, not proved" if version else "it tells no version")


def _dcp(stored: StoredRun) -> list[str]:
    proof = stored.record.dcp
    if proof is None or proof.size is None:
        return ["DCP:      not shown by the server"]
    return [f"DCP:      {proof.size} ({'; '.join(proof.witnesses[:4]) or 'no witness'})"]


def _gpus(points: tuple[GpuPoint, ...]) -> list[str]:
    """The newest reading of each; shown, never decisive."""
    newest = {point.index: point for point in points}
    shown = [_gpu(newest[index]) for index in sorted(newest)[:_MOST_GPUS]]
    told = "the same in a stall and in healthy work: this decides nothing"
    return [f"GPUs:     {'; '.join(shown)} ({told})"] if shown else []


def _gpu(point: GpuPoint) -> str:
    load = f"{point.utilisation_percent:.0f} %" if point.utilisation_percent is not None else "load not told"
    power = f", {point.power_w:.0f} W" if point.power_w is not None else ""
    return f"GPU {point.index}: {load}{power}"
