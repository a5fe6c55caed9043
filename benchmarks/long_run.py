"""A run folder of any length, made from a short recording: the same stacks again and again, their loops further on."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sparkdiag.evidence.base import SCHEMA
from sparkdiag.evidence.stacks import StackSample
from sparkdiag.recording.read import read_run
from sparkdiag.recording.stack_lines import LINES_A_NUMBERING, StackLines

RECORDING = Path(__file__).parents[1] / "tests" / "recordings" / "h200-ledger" / "slow250"
MOVING = ("k_start", "k_end", "matmuls")
"""Locals that differ in every look at a loop that goes on."""
GPUS = 8
_POINTS = ("metrics", "gpu", "cpu")


def long_run(folder: Path, *, samples: int, recording: Path = RECORDING) -> Path:
    """Writes ``samples`` looks, as our writer writes them, one a second of each process, with everything that was read
    beside them; the request goes on to the end. Returns ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    short = read_run(recording).observation
    first_s = short.samples[0].started_s
    cycle_s = short.samples[-1].ended_s - first_s + 0.5
    cycles = -(-samples // len(short.samples))
    end_s = first_s + cycles * cycle_s
    _write_stacks(folder, short.samples, samples=samples, cycle_s=cycle_s)
    _write_timeline(folder, recording, first_s=first_s, end_s=end_s)
    _write_rest(folder, recording, end_s=end_s)
    return folder


def _write_stacks(folder: Path, recorded: tuple[StackSample, ...], *, samples: int, cycle_s: float) -> None:
    """A numbering begins anew every so many lines: such a block is put together once, and written with other times."""
    block = _block(recorded, cycle_s=cycle_s)
    block_s = len(block) // len(recorded) * cycle_s
    with (folder / "stacks.jsonl").open("w", encoding="ascii") as file:
        file.write(_line({"schema": SCHEMA, "stream": "stacks"}))
        for number in range(samples):
            repeated, index = divmod(number, len(block))
            pid, started_s, ended_s, rest = block[index]
            by_s = repeated * block_s
            file.write(f'{{"process":{pid},"started_s":{started_s + by_s},"ended_s":{ended_s + by_s},{rest}\n')


def _block(recorded: tuple[StackSample, ...], *, cycle_s: float) -> list[tuple[int, float, float, str]]:
    """One numbering's lines, as our writer writes them: process, times, and the rest of the text."""
    lines, documents = StackLines(), [sample.model_dump(mode="json") for sample in recorded]
    found = []
    for number in range(LINES_A_NUMBERING // len(documents) * len(documents)):
        cycle, index = divmod(number, len(documents))
        line = lines.line(_later(documents[index], cycle, by_s=cycle * cycle_s))
        pid, started_s, ended_s = line.pop("process"), line.pop("started_s"), line.pop("ended_s")
        found.append((pid, started_s, ended_s, _line(line).strip()[1:]))
    return found


def _later(sample: dict[str, Any], cycle: int, *, by_s: float) -> dict[str, Any]:
    threads = [
        {**thread, "frames": [_further(frame, cycle) for frame in thread["frames"]]}
        if any(MOVING[0] in frame["locals"] for frame in thread["frames"])
        else thread
        for thread in sample["threads"]
    ]
    times = {name: sample[name] + by_s for name in ("started_s", "ended_s")}
    return {**sample, **times, "threads": threads}


def _further(frame: dict[str, Any], cycle: int) -> dict[str, Any]:
    if MOVING[0] not in frame["locals"]:
        return frame
    moved = {name: frame["locals"][name] + cycle % 977 for name in MOVING if name in frame["locals"]}
    return {**frame, "locals": {**frame["locals"], **moved}}


def _write_timeline(folder: Path, recording: Path, *, first_s: float, end_s: float) -> None:
    """What was read once a second is read once a second to the end; the rest happened as it did, before or after."""
    documents = [json.loads(line) for line in (recording / "timeline.jsonl").read_text(encoding="utf-8").splitlines()]
    of_kind = {kind: next(one for one in documents if one.get("event") == kind) for kind in _POINTS}
    before = [one for one in documents if one.get("event") not in _POINTS and one.get("t_s", 0) < first_s]
    with (folder / "timeline.jsonl").open("w", encoding="ascii") as file:
        file.writelines(map(_line, before))
        file.writelines(map(_line, _points(of_kind, first_s=first_s, end_s=end_s)))
        file.writelines(_line(one) for one in documents if one not in before and one.get("event") not in _POINTS)


def _points(of_kind: dict[str, dict[str, Any]], *, first_s: float, end_s: float) -> Iterator[dict[str, Any]]:
    seconds = round(end_s - first_s)
    for second in range(seconds):
        at = {"t_s": first_s + second}
        # As on the recording: a chunk at a time gets its blocks, so most readings are the same.
        yield {**of_kind["metrics"], **at, "kv_cache_usage": (second * 30 // seconds) / 60}
        yield {**of_kind["cpu"], **at}
        for index in range(GPUS):
            yield {**of_kind["gpu"], **at, "index": index, "power_w": 300 + second % 7}


def _write_rest(folder: Path, recording: Path, *, end_s: float) -> None:
    record = json.loads((recording / "run.json").read_text(encoding="utf-8"))
    record["verdict"]["decided_at_s"] = end_s
    (folder / "run.json").write_text(json.dumps(record), encoding="utf-8")
    shutil.copyfile(recording / "dispatch.jsonl", folder / "dispatch.jsonl")
    header, sent, *_ = (recording / "client.jsonl").read_text(encoding="utf-8").splitlines()
    (folder / "client.jsonl").write_text(f"{header}\n{sent}\n", encoding="utf-8")


def _line(document: dict[str, Any]) -> str:
    return json.dumps(document, separators=(",", ":")) + "\n"
